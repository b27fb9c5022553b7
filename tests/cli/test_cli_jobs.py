"""Jobs as a person or a script starts them: what is printed and left, trackers, signals in a sweep, export."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
import yaml

import toydepth.job
from toydepth import load_runs
from toydepth.bank.streams import make_streams
from toydepth.cli import main
from toydepth.runs import CURVE_COLUMNS, read_record

EPSILON = float(np.finfo(np.float32).eps)


@pytest.fixture(scope="module")
def bank(tmp_path_factory, tiny):
    """The folder of a complete run of three depths, both inits, and its overrides."""
    folder = tmp_path_factory.mktemp("bank") / "run"
    overrides = [*tiny, "student.depths=[1,2,3]", "student.init=[zero,euler]", "steps=12", "seed=5"]
    overrides += ["average.decays=[0.9]", f"hydra.run.dir={folder}"]
    assert main(["train", *overrides]) == 0
    return folder, overrides


def test_the_folder_of_a_run(bank):
    folder, overrides = bank
    figures = {f"{name}.{kind}" for name in ("loss_against_depth", "alpha_against_step", "training_curves")
               for kind in ("png", "svg")}  # fmt: skip
    assert {path.name for path in (folder / "figures").iterdir()} == figures
    files = {path.name for path in folder.iterdir()}
    assert files == {"checkpoints", "config.yaml", "curves.parquet", "figures", "fit.json", "record.json"}

    record = json.loads((folder / "record.json").read_text())
    assert (record["status"], record["steps_done"], record["precision"]) == ("complete", 12, "highest")
    assert record["overrides"] == overrides[:-1]
    assert {"python", "jax", "jaxlib", "flax", "optax", "numpy", "toydepth"} <= set(record["versions"])
    assert (record["device"]["platform"], record["device"]["count"]) == ("cpu", 1)
    assert record["seeds"] == {"seed": 5, "teacher": 5} and record["diverged"] == [] and record["warnings"] == []
    (floor,) = record["noise_floor"]
    assert (floor["loss"], floor["replicate"]) == ("mse", 0) and 0 < floor["floor"] < 1e-10
    (segment,) = record["segments"]
    assert (segment["from_step"], segment["to_step"], segment["device_count"]) == (0, 12, 1)
    assert yaml.safe_load((folder / "config.yaml").read_text()) == record["config"]

    curves = pd.read_parquet(folder / "curves.parquet")
    assert list(curves.columns) == list(CURVE_COLUMNS)
    assert len(curves) == 6 * 5 and curves["noise_floor"].eq(floor["floor"]).all()
    assert len(load_runs(folder)) == 30
    # The last evaluation has the kinds of weights and inits, each with its fit.
    rows = json.loads((folder / "fit.json").read_text())["rows"]
    last = {(row["init"], row["weights"]) for row in rows if row["step"] == 12}
    assert last == {(init, weights) for init in ("zero", "euler") for weights in ("raw", "average")}


def test_a_script_reads_one_json_list_and_a_finished_run_is_not_trained_again(bank, run_cli):
    folder, overrides = bank
    before = {name: (folder / name).read_bytes() for name in ("curves.parquet", "record.json")}
    done = run_cli("train", *overrides, "--json")
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1 and (job["run"], job["status"]) == (str(folder), "complete")
    assert len(job["fits"]) == 4 and "holds this run already" in done.stderr
    assert before == {name: (folder / name).read_bytes() for name in before}


@pytest.mark.parametrize("change", ["seed=6", "steps=13", "student.depths=[1,2]", "resume=false"])
def test_a_folder_is_never_written_over(bank, capsys, change):
    folder, overrides = bank
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["train", *overrides, change]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and str(folder) in err and "hydra.run.dir" in err
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def forward(x, w1, b1, w2, layers):
    """The model of docs/notation.md in float64; x (width, batch), weights with the layer axis first."""
    rms = lambda x: x / np.sqrt(np.mean(x**2, axis=0) + EPSILON)  # noqa: E731
    x = rms(x)
    for layer in range(layers):
        w_in, bias, w_out = (w[min(layer, len(w) - 1)].astype(float) for w in (w1, b1, w2))
        x = x + w_out.T @ np.maximum(w_in.T @ rms(x) + bias[:, None], 0) ** 2
    return rms(x)


def test_exported_weights_give_the_losses_of_the_curves(bank, capsys, tmp_path):
    folder, _ = bank
    assert main(["export", str(folder), "--output", str(tmp_path / "w.npz"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    with np.load(tmp_path / "w.npz") as file:
        arrays = dict(file)
    assert said == {"path": str(tmp_path / "w.npz"), "arrays": {n: list(a.shape) for n, a in arrays.items()}}
    assert int(arrays.pop("step")) == 12 and int(arrays.pop("teacher/depth")) == 4
    students = [f"student/depth={d},init={i},replicate=0" for d in (1, 2, 3) for i in ("zero", "euler")]
    names = ["teacher/replicate=0", *[f"{s}/{w}" for s in students for w in ("raw", "average=0.9")]]
    assert set(arrays) == {f"{name}/{leaf}" for name in names for leaf in ("w1", "b1", "w2")}
    for name in names:
        layers = 1 if name.startswith("teacher") else int(name[len("student/depth=")])
        shapes = [arrays[f"{name}/{leaf}"].shape for leaf in ("w1", "b1", "w2")]
        assert shapes == [(layers, 4, 16), (layers, 16), (layers, 16, 4)]

    inputs = np.asarray(jax.random.normal(make_streams(5).test, (64, 4))).T.astype(float)
    run = lambda name, depth: forward(inputs, *(arrays[f"{name}/{leaf}"] for leaf in ("w1", "b1", "w2")), depth)  # noqa: E731
    target = run("teacher/replicate=0", 4)
    curves = pd.read_parquet(folder / "curves.parquet")
    for _, row in curves[curves["step"] == 12].iterrows():
        name = f"student/depth={row['depth']},init={row['init']},replicate=0"
        for weights, column in (("raw", "test_loss"), ("average=0.9", "test_loss_average")):
            loss = np.mean((run(f"{name}/{weights}", row["depth"]) - target) ** 2)
            assert loss == pytest.approx(row[column], rel=1e-4)


def test_export_tells_a_damaged_checkpoint_from_a_missing_one(bank, capsys, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(bank[0], run)
    again = " Train the run in another folder (hydra.run.dir): it ends with one."
    (run / "checkpoints" / "12" / "story" / "metadata").write_text("{")
    assert main(["export", str(run)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == f"toydepth export: {run}/checkpoints must hold a checkpoint, got only unreadable ones.{again}"
    shutil.rmtree(run / "checkpoints")
    assert main(["export", str(run)]) == 2
    assert capsys.readouterr().err == f"toydepth export: {run}/checkpoints must hold a checkpoint, got none.{again}\n"
    record = read_record(run)
    record.status = "interrupted"
    record.write(run)
    assert main(["export", str(run)]) == 2
    assert capsys.readouterr().err.endswith("got none. Start the run again: it ends with one.\n")
    assert not list(run.glob("*.npz"))


def test_teacher_and_head_of_a_kl_run_are_exported(tiny, tmp_path, capsys):
    words = [
        "loss=kl",
        "student.head=learned",
        "teacher=independent",
        "student.depths=[0,1]",
        "steps=2",
        "eval.points=1",
    ]
    folder = tmp_path / "run"
    words += ["target.temperatures=[0.5,1]", "average.decays=[]", "student=rk2", f"hydra.run.dir={folder}"]
    assert main(["train", *tiny, *words]) == 0
    capsys.readouterr()
    assert main(["export", str(folder)]) == 0
    assert capsys.readouterr().out.startswith(f"{folder}/weights.npz: ")
    with np.load(folder / "weights.npz") as file:
        shapes = {name: array.shape for name, array in file.items()}
    assert shapes["teacher/replicate=0/w1"] == (4, 4, 16) and shapes["teacher/replicate=0/head"] == (4, 5)
    arm = "student/depth=1,temperature=0.5,init=zero,replicate=0/raw"
    assert shapes[f"{arm}/head"] == (4, 5)
    assert shapes[f"{arm}/mlp_1/w1"] == (1, 4, 16) and shapes[f"{arm}/mlp_2/w2"] == (1, 16, 4)
    assert shapes["student/depth=0,temperature=1,init=zero,replicate=0/raw/head"] == (4, 5)


# One program for all of them: steps are what a schedule is compiled with, depths what a step is.
SWEEP = ("student.depths=2", "steps=64", "average.decays=[]", "schedule.decay_fraction=0.9")


@pytest.mark.parametrize("number, expected", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_sweep_and_the_same_command_goes_on_bit_for_bit(
    tiny, tmp_path, capsys, monkeypatch, number, expected
):
    line = toydepth.job.ProgressLine

    class Interrupting(line):
        """Sends the signal once, in the learning-rate decay of the first job, between two evaluations."""

        sent = False

        def update(self, step, losses):
            if step > 20 and not Interrupting.sent:
                Interrupting.sent = True
                os.kill(os.getpid(), number)

    def sweep(name):
        where = [f"hydra.sweep.dir={tmp_path / name}", "hydra.sweep.subdir=${hydra:job.num}"]
        code = main(["train", *tiny, *SWEEP, "-m", "eval.points=2,3", *where, "--json"])
        return code, json.loads(capsys.readouterr().out)

    def record(folder):
        return json.loads((folder / "record.json").read_text())

    # Short chunks, so that there is a moment to stop at.
    monkeypatch.setattr(toydepth.bank.loop, "CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(toydepth.job, "ProgressLine", Interrupting)
    code, jobs = sweep("broken")
    first, second = (tmp_path / "broken" / n for n in "01")
    assert code == expected and [job["status"] for job in jobs] == ["interrupted"] and not second.exists()
    stopped = record(first)
    assert stopped["status"] == "interrupted" and 20 < stopped["steps_done"] < 64
    assert main(["fit", str(first)]) == 2 and "status is interrupted" in capsys.readouterr().err
    monkeypatch.setattr(toydepth.job, "ProgressLine", line)
    if number == signal.SIGINT:
        return

    code, jobs = sweep("broken")
    assert code == 0 and [job["status"] for job in jobs] == ["complete", "complete"]
    segments = record(first)["segments"]
    assert [(s["from_step"], s["to_step"]) for s in segments] == [
        (0, stopped["steps_done"]),
        (stopped["steps_done"], 64),
    ]
    assert sweep("whole")[0] == 0
    for job in "01":
        weights = []
        for name in ("broken", "whole"):
            folder = tmp_path / name / job
            assert main(["export", str(folder)]) == 0
            with np.load(folder / "weights.npz") as file:
                weights.append({key: array.tobytes() for key, array in file.items()})
        assert weights[0] == weights[1]
        tables = [pd.read_parquet(tmp_path / name / job / "curves.parquet") for name in ("broken", "whole")]
        pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_three_jobs_of_a_sweep_are_three_wandb_runs_with_their_own_configs(tiny, tmp_path, capsys, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    where = [f"hydra.sweep.dir={tmp_path}", "hydra.sweep.subdir=job${hydra:job.num}"]
    words = [*tiny, *SWEEP, "-m", "eval.points=2,3,4", "tracker=wandb", "tracker.mode=offline", "name=three", *where]
    try:
        assert main(["train", *words]) == 0
    finally:
        wandb.teardown()
    out, err = capsys.readouterr()
    assert out.count("tracker: wandb sync ") == 3 and err == ""
    for number in range(3):
        folder = tmp_path / f"job{number}"
        found = inspect(folder)
        config = yaml.safe_load((folder / "config.yaml").read_text())
        assert config["optimizer"].pop("options") == {}  # W&B keeps no empty dict
        assert found["config"] == config and config["eval"]["points"] == number + 2
        assert (found["project"], found["exit_code"]) == ("toydepth", 0)
        assert found["name"] == f"three/job{number}" and found["summary"]["status"] == "complete"
        curves = pd.read_parquet(folder / "curves.parquet")
        last = curves.loc[curves["step"] == 64, "test_loss"].item()
        assert found["summary"]["test_loss/depth=2"] == pytest.approx(last)
    assert not (tmp_path / "wandb").exists()


def inspect(folder: Path) -> dict:
    (run,) = (folder / "wandb").glob("*run-*/")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--summary", "--json", str(run)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_every_job_of_a_sweep_counts_for_the_exit_code(tiny, tmp_path, capsys):
    where = [f"hydra.sweep.dir={tmp_path}", "hydra.sweep.subdir=${hydra:job.num}"]
    code = main(["train", *tiny, *SWEEP, "-m", "eval.points=0,2,-1", *where, "--json"])
    out, err = capsys.readouterr()
    assert code == 2 and [Path(job["run"]).name for job in json.loads(out)] == ["1"]
    said = [line for line in err.splitlines() if line.startswith("toydepth train: eval.points must be ")]
    assert [line.split("got ")[1] for line in said] == ["0.", "-1."]


def test_a_run_of_which_nothing_can_be_fitted_says_why(tiny, tmp_path, capsys):
    folder = tmp_path / "run"
    words = [*tiny, "student.depths=2", "steps=64", "optimizer.name=sgd", "learning_rate=1e30", "student.init=euler"]
    code = main(["train", *words, f"hydra.run.dir={folder}", "--json"])
    out, err = capsys.readouterr()
    (job,) = json.loads(out)
    assert (code, job["status"], job["fits"]) == (3, "diverged", []) and job["why_no_fit"]
    assert "Traceback" not in err and "no fit: " in err
    record = json.loads((folder / "record.json").read_text())
    assert record["status"] == "diverged" and record["steps_done"] < 64
    (arm,) = record["diverged"]
    assert 0 <= arm["last_finite_step"] < arm["first_non_finite_step"] <= record["steps_done"]
    assert json.loads((folder / "fit.json").read_text())["rows"] == []
    # What diverged stays so: it is read again, with the same exit code.
    assert main(["train", *words, f"hydra.run.dir={folder}"]) == 3
    assert "read, not run again" in capsys.readouterr().out
