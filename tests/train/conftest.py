"""A job small enough to compile and train in seconds, run in this process as the command line would."""

import json
from pathlib import Path

import pytest

from toydepth.train import main

TINY = (
    "width=4",
    "vocabulary=5",
    "teacher.depth=4",
    "batch_size=16",
    "eval.samples=64",
    "eval.points=4",
    "device.count=1",
    "tracker=none",
)


@pytest.fixture(scope="session")
def tiny():
    """The overrides of that job, for a test that calls the command itself."""
    return TINY


@pytest.fixture
def train(tmp_path, capsys):
    """train("seed=1", ...) returns (exit code, stdout, stderr); the run's folder is tmp_path / run."""

    def call(*arguments, run="run", tiny=TINY):
        where = [] if "-m" in arguments else [f"hydra.run.dir={tmp_path / run}"]
        code = main([*tiny, *where, *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def record():
    """Reads a run's record.json."""
    return lambda folder: json.loads((Path(folder) / "record.json").read_text())
