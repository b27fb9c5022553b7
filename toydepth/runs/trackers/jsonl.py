"""Metrics as JSON lines in the run's folder: readable by anything, and by `tail -f` while the run goes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from toydepth.runs.files import plain, replacing
from toydepth.runs.trackers.base import TrackedRun

METRICS_FILE = "metrics.jsonl"


class JsonlTracker:
    """Writes metrics.jsonl: {"step": ..., "time": seconds since 1970, name: value, ...}, a line a call.

    Figures are lines with "image/<name>": path within the folder, the summary one with "summary/<name>", the end one
    with "status". A value that is no number (NaN, infinities) is null. A new run starts the file anew; a resumed one
    drops what lies after the step it goes on from, as those steps will be taken again.

    Example:
        >>> import tempfile
        >>> tracker = JsonlTracker()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tracker.start(TrackedRun(Path(folder), name="demo"))
        ...     tracker.log({"loss": 0.5}, step=10)
        ...     tracker.finish("complete")
        ...     [sorted(json.loads(line)) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
        [['loss', 'step', 'time'], ['status', 'step', 'time']]
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.where = ""
        self._folder = Path()
        self._file: IO[str] | None = None
        self._step = 0

    def start(self, run: TrackedRun) -> None:
        """Opens the file; on resuming, keeps the whole lines up to the step the run goes on from."""
        self._folder = run.folder
        path = run.folder / METRICS_FILE
        kept = _lines_up_to(path, run.resumed_from) if run.resumed_from is not None else []
        with replacing(path) as temporary:
            temporary.write_text("".join(kept), encoding="utf-8")
        self._step = run.resumed_from or 0
        self._file = path.open("a", encoding="utf-8")
        self.where = str(path)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Writes a line, at once, so that a run that is killed leaves what it logged."""
        if self._file is None:
            raise RuntimeError("the tracker must be started before it logs")
        self._step = step
        line = plain({"step": step, "time": round(time.time(), 3), **_without_reserved(metrics)}, "metrics")
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()

    def image(self, name: str, path: Path, step: int) -> None:
        """Writes a line with the path of the figure, within the run's folder where it lies there."""
        inside = os.path.relpath(path, self._folder) if path.is_relative_to(self._folder) else str(path)
        self.log({f"image/{name}": inside}, step)  # type: ignore[dict-item]

    def summary(self, values: Mapping[str, Any]) -> None:
        """Writes a line at the last step."""
        self.log({f"summary/{name}": value for name, value in values.items()}, self._step)

    def finish(self, status: str) -> None:
        """Writes the status and closes the file; harmless where it is closed or was never opened."""
        if self._file is None:
            return
        file = self._file
        try:
            self.log({"status": status}, self._step)  # type: ignore[dict-item]
        finally:
            self._file = None
            file.close()


def _without_reserved(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if name not in ("step", "time")}


def _lines_up_to(path: Path, step: int) -> list[str]:
    if not path.exists():
        return []
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found = json.loads(line)
            if found["step"] <= step:
                kept.append(line + "\n")
        except (ValueError, TypeError, KeyError):
            continue  # cut off in the middle when the run was killed
    return kept
