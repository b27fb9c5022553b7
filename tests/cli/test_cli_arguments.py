"""The command line before it does anything: help, and one line for what it cannot use."""

import json
import subprocess
import sys

import numpy as np
import pytest

from toydepth.cli import main
from toydepth.config import TrainConfig, to_dict
from toydepth.runs import RunRecord, make_curves, read_curves, write_curves

LABELS = {
    **{
        "experiment": "made",
        "teacher": "tied",
        "rho": None,
        "teacher_depth": 64,
        "recipe": "a1b2",
        "width": 8,
        "vocabulary": 0,
    },
    **{"loss": "mse", "head": "none"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made(depths): the folder of a finished run whose loss is depth^-1.5, written without training."""

    def make(*depths, status="complete"):
        folder = tmp_path_factory.mktemp("made")
        arms = [
            {
                **{"arm": index, "depth": depth, "mlp_evaluations": depth, "temperature": None, "init": "zero"},
                **{"block": "euler", "replicate": 0, "teacher_seed": 0, "average_decay": None},
                **{"noise_floor": 1e-14, "diverged": False},
            }
            for index, depth in enumerate(depths)
        ]
        loss = np.array([[1.0] * len(depths), [depth**-1.5 for depth in depths]])
        steps = {"step": np.array([0, 10]), "samples": np.array([0, 160])}
        rates = {name: np.full(loss.shape, 0.1) for name in ("tau", "learning_rate")}
        losses = {"train_loss": loss, "test_loss": loss, "standard_error": loss / 100}
        write_curves(folder, make_curves(LABELS, arms, steps | rates | losses))
        RunRecord("made", {}, "a1b2", status=status).write(folder)
        return folder

    return make


@pytest.fixture(scope="module")
def run(made):
    return str(made(3, 4, 6, 8))


def call(capsys, *arguments):
    code = main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    return code, out, err


REFUSED = {
    ("--jsn",): "Unrecognized options: --jsn. Did you mean '--json'?",
    ("--qqq",): "Unrecognized options: --qqq. ",
    ("--weights", "avrage"): "invalid choice 'avrage' for argument '--weights'",
    ("--confidence", "x"): "Error parsing --confidence: could not convert string to float: 'x'.",
    ("--confidence", "95"): "confidence must be a number between 0 and 1, got 95",
    ("--window", "3"): "Error parsing --window: ",
    ("--window", "6", "3"): "window must be a pair with lowest <= highest, got (6.0, 3.0).",
    ("--window", "3", "4"): "depths must be at least 3 distinct depths after exclusions, got 3, 4",
    ("--offset", "99"): "offset must be less than every depth used",
    ("--noise-factor", "-1"): "noise_factor must be ",
    ("--seed", "1.5"): "Error parsing --seed: ",
    ("--seed", "-1"): "seed must be ",
}


@pytest.mark.parametrize("options", REFUSED, ids=" ".join)
def test_fit_refuses_in_one_line(capsys, run, options):
    code, out, err = call(capsys, "fit", run, *options)
    assert (code, out, len(err.splitlines())) == (2, "", 1), err
    assert err.startswith(f"toydepth fit: {REFUSED[options]}")


@pytest.mark.parametrize("command", ["fit", "figures"])
def test_no_runs_and_missing_paths(capsys, tmp_path, command):
    for paths, message in (
        ((), "runs must be the folder of a run, or several, got none. Name one after the command."),
        (("",), "paths must be the folder of a run or a list of such, got ''."),
        ((tmp_path,), f"paths must hold at least one finished run, got none ({tmp_path}: no record.json in it)"),
        ((tmp_path / "no" / "such",), f"paths must exist, got {tmp_path}/no/such."),
    ):
        code, out, err = call(capsys, command, *paths)
        assert (code, out, len(err.splitlines())) == (2, "", 1), err
        assert err.startswith(f"toydepth {command}: {message}")


def test_fewer_than_3_depths_in_all_runs_together(capsys, made):
    first, second = made(3), made(6)
    code, out, err = call(capsys, "fit", first, second, "--json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "at least 3 distinct depths, got depths 3, 6" in err
    code, out, err = call(capsys, "fit", first, second, made(12), "--json")
    assert (code, err) == (0, "") and json.loads(out)[0]["alpha"] == pytest.approx(1.5, abs=1e-6)


def test_a_run_that_has_not_ended_is_left_out_and_said(capsys, made, run):
    broken = made(12, status="interrupted")
    code, _, err = call(capsys, "fit", run, broken, "--json")
    assert code == 0 and err == f"left out: {broken}: status is interrupted\n"
    code, _, err = call(capsys, "fit", broken)
    assert code == 2 and "status is interrupted" in err and "(--allow-unfinished)" in err


def test_export_and_figures_refuse_in_one_line(capsys, run, tmp_path):
    for arguments, message in {
        ("export",): "toydepth export: Missing from toydepth export: STR",
        ("export", tmp_path): f"toydepth export: {tmp_path}/record.json must be the record of a run",
        ("export", run, "more"): "toydepth export: Unrecognized options: more.",
        ("export", ""): "toydepth export: run must be the name of a file or folder, got ''.",
        ("export", run, "--output", f"{run}/record.json"): "toydepth export: output must be a name that ends in .npz, ",
        ("export", run, "--output", ""): "toydepth export: output must be the name of a file or folder, got ''.",
        ("figures", run, "--folder", ""): "toydepth figures: folder must be the name of a file or folder, got ''.",
        ("figures", run, "--folder", "/proc/nope"): "toydepth figures: /proc/nope must be readable or writable, got: ",
    }.items():
        code, out, err = call(capsys, *arguments)
        assert (code, out, len(err.splitlines())) == (2, "", 1), err
        assert err.startswith(message)


def test_a_command_that_does_not_exist(capsys):
    code, out, err = call(capsys, "fti")
    assert (code, out) == (2, "")
    known = "train | fit | figures | law | hidden | utility | trace | transport | export"
    assert err == f"toydepth: command must be one of {known}, got fti. Did you mean 'fit'?\n"
    code, out, err = call(capsys, "--qqq")
    assert (code, out, len(err.splitlines())) == (2, "", 1) and err.startswith("toydepth: Unrecognized options: --qqq.")


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), ("train", "fit", "figures", "export")),
        (("--help",), ("train", "fit", "figures", "export")),
        (("fit", "--help"), ("--weights", "--all-steps", "--json", "--window")),
        (("figures", "--help"), ("--folder",)),
        (("export", "--help"), ("--output",)),
        (("train", "--help"), ("steps", "teacher", "experiment")),
        (("train", "--cfg", "job"), ("steps: 20000", "depths:")),
        (("train", "+experiment=tied", "seed=7", "--cfg", "job"), ("seed: 7", "name: tied")),
    ],
)
def test_help_and_the_composed_config(capsys, arguments, words):
    code, out, err = call(capsys, *arguments)
    assert (code, err) == (0, "")
    assert all(word in out for word in words)


def test_the_training_module_shows_its_config_without_jax(repository, tmp_path):
    show = "import sys; from toydepth.train import main; code = main(['--cfg', 'job']); "
    check = "sys.exit(code or ('jax' in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", show + check],
        **{"cwd": tmp_path, "env": {"PYTHONPATH": str(repository), "PATH": ""}},
        **{"capture_output": True, "text": True, "timeout": 120},
    )
    assert done.returncode == 0, done.stderr
    assert "steps: 20000" in done.stdout and not list(tmp_path.iterdir())


def test_fit_prints_one_json_list_with_what_scripts_need(capsys, run):
    code, out, err = call(capsys, "fit", run, "--json", "--all-steps")
    rows = json.loads(out)
    assert (code, err) == (0, "") and {row["step"] for row in rows} == {0, 10}
    names = "experiment teacher init block loss temperature weights step alpha low high replicates depths verdict"
    assert all(set(names.split()) <= set(row) for row in rows)
    code, out, _ = call(capsys, "fit", run, "--json")
    (last,) = json.loads(out)
    assert last["step"] == 10 and last["weights"] == "raw" and last["alpha"] == pytest.approx(1.5, abs=1e-6)


def test_figures_are_drawn_where_they_are_wanted(capsys, run, tmp_path):
    code, out, err = call(capsys, "figures", run, "--folder", tmp_path / "here", "--json")
    found = {str(path) for path in (tmp_path / "here").iterdir()}
    assert code == 0 and err == "" and set(json.loads(out)["paths"]) == found
    assert {path.rsplit(".", 1)[1] for path in found} == {"png", "svg"}


CONFIG = to_dict(TrainConfig())
BROKEN_CONFIGS = [
    ({}, "no config.name"),
    ({key: CONFIG[key] for key in CONFIG if key != "student"}, "no config.student"),
    ({**CONFIG, "student": {}}, "no config.student.depths"),
    ({**CONFIG, "student": 3}, "config.student 3"),
    ({**CONFIG, "width": "8"}, "config.width '8'"),
    ({**CONFIG, "seed": None}, "config.seed None"),
    ({**CONFIG, "resume": "yes"}, "config.resume 'yes'"),
    ({**CONFIG, "mood": 1}, "an unknown config.mood"),
    ({**CONFIG, "loss": {"name": "mse", "mood": 1}}, "an unknown config.loss.mood"),
    ({**CONFIG, "width": 0}, "one in which width must be a whole number, at least 1, got 0"),
]


@pytest.mark.parametrize(("config", "got"), BROKEN_CONFIGS, ids=[got for _, got in BROKEN_CONFIGS])
def test_export_names_the_record_whose_config_is_none(capsys, tmp_path, config, got):
    RunRecord("made", config, "a1b2", status="complete").write(tmp_path)
    code, out, err = call(capsys, "export", tmp_path)
    assert (code, out) == (2, "")
    assert err == (
        f"toydepth export: {tmp_path}/record.json must be the record of a run with its whole config, got {got}. "
        "Restore the file, or export with the version of toydepth that trained the run.\n"
    )


def test_figures_say_once_that_there_is_no_row(capsys, made):
    folder = made(3, 4, 6)
    write_curves(folder, read_curves(folder).iloc[:0])
    code, out, err = call(capsys, "figures", folder)
    assert (code, out, len(err.splitlines())) == (2, "", 1), err
    assert err.startswith("toydepth figures: curves must be a table with at least one row, got 0 rows.")


@pytest.mark.parametrize("command", ["fit", "figures", "export"])
def test_an_interrupt_ends_with_130_and_no_traceback(capsys, monkeypatch, run, command):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("toydepth.runs.load_runs", interrupt)
    monkeypatch.setattr("toydepth.weights.read_record", interrupt)
    assert call(capsys, command, run) == (130, "", "")


def test_an_interrupt_within_a_callback_ends_the_command(repository):
    # jax has such a callback, for the collector of garbage: there, Python itself would print a traceback and go on.
    code = """if True:
        import gc, sys, toydepth.runs
        def callback(*arguments):
            raise KeyboardInterrupt
        def collect(*arguments, **options):
            gc.callbacks.append(callback)
            gc.collect()
        toydepth.runs.load_runs = collect
        from toydepth.cli import main
        sys.exit(main(["fit", "."]))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_help_loads_no_large_library(repository):
    code = (
        "import sys; from toydepth.cli import main; main(['fit', '--help']); print(sys.modules.keys(), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not any(f"'{name}'" in done.stderr for name in ("pandas", "jax", "matplotlib"))


def test_a_reader_that_has_read_enough_is_no_traceback():
    command = [sys.executable, "-m", "toydepth.cli", "law", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
