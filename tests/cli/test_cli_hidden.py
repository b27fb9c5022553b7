"""`toydepth hidden --runs`: the networks of runs, trained here for a few steps."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toydepth.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tiny):
    """Folders of a tied and an independent run, their teachers deep enough to show what they are."""
    folders = []
    for teacher in ("tied", "independent"):
        folder = tmp_path_factory.mktemp(teacher) / "run"
        words = (f"teacher={teacher}", "teacher.depth=48", "width=16", "student.depths=[3,6]", "steps=30")
        words += ("replicates=2",)
        assert main(["train", *tiny, *words, f"hydra.run.dir={folder}"]) == 0
        folders.append(str(folder))
    return folders


def call(capsys, *arguments):
    code = main(["hidden", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_tied_teachers_are_aligned_and_independent_ones_orthogonal(capsys, runs, tmp_path):
    capsys.readouterr()
    code, out, err = call(capsys, "--runs", *runs, "--folder", tmp_path, "--json")
    told = json.loads(out)
    assert code == 0 and not err
    teachers = {one["teacher"]: one for one in told["regimes"] if one["network"] == "teacher"}
    assert teachers["tied"]["verdict"] == "procedural" and teachers["tied"]["updates"] < 0.1
    assert teachers["independent"]["verdict"] == "ensemble averaging"
    assert teachers["independent"]["updates"] == pytest.approx(1, abs=0.1)
    layer = told["layers"][0]
    quantities = {"layer", "theta_states", "theta_updates", "norm", "progress", "tokens"}
    assert quantities | {"network", "teacher", "depth"} <= set(layer)
    table = pd.read_parquet(tmp_path / "hidden.parquet")
    # 2 runs of 2 teachers of 48 blocks, and of 2 replicates of students of 3 and 6.
    assert len(table) == len(told["layers"]) == 2 * (2 * 49 + 2 * (4 + 7))
    assert (table["tokens"] == 2048).all()
    assert json.loads((tmp_path / "hidden.json").read_text())["regimes"] == told["regimes"]
    assert (tmp_path / "hidden_states.png").stat().st_size > 10_000


def test_states_are_those_of_a_plain_loop(capsys, runs, tmp_path):
    """One teacher's stream again, block by block, from exported weights."""
    main(["export", runs[0], "--output", str(tmp_path / "weights.npz")])
    weights = np.load(tmp_path / "weights.npz")
    w1, b1, w2 = (weights[f"teacher/replicate=0/{name}"][0].astype(float) for name in ("w1", "b1", "w2"))
    call(capsys, "--runs", runs[0], "--folder", tmp_path, "--examples", 512, "--seed", 3)
    table = pd.read_parquet(tmp_path / "hidden.parquet")
    mine = table[(table.network == "teacher") & (table.replicate == 0)]
    import jax

    inputs = np.asarray(jax.random.normal(jax.random.key(3, impl="threefry2x32"), (512, 16)), float)
    state = inputs / np.sqrt((inputs**2).mean(axis=1, keepdims=True))
    norms = [np.linalg.norm(state, axis=1).mean()]
    for _ in range(48):
        normed = state / np.sqrt((state**2).mean(axis=1, keepdims=True))
        state = state + np.maximum(normed @ w1 + b1, 0) ** 2 @ w2
        norms.append(np.linalg.norm(state, axis=1).mean())
    assert mine["norm"].to_numpy() == pytest.approx(norms, rel=1e-4)


def test_a_folder_that_holds_runs_is_all_of_them(capsys, runs, tmp_path):
    above = str(Path(runs[0]).parent)
    told = json.loads(call(capsys, "--runs", above, runs[0], "--folder", tmp_path, "--json", "--examples", 64)[1])
    assert {one["run"] for one in told["regimes"]} == {runs[0]}
    assert len(told["regimes"]) == 2 + 4


def test_a_table_is_printed(capsys, runs, tmp_path):
    code, out, _ = call(capsys, "--runs", runs[0], "--folder", tmp_path, "--examples", 64, "--weights", "raw")
    assert code == 0
    assert "tied teacher (0)" in out and "procedural" in out and "hidden_states.png" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "runs or model must be given, one of them, got neither"),
        (("--runs", "RUN", "--model", "x"), "runs or model must be given, one of them, got both"),
        (("--model", "x"), "text must be files (txt, jsonl, parquet) or fineweb, got none"),
        (("--runs", "nowhere"), "nowhere"),
        (("--runs", "."), "runs must hold a record.json, in them or below, got ."),
        (("--runs", "RUN", "--examples", "0"), "num_examples must be 1 or more, got 0"),
        (("--runs", "RUN", "--folder", ""), "folder must be the name of a file or folder"),
        (("--runs", "RUN", "--weights", "mean"), "mean"),
    ],
)
def test_one_line_for_what_cannot_be_used(capsys, runs, arguments, words):
    code, out, err = call(capsys, *(runs[0] if word == "RUN" else word for word in arguments))
    assert (code, out) == (2, "") and err.count("\n") == 1 and words in err
