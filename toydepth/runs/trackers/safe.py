"""A tracker that cannot hurt the run it watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toydepth.runs.trackers.base import TrackedRun, Tracker


class SafeTracker:
    """Passes everything on to another tracker until it fails; then says so once on stderr, and goes on without it.

    Hours of training must not end because a disk is full or a server is down: the record does not need the tracker.
    Only `Exception`s are caught, so Ctrl-C still stops the run.

    Args:
        inner: the tracker to guard.
        name: what to call it in the warning.

    Example:
        >>> from toydepth.runs.trackers.jsonl import JsonlTracker
        >>> tracker = SafeTracker(JsonlTracker(), "jsonl")
        >>> tracker.log({"loss": 0.5}, step=1)  # was never started
        >>> tracker.is_off, tracker.warnings
        (True, ['tracker jsonl failed (RuntimeError: the tracker must be started before it logs) and is now off.'])
    """

    def __init__(self, inner: Tracker, name: str) -> None:
        self.inner = inner
        self.name = name
        self.is_off = False
        self._warnings: list[str] = []

    @property
    def warnings(self) -> list[str]:
        """What the inner tracker had to say, then how it failed, if it did."""
        return [*self.inner.warnings, *self._warnings]

    @property
    def where(self) -> str:
        """Where the inner tracker says to look."""
        return self.inner.where

    def start(self, run: TrackedRun) -> None:
        """Starts the inner tracker."""
        self._try(self.inner.start, run)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Logs, unless the tracker is off."""
        self._try(self.inner.log, metrics, step)

    def image(self, name: str, path: Path, step: int) -> None:
        """Adds a figure, unless the tracker is off."""
        self._try(self.inner.image, name, path, step)

    def summary(self, values: Mapping[str, Any]) -> None:
        """Sets the summary, unless the tracker is off."""
        self._try(self.inner.summary, values)

    def finish(self, status: str) -> None:
        """Finishes the inner tracker, even one that is off: what it opened must not leak into the next run."""
        if self.is_off:
            with contextlib.suppress(Exception):
                self.inner.finish(status)
        else:
            self._try(self.inner.finish, status)

    def _try(self, call: Callable[..., None], *arguments: Any) -> None:
        if self.is_off:
            return
        try:
            call(*arguments)
        except Exception as error:
            self.is_off = True
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self._warnings.append(f"tracker {self.name} failed ({reason[:300]}) and is now off.")
            print(f"warning: {self._warnings[-1]} The run goes on; its record is unaffected.", file=sys.stderr)
