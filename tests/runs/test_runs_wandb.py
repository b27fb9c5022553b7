"""The real client, offline: what it wrote is read back with its own command, which needs no account."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toydepth.errors import InputError
from toydepth.runs import TrackedRun, make_tracker
from toydepth.runs.trackers import wandb as wandb_tracker
from toydepth.runs.trackers.wandb import WandbTracker

wandb = pytest.importorskip("wandb")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No settings, keys or network of the person who runs the tests; the client's process ends with the test."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.chdir(tmp_path)
    yield
    wandb.teardown()


def inspect(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "wandb", "leet", "inspect", *options, "--json", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def find_runs(folder: Path) -> list[Path]:
    return sorted((folder / "wandb").glob("*run-*/"))


def test_each_job_of_a_process_is_a_run_of_its_own(tmp_path, capfd):
    for index in range(3):
        tracker = WandbTracker("demo")
        assert (tracker.mode, tracker.reason[:10]) == ("offline", "no API key")
        config = {"seed": index, "student": {"depths": [3, 6]}}
        tracker.start(TrackedRun(tmp_path / str(index), f"tied_{index}", "tied", ("mse", "laptop"), config))
        for step in (0, 10, 20):
            tracker.log({"loss/3": index + 1 / (step + 1)}, step)
        tracker.summary({"alpha": 1.0 + index})
        if index != 1:  # a job that died before its end: the next one must not join its run
            tracker.finish("complete")
        assert tracker.warnings == []
    written = capfd.readouterr()
    assert written == ("", "")

    for index in range(3):
        (run,) = find_runs(tmp_path / str(index))
        found = json.loads(inspect(run, "--summary"))
        assert found["config"] == {"seed": index, "student": {"depths": [3, 6]}}
        assert (found["project"], found["name"], found["tags"]) == ("demo", f"tied_{index}", ["mse", "laptop"])
        assert (found["step"], found["summary"]["step"], found["exit_code"]) == (20, 20, 0)
        assert found["summary"]["alpha"] == 1.0 + index
        assert found["summary"]["loss/3"] == pytest.approx(index + 1 / 21)
        assert found["summary"].get("status") == (None if index == 1 else "complete")
        names = {path.name for path in run.rglob("*")}
        assert not names & {"requirements.txt", "wandb-metadata.json", "output.log"}
        assert f"wandb sync {run}" == tracker.where or index < 2


def test_a_resumed_run_goes_on_in_its_group_and_steps_never_go_back(tmp_path):
    tracker = WandbTracker("demo", mode="offline")
    tracker.start(TrackedRun(tmp_path, "n" * 200, "tied", resumed_from=20))
    for step in (20, 30, 25, 10, 40):
        tracker.log({"loss": float(step)}, step)
    tracker.finish("diverged")
    tracker.finish("diverged")
    assert tracker.warnings == ["wandb dropped 2 rows whose step went backwards"]
    assert tracker.num_dropped == 2
    (run,) = find_runs(tmp_path)
    records = [json.loads(line) for line in inspect(run).splitlines()]
    found = {record["type"]: record[record["type"]] for record in records if record["type"] != "header"}
    name = found["run"]["display_name"]
    assert name == "n" * 120 + "-from-20" and len(name) == 128
    assert (found["run"]["run_group"], found["exit"]["exit_code"]) == ("tied", 1)
    rows = [record["history"]["item"] for record in records if record["type"] == "history"]
    assert [(row["_step"], row["step"], row["loss"]) for row in rows] == [(20, 20, 20), (30, 30, 30), (40, 40, 40)]


def test_a_figure_is_uploaded_as_a_file(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (4, 3)).save(tmp_path / "curves.png")
    tracker = make_tracker("wandb", mode="offline")
    tracker.start(TrackedRun(tmp_path / "run", "demo"))
    tracker.image("curves", tmp_path / "curves.png", 10)
    tracker.image("none", tmp_path / "missing.png", 10)
    tracker.finish("complete")
    assert tracker.is_off and "missing.png" in tracker.warnings[0]
    (run,) = find_runs(tmp_path / "run")
    assert [path.suffix for path in (run / "files" / "media" / "images").iterdir()] == [".png"]


def test_disabled_by_the_environment_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    tracker = make_tracker("wandb")
    tracker.start(TrackedRun(tmp_path / "run", "demo"))
    tracker.log({"loss": 0.1}, 1)
    tracker.finish("complete")
    assert tracker.warnings == [] and tracker.where == ""
    assert not find_runs(tmp_path / "run")


def test_a_key_without_a_server_is_offline(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{port}")
    tracker = WandbTracker("demo")
    assert (tracker.mode, tracker.reason) == ("offline", f"no connection to 127.0.0.1:{port}")


def test_a_server_that_does_not_start_the_run_is_left(tmp_path, monkeypatch):
    modes = []
    tracker = WandbTracker("demo", mode="offline")
    tracker.mode = "online"

    def init(**options):
        modes.append(options["mode"])
        if options["mode"] == "online":
            raise wandb.errors.CommError("timed out\nConsider")
        return wandb.init(**options)

    monkeypatch.setattr(tracker, "_wandb", _With(init))
    tracker.start(TrackedRun(tmp_path, "demo"))
    tracker.finish("complete")
    assert modes == ["online", "offline"]
    assert tracker.warnings == ["wandb went offline: CommError: timed out"]
    assert len(find_runs(tmp_path)) == 1


class _With:
    """The client with another init."""

    def __init__(self, init):
        self.init = init

    def __getattr__(self, name):
        return getattr(wandb, name)


def test_online_without_a_key_is_refused_before_anything_runs():
    message = "tracker.mode must be offline or auto, got online without an API key for "
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        make_tracker("wandb", mode="online")


def test_the_settings_file_of_the_client_is_heeded(monkeypatch):
    monkeypatch.setattr(wandb_tracker, "_configured", lambda client: ("offline", "https://api.wandb.ai"))
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    tracker = WandbTracker("demo", probe=lambda *where: True)
    assert (tracker.mode, tracker.reason) == ("offline", "WANDB_MODE says so")


def test_a_missing_package_is_refused(monkeypatch):
    message = "tracker must be one whose package is installed, got wandb without wandb. Install it (pip install wandb)"
    # Not there at all, and a folder of that name, which Python takes for a package.
    for found in (None, type(threading)("wandb")):
        monkeypatch.setitem(sys.modules, "wandb", found)
        with pytest.raises(InputError, match=f"^{re.escape(message)}"):
            make_tracker("wandb")
    monkeypatch.undo()


def test_logging_before_the_start_is_an_error_and_finishing_is_not():
    tracker = WandbTracker("demo", mode="offline")
    tracker.finish("complete")
    with pytest.raises(RuntimeError, match="must be started before it logs"):
        tracker.log({}, 1)
