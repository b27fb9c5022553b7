"""Many runs as one table: found at any depth, once each, the unfinished left out and named."""

import json

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.runs import CURVE_COLUMNS, average_columns, load_runs, make_curves, write_curves


def test_one_run(tmp_path, write_run):
    runs = load_runs(write_run(tmp_path / "a"))
    assert list(runs.columns) == ["run", *CURVE_COLUMNS]
    assert runs["run"].tolist() == [str(tmp_path / "a")] * 6
    assert runs.attrs["skipped"] == []


def test_runs_are_found_at_any_depth_and_seeds_are_replicates(tmp_path, write_run, monkeypatch):
    write_run(tmp_path / "multi" / "seed=0", teacher_seed=0)
    write_run(tmp_path / "multi" / "more" / "seed=1", teacher_seed=1)
    write_run(tmp_path / "multi" / "seed=0" / "inside")  # within a run: not a run of its own
    for name in ("checkpoints", "wandb", ".hydra"):
        write_run(tmp_path / "multi" / name / "copy")
    monkeypatch.chdir(tmp_path)
    runs = load_runs("multi")
    assert runs["run"].unique().tolist() == ["multi/more/seed=1", "multi/seed=0"]
    assert sorted(runs["teacher_seed"].unique()) == [0, 1]
    assert runs.index.tolist() == list(range(12))


def test_a_run_reached_twice_counts_once(tmp_path, write_run):
    write_run(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert len(load_runs([tmp_path / "a", str(tmp_path), tmp_path / "link", tmp_path / "a" / ".." / "a"])) == 6


def test_diverged_runs_are_read_and_unfinished_ones_on_demand(tmp_path, write_run):
    write_run(tmp_path / "a", status="diverged")
    write_run(tmp_path / "b", status="interrupted")
    write_run(tmp_path / "c", status="running")
    runs = load_runs(tmp_path)
    assert runs["run"].unique().tolist() == [str(tmp_path / "a")]
    assert runs.attrs["skipped"] == [
        {"run": str(tmp_path / "b"), "reason": "status is interrupted"},
        {"run": str(tmp_path / "c"), "reason": "status is running"},
    ]
    assert len(load_runs(tmp_path, allow_unfinished=True)) == 18


def test_damaged_and_empty_folders_are_named_and_left_out(tmp_path, write_run):
    write_run(tmp_path / "good")
    write_run(tmp_path / "bare", curves=False)
    (tmp_path / "corrupt").mkdir()
    (tmp_path / "corrupt" / "record.json").write_text("{")
    (tmp_path / "empty").mkdir()
    (tmp_path / "multirun.yaml").write_text("")  # what a shell's * gives as well
    runs = load_runs(sorted(tmp_path.iterdir()))
    assert runs["run"].unique().tolist() == [str(tmp_path / "good")]
    reasons = {entry["run"].rsplit("/", 1)[1]: entry["reason"] for entry in runs.attrs["skipped"]}
    assert set(reasons) == {"bare", "corrupt", "empty", "multirun.yaml"}
    assert "must be the curves of a run" in reasons["bare"]
    assert reasons["empty"] == reasons["multirun.yaml"] == "no record.json in it"
    json.dumps(runs.attrs)


def test_runs_with_and_without_further_averages_join(tmp_path, write_run, pieces):
    labels, arms, series = pieces
    write_run(tmp_path / "a")
    write_run(tmp_path / "b")
    further = dict.fromkeys(average_columns(0.99), series["test_loss"])
    write_curves(tmp_path / "b", make_curves(labels, arms, {**series, **further}))
    runs = load_runs(tmp_path)
    assert np.isnan(runs["test_loss_average_0.99"].to_numpy()).sum() == 6


def test_nothing_left_says_why(tmp_path, write_run):
    for name in "abcd":
        write_run(tmp_path / name, status="running")
    with pytest.raises(InputError) as error:
        load_runs(tmp_path)
    assert str(error.value) == (
        f"paths must hold at least one finished run, got none ({tmp_path}/a: status is running; {tmp_path}/b: status "
        f"is running; {tmp_path}/c: status is running; and 1 more). Give allow_unfinished=True (--allow-unfinished) to "
        "read runs as they stand."
    )


def test_no_runs_at_all(tmp_path):
    with pytest.raises(InputError, match=r"got none \(.*: no record\.json in it\)\. Give the folder of a run that has"):
        load_runs(tmp_path)
    with pytest.raises(InputError, match=r"got none\. Give the folder of a run that has ended\.$"):
        load_runs([])


def test_a_mistyped_path_names_its_sibling(tmp_path, write_run):
    write_run(tmp_path / "outputs" / "tied")
    with pytest.raises(InputError, match=r"tiedd\. Give the folder of a run, or of many\. Did you mean 'tied'\?$"):
        load_runs(tmp_path / "outputs" / "tiedd")
    with pytest.raises(InputError, match=r"^paths must exist, got .*outptus/tied\. .* Did you mean 'outputs'\?$"):
        load_runs([tmp_path / "outptus" / "tied"])


@pytest.mark.parametrize(
    ("paths", "got"),
    [(None, "None"), (3, "3"), ([None], "None"), (b"x", "b'x'"), ("", "''"), (["", "."], "''"), ([["a"]], "['a']")],
)
def test_what_is_no_path_is_refused(paths, got):
    with pytest.raises(InputError) as error:
        load_runs(paths)
    assert str(error.value) == (
        f"paths must be the folder of a run or a list of such, got {got}. Give the folder of a run, or of many."
    )


@pytest.mark.parametrize("path", ["x" * 5000, "a/" + "x" * 5000 + "/b", "a\0b", "a\nb"])
def test_a_path_that_cannot_be_is_refused_in_one_short_line(path):
    with pytest.raises(InputError, match=r"^paths must exist, got ") as error:
        load_runs(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


def test_junk_in_one_folder_leaves_the_others(tmp_path, write_run):
    write_run(tmp_path / "good")
    for name, text in (("deep", "[" * 100_000), ("null", '{"schema_version": 1, "experiment": null}')):
        (write_run(tmp_path / name) / "record.json").write_text(text)
    table = write_run(tmp_path / "words") / "curves.parquet"
    pd.read_parquet(table).assign(test_loss="x").to_parquet(table)
    runs = load_runs(tmp_path)
    assert runs["run"].unique().tolist() == [str(tmp_path / "good")]
    assert [entry["run"] for entry in runs.attrs["skipped"]] == [str(tmp_path / n) for n in ("deep", "null", "words")]
