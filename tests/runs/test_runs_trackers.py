"""Trackers: the JSON lines, the guard, the names, and that nothing imports wandb before it is chosen."""

import json
import re
import subprocess
import sys

import pytest

from toydepth.errors import InputError
from toydepth.runs import SafeTracker, TrackedRun, make_tracker
from toydepth.runs.trackers import JsonlTracker, NoTracker


def read_lines(folder):
    lines = [
        json.loads(line, parse_constant=pytest.fail) for line in (folder / "metrics.jsonl").read_text().splitlines()
    ]
    assert all(line.pop("time") > 1.7e9 for line in lines)
    return lines


@pytest.fixture
def track(tmp_path):
    """Logs `steps` to metrics.jsonl, then does what the end of a run does."""

    def run(steps, resumed_from=None, status="complete"):
        tracker = JsonlTracker()
        tracker.start(TrackedRun(tmp_path, "demo", resumed_from=resumed_from))
        for step in steps:
            tracker.log({"loss": 1 / (step + 1)}, step)
        if status is not None:
            tracker.finish(status)
        elif tracker._file:
            tracker._file.close()  # killed
        assert tracker.warnings == []
        return [line["step"] for line in read_lines(tmp_path) if "loss" in line]

    return run


def test_jsonl_writes_a_line_a_call(tmp_path):
    tracker = make_tracker("jsonl")
    tracker.start(TrackedRun(tmp_path, "demo"))
    tracker.log({"loss": 0.5, "rate": float("nan"), "step": 99, "time": 0}, 10)
    tracker.image("curves", tmp_path / "figures" / "curves.png", 10)
    tracker.image("other", tmp_path.parent / "other.png", 10)
    tracker.summary({"alpha": 1.0, "interval": [0.9, 1.1]})
    tracker.finish("complete")
    tracker.finish("complete")
    assert tracker.where == str(tmp_path / "metrics.jsonl")
    assert read_lines(tmp_path) == [
        {"step": 10, "loss": 0.5, "rate": None},
        {"step": 10, "image/curves": "figures/curves.png"},
        {"step": 10, "image/other": str(tmp_path.parent / "other.png")},
        {"step": 10, "summary/alpha": 1.0, "summary/interval": [0.9, 1.1]},
        {"step": 10, "status": "complete"},
    ]
    assert not tracker.is_off


def test_what_was_logged_is_there_before_the_end(tmp_path):
    tracker = JsonlTracker()
    tracker.start(TrackedRun(tmp_path, "demo"))
    tracker.log({"loss": 0.5}, 10)
    assert read_lines(tmp_path) == [{"step": 10, "loss": 0.5}]
    tracker.finish("interrupted")


def test_resuming_doubles_no_step(track, tmp_path):
    assert track([0, 10, 20, 30], status=None) == [0, 10, 20, 30]
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4')  # killed within a line
    assert track([30, 40], resumed_from=20) == [0, 10, 20, 30, 40]
    assert track([50], resumed_from=40) == [0, 10, 20, 30, 40, 50]


def test_resuming_without_a_file_and_starting_anew(track):
    assert track([30, 40], resumed_from=20) == [30, 40]
    assert track([0, 10]) == [0, 10]


class Broken(NoTracker):
    """Fails in one method, and counts the calls of all."""

    def __init__(self, method, error=None):
        super().__init__()
        error = error or ValueError("server said:\n no")
        self.calls = []
        for name in ("start", "log", "image", "summary", "finish"):
            setattr(self, name, self._make(name, error if name == method else None))

    def _make(self, name, error):
        def call(*arguments):
            self.calls.append(name)
            if error:
                raise error

        return call


@pytest.mark.parametrize("method", ["start", "log", "image", "summary", "finish"])
def test_a_failing_tracker_is_said_once_and_off(tmp_path, capsys, method):
    inner = Broken(method)
    tracker = SafeTracker(inner, "wandb")
    tracker.start(TrackedRun(tmp_path, "demo"))
    for step in (1, 2):
        tracker.log({"loss": 0.1}, step)
        tracker.image("curves", tmp_path / "a.png", step)
        tracker.summary({"alpha": 1.0})
    tracker.finish("complete")
    assert tracker.is_off
    assert tracker.warnings == ["tracker wandb failed (ValueError: server said: no) and is now off."]
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == f"warning: {tracker.warnings[0]} The run goes on; its record is unaffected.\n"
    assert inner.calls.count(method) == 1
    assert inner.calls[-1] == "finish"  # even when off: an open run would leak into the next job


def test_a_tracker_that_works_is_not_in_the_way(tmp_path, capsys):
    inner = Broken(None)
    inner.warnings, inner.where = ["slow"], "here"
    tracker = SafeTracker(inner, "wandb")
    tracker.start(TrackedRun(tmp_path, "demo"))
    tracker.log({"loss": 0.1}, 1)
    tracker.finish("complete")
    assert (inner.calls, tracker.warnings, tracker.where) == (["start", "log", "finish"], ["slow"], "here")
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        SafeTracker(Broken("log", KeyboardInterrupt()), "wandb").log({}, 1)


@pytest.mark.parametrize(("name", "kind"), [("none", NoTracker), ("jsonl", JsonlTracker)])
def test_trackers_by_name(name, kind):
    tracker = make_tracker(name)
    assert isinstance(tracker.inner, kind)
    assert tracker.name == name


@pytest.mark.parametrize(
    ("name", "advice"), [("wandbb", "Did you mean 'wandb'?"), ("tensorboard", "Use none to track nothing.")]
)
def test_an_unknown_tracker_is_refused(name, advice):
    message = f"tracker must be one of wandb, jsonl, none, got {name!r}. {advice}"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        make_tracker(name)


def test_a_tracker_that_was_not_started_says_so():
    tracker = make_tracker("jsonl")
    tracker.finish("complete")
    assert tracker.warnings == []
    with pytest.raises(RuntimeError, match="must be started before it logs"):
        tracker.inner.log({}, 1)


def test_importing_runs_brings_in_nothing_heavy():
    code = (
        "import sys, toydepth.runs; from toydepth.runs import make_tracker; make_tracker('jsonl'); "
        "print(sorted({'wandb', 'jax', 'torch', 'hydra', 'flax', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
