"""A job small enough to compile in seconds; compilation is most of its time, and is not what is tested here."""

import pytest

TINY = (
    *("width=4", "vocabulary=5", "teacher.depth=4", "batch_size=16", "eval.samples=64", "eval.points=4"),
    *("device.count=1", "tracker=none", "checkpoint.every_seconds=0"),
)


@pytest.fixture(scope="module", autouse=True)
def compiled_quickly(compile_each_program_once, quick_compilation):
    """Every test of this folder."""


@pytest.fixture(scope="session")
def tiny():
    """Overrides of a job of a few seconds on one device."""
    return TINY
