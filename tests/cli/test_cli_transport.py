"""`toydepth transport`: fields of files and checkpoints; what it prints, writes and refuses."""

import json

import numpy as np
import pandas as pd
import pytest

from toydepth.cli import main
from toydepth.transport import ProbeSettings, fit_exponents, measure_field

STEPS = np.arange(1, 14) * 10
SIZES = (60, 240, 960)


def values(size, step):
    return np.random.default_rng([size, step]).normal(size=size).astype(np.float32)


@pytest.fixture
def files(tmp_path):
    paths = []
    for size in SIZES:
        paths.append(str(tmp_path / f"m{size}.npz"))
        np.savez(paths[-1], steps=STEPS, fields=np.stack([values(size, step) for step in STEPS]))
    return paths


@pytest.fixture
def curve(tmp_path):
    path = tmp_path / "curve.csv"
    rows = np.random.default_rng(0).uniform(1, 2, size=(len(STEPS), 2))
    pd.DataFrame({"step": STEPS, "loss": rows[:, 0], "learning_rate": rows[:, 1]}).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def call(capsys, tmp_path):
    def run(*words):
        code = main(["transport", "--folder", str(tmp_path / "out"), "--num-seeds", "2", *map(str, words)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_exponents_effects_and_association_of_files(call, files, curve, tmp_path):
    code, out, err = call("--fields", *files, "--curve", curve, "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    row = next(row for row in told["exponents"] if row["kind"] == "field" and row["step"] == 50)
    table = pd.concat([measure_field(values(size, 50), ProbeSettings(seeds=(0, 1))) for size in SIZES])
    own = table.query("kind == 'field'")
    fit = fit_exponents(own["num_nodes"], own["size"], own["duration"])
    assert row["D"] == pytest.approx(fit.D.slope) and row["z_low"] == pytest.approx(fit.z.interval[0])
    assert row["delta_r_squared"] == pytest.approx(fit.delta.r_squared) and row["missing"] is None
    assert {row["effect"] for row in told["effects"]} == {"distribution", "assignment"}
    models = {(row["model"], row["channel"]) for row in told["association"]}
    assert models == {(f"m{size}", channel) for size in SIZES for channel in ("ln v_rel", "ln n/N")} | {
        ("all sizes", channel) for channel in ("D", "z", "delta")
    }
    assert {"partial", "differences"} <= {row["kind"] for row in told["association"]}
    assert told["settings"]["m_BA"] == 2 and told["settings"]["seeds"] == [0, 1]
    saved = pd.read_parquet(tmp_path / "out" / "transport.parquet")
    assert len(saved) == len(STEPS) * len(SIZES) * 2 * 5
    kept = json.loads((tmp_path / "out" / "transport.json").read_text())
    assert kept == {name: value for name, value in told.items() if name != "written"}
    assert all(path in {str(p) for p in (tmp_path / "out").iterdir()} for path in told["written"])


def test_what_is_printed(call, files, curve):
    code, out, _ = call(
        "--fields", *files, "--curve", curve, "--figures", "no", "--sensitivity", "--sensitivity-step", 40
    )
    assert code == 0
    for words in (
        "m60: N = 60; m240: N = 240; m960: N = 960",
        "assignment effect",
        "percentile",
        "step 40",
        "all sizes",
    ):
        assert words in out, words
    assert "nan" not in out.lower() and "none" not in out.lower()


def test_checkpoints_are_differences_and_equal_ones_are_named(call, tmp_path):
    for size in SIZES:
        folder = tmp_path / f"model{size}"
        folder.mkdir()
        for step in (0, 10, 20):
            at = 10 if step == 20 and size == 960 else step
            np.savez(folder / f"step{step}.npz", weight=values(size, at), ids=np.arange(3))
    code, out, _ = call("--checkpoints", *(tmp_path / f"model{size}" for size in SIZES), "--json", "--figures", "no")
    told = json.loads(out)
    assert code == 0
    rows = {row["step"]: row for row in told["exponents"] if row["kind"] == "field"}
    difference = [measure_field(values(size, 10) - values(size, 0), ProbeSettings(seeds=(0, 1))) for size in SIZES]
    own = pd.concat(difference).query("kind == 'field'")
    assert rows[10]["D"] == pytest.approx(fit_exponents(own["num_nodes"], own["size"], own["duration"]).D.slope)
    assert rows[20]["missing"] == "2 sizes, of 3 or more that it takes (zero field)" and rows[20].get("D") is None
    assert any("ids" in note and "not float" in note for note in told["notes"])


def test_large_fields_are_sampled_and_told(call, files):
    code, out, _ = call("--fields", *files, "--max-nodes", 500, "--figures", "no", "--steps", 10, 20)
    assert code == 0 and "m960: N = 500 of 960" in out and "no association: it takes 12 steps" in out


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tiny):
    """Runs of three widths, two replicates each, with gradients at 13 steps."""
    folder = tmp_path_factory.mktemp("runs")
    for width in (4, 6, 8):
        words = (f"width={width}", "student.depths=[1,2]", "steps=40", "replicates=2", "gradients.points=14")
        assert main(["train", *tiny, *words, f"hydra.run.dir={folder}/{width}"]) == 0
    return folder


def test_runs_are_families_of_widths(call, runs, capsys):
    capsys.readouterr()
    code, out, err = call("--runs", runs, "--json", "--figures", "no")
    told = json.loads(out)
    assert (code, err) == (0, "")
    families = {row["family"] for row in told["exponents"]}
    assert families == {"tied teacher, depth 1, zero init", "tied teacher, depth 2, zero init"}
    saved = pd.read_parquet(told["written"][0])
    own = saved.query("kind == 'field' and seed == 0 and family == 'tied teacher, depth 2, zero init'")
    # N = ell (8 m^2 + 4 m)
    assert {(row.model, row.num_nodes) for row in own.itertuples()} == {
        ("width 4", 288), ("width 6", 624), ("width 8", 1088)
    }  # fmt: skip
    assert set(own["replicate"]) == {0, 1} and own["loss"].notna().all() and own["learning_rate"].notna().all()
    from toydepth.runs import load_gradients

    field = next(
        one for one in load_gradients(runs / "6")
        if (one.labels["step"], one.labels["depth"], one.labels["replicate"]) == (40, 2, 1)
    )  # fmt: skip
    alone = measure_field(field.values, ProbeSettings(seeds=(0, 1)), kinds=("field",))
    row = own.query("step == 40 and model == 'width 6' and replicate == 1").iloc[0]
    assert (row["size"], row["threshold"]) == (alone["size"][0], alone["threshold"][0])
    channels = {(row["model"], row["channel"]) for row in told["association"]}
    assert ("width 8", "ln v_rel") in channels and ("all sizes", "z") in channels


def test_depths_as_sizes_and_some_tensors_alone(call, runs):
    code, out, _ = call(
        "--runs", runs, "--sizes", "both", "--include", "w*", "--exclude", "w2", "--json", "--steps", 40
    )
    told = json.loads(out)
    assert code == 0 and {row["family"] for row in told["exponents"]} == {"tied teacher, zero init"}
    saved = pd.read_parquet(told["written"][0])
    assert set(saved["num_values"]) == {ell * 4 * m * m for ell in (1, 2) for m in (4, 6, 8)}
    code, _, err = call("--runs", runs, "--include", "bias")
    assert code == 2 and "include must match a tensor of b1, w1, w2, got bias" in err


def test_sensitivity_of_runs_holds_tensors_alone(call, runs):
    code, out, _ = call("--runs", runs, "--sensitivity", "--json", "--figures", "no")
    rows = json.loads(out)["sensitivity"]
    assert code == 0 and {row["step"] for row in rows} == {40}
    assert {row["value"] for row in rows if row["setting"] == "tensors"} == {"as given", "*w1", "*w2"}


def test_runs_without_snapshots_are_refused(call, runs, tiny, tmp_path, capsys):
    assert main(["train", *tiny, "student.depths=[1]", "steps=3", f"hydra.run.dir={tmp_path}/none"]) == 0
    capsys.readouterr()
    code, out, err = call("--runs", runs, tmp_path / "none")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "gradients.points must be above 0" in err and "gradients.points=12" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "one of runs, pico, checkpoints, fields must be given, got none"),
        (("--fields", "F", "--pico", "x"), "got pico and fields"),
        (("--fields", "nowhere.npz"), "nowhere.npz"),
        (("--fields", "F0", "F1"), "sizes must be 3 or more in a family, got 2 at most"),
        (("--fields", "F", "--m-ba", "0"), "m_BA must be an integer, 1 or more, got 0"),
        (("--fields", "F", "--percentile", "100"), "percentile must be between 0 and 100"),
        (("--fields", "F", "--cap", "0"), "cap must be an integer, 1 or more"),
        (("--fields", "F", "--num-seeds", "0"), "num_seeds must be 1 or more"),
        (("--fields", "F", "--max-nodes", "5"), "max_nodes must be 10 or more"),
        (("--fields", "F", "--steps", "11"), "11"),
        (("--fields", "F", "--curve", "nowhere.csv"), "nowhere.csv"),
        (("--fields", "F", "--curve", "BAD"), "must have a column loss, got step, lost"),
        (("--fields", "F", "--curve", "TWICE"), "must have each step once, got twice {'step': 10}"),
        (("--fields", "F", "--curve", "OTHER"), "must have a step of the study, got none"),
        (("--fields", "F", "--confidence", "95"), "confidence must be between 0 and 1"),
        (("--fields", "F", "--sensitivity-step", "10"), "--sensitivity-step must come with --sensitivity"),
        (
            ("--fields", "F", "--sensitivity", "--sensitivity-step", "11"),
            "sensitivity_step must be a step of the study, got 11",
        ),
        (("--fields", "F", "--split", "train"), "--split must come with --pico"),
        (("--fields", "F", "--sizes", "depth"), "--sizes must come with --runs"),
        (("--runs", "nowhere"), "nowhere"),
    ],
)
def test_one_line_for_what_cannot_be_used(call, files, tmp_path, words, told):
    for name, text in (
        ("BAD", "step,lost\n10,1\n"),
        ("TWICE", "step,loss\n10,1\n10,2\n"),
        ("OTHER", "step,loss\n7,1\n"),
    ):
        (tmp_path / f"{name}.csv").write_text(text)
    known = {"F": files, "F0": files[:1], "F1": files[1:2]}
    given = [part for word in words for part in known.get(word, [word])]
    given = [str(tmp_path / f"{word}.csv") if word in ("BAD", "TWICE", "OTHER") else word for word in given]
    code, out, err = call(*given, "--figures", "no")
    assert (code, out) == (2, "") and err.count("\n") == 1 and told in err


def test_pico_folders_and_tensors_that_change_their_names(call, tmp_path):
    """Three runs of pico-train's layout; in one a tensor has another name from step 20 on: named, and no number."""
    torch = pytest.importorskip("torch", reason="the extra llm is not installed")
    for size in SIZES:
        for step in (0, 10, 20):
            folder = tmp_path / f"pico{size}" / "checkpoints" / f"step_{step}" / "learning_dynamics"
            folder.mkdir(parents=True)
            name = "1.swiglu.w_2" if (size, step) != (240, 20) else "1.swiglu.w_3"
            drawn = torch.as_tensor(values(size, step))
            torch.save(
                {"0.attention.v_proj": drawn[: size // 2], name: drawn[size // 2 :]}, folder / "val_gradients.pt"
            )
    folders = [tmp_path / f"pico{size}" for size in SIZES]
    code, out, err = call("--pico", *folders, "--json", "--figures", "no")
    told = json.loads(out)
    assert (code, err) == (0, "")
    rows = {row["step"]: row for row in told["exponents"] if row["kind"] == "field"}
    table = pd.concat([measure_field(values(size, 10), ProbeSettings(seeds=(0, 1))) for size in SIZES])
    own = table.query("kind == 'field'")
    fit = fit_exponents(own["num_nodes"], own["size"], own["duration"])
    assert rows[10]["D"] == pytest.approx(fit.D.slope)
    v_rel = np.exp(np.log(own["efficiency"]).groupby(own["num_nodes"]).mean().mean())
    assert rows[10]["v_rel"] == pytest.approx(v_rel) and rows[10]["v_rel_low"] < v_rel < rows[10]["v_rel_high"]
    assert rows[20]["missing"] == "2 sizes, of 3 or more that it takes (mismatched names)"
    assert any("pico240, step 20: other tensors than before, such as 1.swiglu.w_2" in note for note in told["notes"])
    code, out, _ = call("--pico", *folders, "--sensitivity", "--tensors", "*v_proj", "--figures", "no")
    assert code == 0 and "*v_proj" in out


def test_runs_of_two_recipes_are_no_replicates(call, runs, tiny, tmp_path, capsys):
    words = ("width=6", "student.depths=[1,2]", "steps=40", "replicates=2", "gradients.points=14", "learning_rate=0.02")
    assert main(["train", *tiny, *words, f"hydra.run.dir={tmp_path}/other"]) == 0
    capsys.readouterr()
    code, out, err = call("--runs", runs, tmp_path / "other")
    assert (code, out) == (2, "") and "runs must be trained alike, got " in err and "with other recipes" in err


def test_models_sampled_to_one_size_are_told(call, tmp_path):
    paths = []
    for size in (60, 240, 960, 1500):
        paths.append(str(tmp_path / f"m{size}.npz"))
        np.savez(paths[-1], steps=STEPS[:2], fields=np.stack([values(size, step) for step in STEPS[:2]]))
    code, out, _ = call("--fields", *paths, "--max-nodes", 900, "--figures", "no")
    assert code == 0 and "note: fields: m960 and m1500 have 900 nodes each by --max-nodes, and are one size" in out


def test_capped_cascades_are_flagged_wherever_they_count(call, files, curve):
    code, out, _ = call("--fields", *files, "--curve", curve, "--cap", 2, "--sensitivity", "--figures", "no")
    parts = out.split("\n\n")
    assert code == 0 and all("capped: lower bounds" in part for part in parts[1:4])
    assert "cascades reached the cap" in parts[-2]
