"""What reports are made of: tables in plain text, numbers, p values, what an error says."""

from __future__ import annotations

import math
from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Returns lines with columns side by side, the first to the left, the others to the right; rows may be short.

    Example:
        >>> align([["name", "value"], ["alpha_m", "0.945"]])
        ['  name     value', '  alpha_m  0.945']
    """
    count = max(map(len, rows), default=0)
    widths = [max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
    lines = []
    for row in rows:
        cells = [cell.ljust(widths[0]) if i == 0 else cell.rjust(widths[i]) for i, cell in enumerate(row)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def significant(value: float | None, error: float | None = None) -> str:
    """Writes a number with as many digits as its error leaves meaning to (two of the error), or four without one.

    Example:
        >>> significant(1.32512, 0.2869), significant(387.64, 8.98), significant(None), significant(0.0723)
        ('1.33', '387.6', '?', '0.0723')
    """
    if value is None or not math.isfinite(value):
        return "?"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if error is not None and math.isfinite(error) and error > 0:
        place = math.floor(math.log10(error)) - 1
        digits = min(max(size - place + 1, 1), 12)
    else:
        digits = 4
    if -4 <= size < 7:
        return f"{value:.{max(digits - size - 1, 0)}f}"
    return f"{value:.{max(digits - 1, 0)}e}"


def interval_text(interval: tuple[float | None, float | None] | None, error: float | None) -> str:
    """Writes `[0.83, 1.07]`; an open side as `...`, none as `-`."""
    if interval is None:
        return "-"
    low, high = interval
    return (
        f"[{'...' if low is None else significant(low, error)}, {'...' if high is None else significant(high, error)}]"
    )


def p_value_text(p_value: float | None) -> str:
    """Writes `= 0.013`, and `< 0.0001` below: far out in a tail the digits of a p value mean nothing.

    Example:
        >>> p_value_text(0.01312), p_value_text(1e-9), p_value_text(None)
        ('= 0.013', '< 0.0001', '= -')
    """
    return "= -" if p_value is None else f"= {p_value:.2g}" if p_value >= 1e-4 else "< 0.0001"


def error_text(error: object) -> str:
    r"""Returns what an error says, on one line.

    Example:
        >>> error_text(ValueError("no\n  number")), error_text(ValueError())
        ('no number', 'ValueError')
    """
    return " ".join(str(error).split()) or type(error).__name__
