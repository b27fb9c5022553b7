"""What every tracker does, and the one that does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker is told at the start.

    folder: the run's folder. name: shown in lists. group: that of runs to be seen together; tags. config: a plain,
    resolved dict. resumed_from: the step the run goes on from, or None for a new run.
    """

    folder: Path
    name: str
    group: str | None = None
    tags: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    resumed_from: int | None = None


class Tracker(Protocol):
    """start, then log, image and summary at will, then finish, always.

    `step` is the run's own count of optimiser steps; it goes on across resumed segments and never goes backwards.
    """

    @property
    def warnings(self) -> list[str]:
        """What went wrong so far, a line each, for the record of the run."""
        ...

    @property
    def where(self) -> str:
        """Where to look: a path, an address or a command. Empty where there is nothing to see."""
        ...

    def start(self, run: TrackedRun) -> None:
        """Opens the run; called once, before everything else."""
        ...

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Adds numbers that belong to `step`. The names 'step' and 'time' are the tracker's own."""
        ...

    def image(self, name: str, path: Path, step: int) -> None:
        """Adds a figure that was written to `path`."""
        ...

    def summary(self, values: Mapping[str, Any]) -> None:
        """Sets the numbers a run is compared by."""
        ...

    def finish(self, status: str) -> None:
        """Closes the run; `status` as in the record."""
        ...


class NoTracker:
    """Tracks nothing.

    >>> tracker = NoTracker()
    >>> tracker.log({"loss": 0.1}, step=1)
    >>> tracker.warnings, tracker.where
    ([], '')
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.where = ""

    def start(self, run: TrackedRun) -> None:
        """Does nothing."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Does nothing."""

    def image(self, name: str, path: Path, step: int) -> None:
        """Does nothing."""

    def summary(self, values: Mapping[str, Any]) -> None:
        """Does nothing."""

    def finish(self, status: str) -> None:
        """Does nothing."""
