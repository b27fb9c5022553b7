"""Jobs from end to end: what they leave, sweeps, starting again, divergence, signals, export."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

import toydepth.job
from toydepth.bank import Bank
from toydepth.bank.checkpoint import Checkpoints
from toydepth.cli import main as cli
from toydepth.config.files import folder_name
from toydepth.runs import CURVE_COLUMNS

SHORT = ("steps=20", "student.depths=[1,2,3]", "replicates=2")


def test_a_run_leaves_the_whole_truth(train, record, tmp_path, capsys):
    code, out, _ = train(*SHORT, "student.init=[zero,euler]", "average.decays=[0.9,0.5]", "--json")
    (job,) = json.loads(out)
    assert code == 0 and job["status"] == "complete"
    needed = [
        "experiment",
        "teacher",
        "init",
        "block",
        "loss",
        "temperature",
        "weights",
        "step",
        "alpha",
        "low",
        "high",
        "replicates",
        "depths",
        "verdict",
    ]
    assert all(name in fit for fit in job["fits"] for name in needed)
    assert {(f["init"], f["weights"], f["average_decay"]) for f in job["fits"]} == {
        (init, *w) for init in ("zero", "euler") for w in (("raw", None), ("average", 0.9), ("average", 0.5))
    }
    folder = tmp_path / "run"
    assert yaml.safe_load((folder / "config.yaml").read_text())["student"]["depths"] == [1, 2, 3]
    found = record(folder)
    assert found["status"] == "complete" and found["precision"] == "highest" and found["noise_floor"]
    assert found["versions"]["jax"] and found["config_hash"] and found["seeds"] == {"seed": 0, "teacher": 0}
    curves = pd.read_parquet(folder / "curves.parquet")
    assert list(curves.columns)[: len(CURVE_COLUMNS)] == list(CURVE_COLUMNS)
    assert sorted(curves["step"].unique()) == [0, 1, 3, 7, 20] and len(curves) == 5 * 12
    assert json.loads((folder / "fit.json").read_text())["rows"]
    names = {p.name for p in (folder / "figures").iterdir()}
    assert {"loss_against_depth.png", "alpha_against_step.svg", "training_curves.png"} <= names

    # The command line reads it back, and gives the same exponents.
    assert cli(["fit", str(folder), "--json"]) == 0
    again = {(f["init"], f["weights"], f["average_decay"]): f["alpha"] for f in json.loads(capsys.readouterr().out)}
    assert again == {(f["init"], f["weights"], f["average_decay"]): f["alpha"] for f in job["fits"]}

    # The same command reads it too; another config is refused, and so is starting over.
    before = (folder / "curves.parquet").read_bytes()
    same = (*SHORT, "student.init=[zero,euler]", "average.decays=[0.9,0.5]")
    assert train(*same)[0] == 0
    code, _, err = train(*same, "seed=1")
    assert code == 2 and "must be empty or hold a run of this config" in err
    code, _, err = train(*same, "resume=false")
    assert code == 2 and "resume must be true" in err
    assert (folder / "curves.parquet").read_bytes() == before

    weights = export(folder, capsys)
    assert weights["teacher/replicate=0/w1"].shape == (1, 4, 16) and weights["teacher/depth"] == 4
    name = "student/depth=3,init=euler,replicate=1"
    assert weights[f"{name}/raw/w2"].shape == (3, 16, 4) and weights["step"] == 20
    assert np.abs(weights[f"{name}/raw/w2"] - weights[f"{name}/average=0.9/w2"]).max() > 0


def export(folder, capsys):
    assert cli(["export", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    loaded = dict(np.load(said["path"]))
    assert {name: list(array.shape) for name, array in loaded.items()} == said["arrays"]
    return loaded


def test_a_sweep_over_depth_gives_the_exponent_of_one_bank(train, tmp_path, capsys):
    assert train(*SHORT, run="bank")[0] == 0
    sweep = tmp_path / "sweep"
    where = (f"hydra.sweep.dir={sweep}", "hydra.sweep.subdir=${hydra:job.num}")
    code, _, _ = train("-m", "steps=20", "replicates=2", "student.depths=1,2,3", "tracker=jsonl", *where)
    assert code == 0
    jobs = [sweep / str(number) for number in range(3)]
    for depth, job in enumerate(jobs, start=1):
        assert yaml.safe_load((job / "config.yaml").read_text())["student"]["depths"] == [depth]
        lines = [json.loads(line) for line in (job / "metrics.jsonl").read_text().splitlines()]
        assert any(f"test_loss/depth={depth}" in line for line in lines)

    def alphas(*paths):
        assert cli(["fit", *map(str, paths), "--json"]) == 0
        return [(fit["weights"], fit["alpha"]) for fit in json.loads(capsys.readouterr().out)]

    for (weights, one), (other, many) in zip(alphas(tmp_path / "bank"), alphas(*jobs), strict=True):
        assert weights == other and many == pytest.approx(one, rel=1e-4)
    code = cli(["fit", str(jobs[0])])
    assert code == 2 and "at least 3 distinct depths" in capsys.readouterr().err


def test_a_failed_job_of_a_sweep_is_said_and_the_next_runs(train, tmp_path):
    where = (f"hydra.sweep.dir={tmp_path}", "hydra.sweep.subdir=${hydra:job.num}")
    code, _, err = train("-m", "steps=0,2", "student.depths=1", *where)
    assert code == 2 and "steps must be a whole number" in err
    assert (tmp_path / "1" / "curves.parquet").exists()


def test_all_arms_diverged_is_exit_code_3(train, record, tmp_path):
    # A head of its own goes to infinity; without one, rms would bound every loss.
    wild = ("loss=kl", "student.head=learned", "optimizer.name=sgd", "learning_rate=1e38")
    code, _, _ = train(*wild, *SHORT)
    found = record(tmp_path / "run")
    assert code == 3 and found["status"] == "diverged" and len(found["diverged"]) == 6
    assert all(d["first_non_finite_step"] > d["last_finite_step"] for d in found["diverged"])
    curves = pd.read_parquet(tmp_path / "run" / "curves.parquet")
    assert np.isfinite(curves["test_loss"]).all() and curves["diverged"].all()


def last_step(folder):
    """The step that the run's tracker was told last, 0 before."""
    metrics = Path(folder) / "metrics.jsonl"
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    return max((json.loads(line).get("step", 0) for line in lines if line.endswith("}")), default=0)


def test_folders_of_two_jobs_differ():
    long = ",".join(f"target.temperatures=[{i}]" for i in range(30))
    names = [folder_name("tied", text) for text in ("", "seed=1", "seed=1/2", "seed=1_2", long, long + "0")]
    assert len(set(names)) == len(names) and all("/" not in n and len(n) < 150 for n in names)


@pytest.mark.parametrize("number, expected", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_is_answered_and_the_run_goes_on_bit_for_bit(repository, tmp_path, record, capsys, number, expected):
    common = [
        "width=4",
        "teacher.depth=4",
        "batch_size=16",
        "eval.samples=64",
        "device.count=1",
        "tracker=jsonl",
        "steps=60000",
    ]
    command = [sys.executable, "-m", "toydepth.cli", "train", *common, "student.depths=[1,2]", "eval.points=30"]
    env = os.environ | {"PYTHONPATH": str(repository)}
    folder = tmp_path / "run"

    def start(where):
        return subprocess.Popen([*command, f"hydra.run.dir={where}"], env=env, cwd=tmp_path, stderr=subprocess.DEVNULL)

    process = start(folder)
    # Signalled inside the decay of the learning rate, which is the last 70 % of the steps.
    deadline = time.monotonic() + 240
    while last_step(folder) < 18000 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(number)
    assert process.wait(timeout=120) == expected
    stopped = record(folder)
    assert stopped["status"] == "interrupted" and 18000 <= stopped["steps_done"] < 60000
    if number == signal.SIGINT:
        return
    assert start(folder).wait(timeout=300) == 0
    assert start(tmp_path / "unbroken").wait(timeout=300) == 0
    assert record(folder)["segments"][1]["from_step"] == stopped["steps_done"]
    broken, whole = (pd.read_parquet(Path(f) / "curves.parquet") for f in (folder, tmp_path / "unbroken"))
    pd.testing.assert_frame_equal(broken, whole, check_exact=True)
    ours, theirs = export(folder, capsys), export(tmp_path / "unbroken", capsys)
    assert ours.keys() == theirs.keys() and ours["step"] == 60000
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_a_killed_run_keeps_what_its_checkpoints_had_paid_for(train, record, tmp_path, monkeypatch):
    class Killed(BaseException):
        """The process ends without a word, right after a checkpoint."""

    saved = Checkpoints.save

    def save(self, step, state, story):
        saved(self, step, state, story)
        if step == 13:
            raise Killed

    words = (*SHORT, "checkpoint.every_seconds=1e-9", "student.depths=[1,5]")
    monkeypatch.setattr("toydepth.bank.loop._FIRST_CHUNK", 3)
    monkeypatch.setattr("toydepth.bank.loop.CHUNK_SECONDS", 1e-9)
    monkeypatch.setattr(Checkpoints, "save", save)
    with pytest.raises(Killed):
        train(*words)
    cut = record(tmp_path / "run")
    assert cut["status"] == "running" and cut["warnings"] and cut["segments"][0]["to_step"] == 10
    monkeypatch.setattr(Checkpoints, "save", saved)
    assert train(*words)[0] == 0
    done = record(tmp_path / "run")
    assert done["status"] == "complete" and done["warnings"] == cut["warnings"] and len(done["segments"]) == 2
    assert done["wall_seconds"] > cut["wall_seconds"] > 0
    assert done["segments"][0] == cut["segments"][0] and done["segments"][1]["from_step"] == 13


def test_jobs_that_ended_are_told_even_when_a_fault_of_ours_ends_the_sweep(train, tmp_path, capsys, monkeypatch):
    made = toydepth.job.make_bank

    def fails_for_two(config, layout):
        return made(config, layout) if config.student.depths == (1,) else {}["nothing"]

    monkeypatch.setattr("toydepth.job.make_bank", fails_for_two)
    where = (f"hydra.sweep.dir={tmp_path}", "hydra.sweep.subdir=${hydra:job.num}")
    with pytest.raises(KeyError):
        train("-m", "steps=2", "student.depths=1,2", *where, "--json")
    (job,) = json.loads(capsys.readouterr().out)
    assert (job["run"], job["status"]) == (str(tmp_path / "0"), "complete")


def test_too_little_memory_is_one_line_and_exit_code_1(train, monkeypatch):
    def fails(*_):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.\nBuffer assignment: ...")

    monkeypatch.setattr("toydepth.job.make_bank", fails)
    code, _, err = train("steps=2")
    assert code == 1 and err.count("\n") == 1 and "out of memory: Out of memory allocating 8 bytes. Lower width" in err


def test_an_interrupted_run_says_how_it_goes_on(train, record, tmp_path, monkeypatch):
    monkeypatch.setattr("toydepth.bank.loop._FIRST_CHUNK", 3)
    monkeypatch.setattr("toydepth.bank.loop.CHUNK_SECONDS", 1e-9)
    advance = Bank.advance

    def signalled(self, state, stop):
        os.kill(os.getpid(), signal.SIGINT)
        return advance(self, state, stop)

    monkeypatch.setattr(Bank, "advance", signalled)
    code, out, err = train(*SHORT)
    said = out + err
    assert code == 130 and record(tmp_path / "run")["status"] == "interrupted"
    assert "interrupted at step 1 of 20, which is saved" in said and "the same command goes on" in said


def test_an_optimizer_that_cannot_work_is_refused_before_anything_is_compiled(train, monkeypatch):
    monkeypatch.setattr("toydepth.bank.bank._draw_teachers", lambda *_: pytest.fail("something was compiled"))
    for name, options in (("lbfgs", []), ("adam", ["+optimizer.options.b1=null"]), ("scale_by_rprop", [])):
        code, _, err = train(f"optimizer.name={name}", *options)
        assert code == 2 and err.count("\n") == 1 and err.startswith("toydepth train: optimizer"), err


@pytest.mark.parametrize(
    ("segments", "warned"),
    [
        ([{"device_count": 2, "kernel": "native"}] * 2, 0),
        ([{"device_count": 2}, {"device_count": 2, "kernel": "xla"}], 0),
        ([{"device_count": 2, "kernel": "native"}, {"device_count": 2, "kernel": "xla"}], 1),
        ([{"device_count": 2}, {"device_count": 1, "kernel": "native"}], 2),
    ],
)
def test_segments_that_round_in_two_ways_are_told(segments, warned):
    record = SimpleNamespace(segments=segments, warnings=[])
    outcome = SimpleNamespace(status="complete", steps_per_second=1.0, story=SimpleNamespace(diverged={}))
    toydepth.job._fill_record(record, SimpleNamespace(arms=[]), outcome)  # type: ignore[arg-type]
    assert len(record.warnings) == warned and all("not bitwise" in line for line in record.warnings)
