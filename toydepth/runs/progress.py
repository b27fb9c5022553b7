"""One line at the terminal: how far a run is, how fast, and the losses by depth."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

_WINDOW = 10  # updates the speed is measured over: steady, yet soon free of the first chunk's compilation


class ProgressLine:
    """A context manager that keeps one line up to date on stderr, and prints nothing where that is no terminal.

    Args:
        steps: number of steps of the run.
        console: default: stderr.
        clock: seconds; for tests.

    Example:
        >>> with ProgressLine(1000) as line:
        ...     line.update(200, {3: 1.1e-3, 6: 4e-4})
    """

    def __init__(
        self,
        steps: int,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steps = steps
        self._clock = clock
        self._marks = deque([(0, clock())], maxlen=_WINDOW + 1)
        console = console or Console(file=sys.stderr)
        # Not console.is_terminal: a log file stays one where colour was forced by the environment.
        isatty = getattr(console.file, "isatty", lambda: False)
        self._live = None
        if isatty() and not console.is_dumb_terminal:
            # Redrawn only by update: a refreshing thread would compete with the run for a core.
            self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> ProgressLine:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def resume(self, step: int) -> None:
        """Says at which step a run goes on: steps that another process did are no speed of this one."""
        self._marks.clear()
        self._marks.append((step, self._clock()))

    def update(self, step: int, losses: Mapping[int, float]) -> None:
        """Redraws the line; call it once a chunk.

        Args: step, steps done so far; losses, the current loss of each depth (the mean over its arms, say).
        """
        self._marks.append((step, self._clock()))
        if self._live:
            text = format_line(step, self._steps, self._speed(), losses)
            self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def _speed(self) -> float:
        (first, start), (last, end) = self._marks[0], self._marks[-1]
        return (last - first) / (end - start) if end > start else 0.0


def format_line(step: int, steps: int, steps_per_second: float, losses: Mapping[int, float]) -> str:
    """Writes the line: steps, speed, time left, losses by depth.

    >>> format_line(200, 1000, 80.0, {3: 1.1e-3, 12: float("nan")})
    '200/1000  80.0 steps/s  0:10 left  3:1.1e-3 12:nan'
    """
    parts = [f"{step}/{steps}"]
    if steps_per_second > 0:
        parts.append(
            f"{steps_per_second:,.0f} steps/s" if steps_per_second >= 100 else f"{steps_per_second:.1f} steps/s"
        )
        parts.append(f"{_duration(max(steps - step, 0) / steps_per_second)} left")
    parts.append(" ".join(f"{depth}:{_short(loss)}" for depth, loss in sorted(losses.items())))
    return "  ".join(parts).rstrip()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _short(loss: float) -> str:
    text = f"{loss:.1e}"
    if "e" not in text:
        return text  # nan, inf
    digits, exponent = text.split("e")
    return f"{digits}e{int(exponent)}"
