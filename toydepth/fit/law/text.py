"""Tables in plain text."""

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
