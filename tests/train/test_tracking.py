"""What a job tells its tracker: curves of loss and alpha, the final alpha with its interval, the figures."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

from toydepth.cli import main as cli
from toydepth.train import main

COMMON = ("tracker=jsonl", "steps=20", "replicates=2", "student.depths=[1,2,3]", "average.decays=0.9")
STEPS = [0, 1, 3, 7, 20]
# Groups without a temperature, and two groups that differ in it alone.
JOBS = {"mse": (), "kl": ("loss=kl", "target.temperatures=[1,0.5]")}


@pytest.fixture(scope="module", params=list(JOBS))
def job(request, tiny, tmp_path_factory, compile_each_program_once, quick_compilation):
    """A job that has run: its folder, the lines of its tracker, and the rows of its fit.json."""
    folder = tmp_path_factory.mktemp("tracked") / request.param
    assert main([*tiny, *COMMON, *JOBS[request.param], f"hydra.run.dir={folder}"]) == 0
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    fits = json.loads((folder / "fit.json").read_text())["rows"]
    return SimpleNamespace(name=request.param, folder=folder, lines=lines, fits=fits)


def alpha_name(fit):
    temperature = "" if fit["temperature"] is None else f",temperature={fit['temperature']:g}"
    return f"alpha_ell/{fit['weights']},init={fit['init']}{temperature}"


def curves_of(job, prefix):
    """{step: {name: value}} of what was logged under the prefix."""
    found = {}
    for line in job.lines:
        named = {name: value for name, value in line.items() if name.startswith(prefix)}
        if named:
            assert line["step"] not in found
            found[line["step"]] = named
    return found


def test_alpha_of_every_group_is_tracked_at_every_evaluation(job):
    expected = {step: {} for step in STEPS}
    for fit in job.fits:
        expected[fit["step"]][alpha_name(fit)] = fit["alpha"]
    assert {len(names) for names in expected.values()} == {2 if job.name == "mse" else 4}
    assert curves_of(job, "alpha_ell/") == {step: pytest.approx(names) for step, names in expected.items()}


def test_mean_losses_over_replicates_are_tracked_at_every_evaluation(job):
    keys = ["depth"] if job.name == "mse" else ["depth", "temperature"]
    curves = pd.read_parquet(job.folder / "curves.parquet")
    for column in ("test_loss", "test_loss_average"):
        means = curves.groupby(["step", *keys])[column].mean()
        found = curves_of(job, f"{column}/")
        assert list(found) == STEPS
        for step, named in found.items():
            assert sorted(named.values()) == pytest.approx(sorted(means[step]))
            if job.name == "mse":
                assert named == {f"{column}/depth={d}": pytest.approx(means[step][d]) for d in (1, 2, 3)}


def test_the_summary_holds_what_the_fits_say(job, capsys):
    assert cli(["fit", str(job.folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said) == (2 if job.name == "mse" else 4) and {fit["step"] for fit in said} == {20}
    expected = {"status": "complete", "steps_done": 20}
    for fit in said:
        assert fit["low"] < fit["alpha"] < fit["high"]
        name = alpha_name(fit)
        expected |= {name: fit["alpha"], f"{name},low": fit["low"], f"{name},high": fit["high"]}
    (line,) = [line for line in job.lines if "summary/status" in line]
    summary = {name.removeprefix("summary/"): value for name, value in line.items() if name not in ("step", "time")}
    assert line["step"] == 20 and summary == {
        name: value if isinstance(value, str) else pytest.approx(value) for name, value in expected.items()
    }
    # Those of fit.json are the same numbers.
    last = {alpha_name(fit): [fit["alpha"], fit["low"], fit["high"]] for fit in job.fits if fit["last"]}
    assert last == {alpha_name(fit): [fit["alpha"], fit["low"], fit["high"]] for fit in said}


def test_figures_are_tracked_as_images_before_the_end(job):
    sent = [(name, path, line["step"]) for line in job.lines for name, path in line.items() if name[:6] == "image/"]
    drawn = sorted((job.folder / "figures").glob("*.png"))
    assert {"alpha_against_step", "loss_against_depth", "training_curves"} <= {path.stem for path in drawn}
    assert sent == [(f"image/{path.stem}", f"figures/{path.name}", 20) for path in drawn]
    assert job.lines[-1]["status"] == "complete" and job.lines[-1]["step"] == 20
