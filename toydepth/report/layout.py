"""Where panels go, and figures as files: the same bytes each time, and nothing left open in pyplot."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

MAX_PANELS = 16
_DPI = 150


def new_figure(width: float, height: float) -> Figure:
    """Returns an empty figure of its own (inches), unknown to pyplot."""
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes <name>.png and <name>.svg, without dates, and returns their paths."""
    # Arranging takes as long as drawing: it is done for both files at once, and twice, since legends beside panels
    # have their final width only when the panels have theirs.
    figure.draw_without_rendering()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    # The solver's last bits are not the same each time, and an SVG names what it clips by a hash of all bits.
    for ax in figure.axes:
        left, bottom, width, height = (round(float(edge), 6) for edge in ax.get_position().bounds)
        ax.set_position((left, bottom, width, height))
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure.savefig(png, dpi=_DPI, metadata={"Software": None})
    figure.savefig(svg, metadata={"Date": None})
    return [png, svg]


def place_panels(kinds: Sequence[str], max_columns: int = 4) -> tuple[int, int, list[tuple[int, int]]]:
    """Spreads panels evenly over rows; each kind (a loss, with an axis of its own) begins a row.

    Args: kinds, of each panel, equal ones beside each other.
    Returns: (rows, columns, (row, column) of each panel).

    >>> place_panels(["mse"] * 5)
    (2, 3, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)])
    >>> place_panels(["kl", "mse", "mse"])
    (2, 2, [(0, 0), (1, 0), (1, 1)])
    """
    counts = {kind: kinds.count(kind) for kind in kinds}
    columns = max(math.ceil(count / math.ceil(count / max_columns)) for count in counts.values())
    places: list[tuple[int, int]] = []
    row = 0
    for count in counts.values():
        places += [(row + i // columns, i % columns) for i in range(count)]
        row += math.ceil(count / columns)
    return row, columns, places


def wrap(text: str, inches: float) -> str:
    """Breaks the name of a panel, at commas, into lines that fit its width.

    >>> wrap("correlated rho 0.5, zero init, rk2 block", 2.2).splitlines()
    ['correlated rho 0.5, zero init,', 'rk2 block']
    """
    # textwrap does not break at no-break spaces.
    held = text.replace(" ", "\xa0").replace(",\xa0", ", ")
    return textwrap.fill(held, max(int(14 * inches), 12)).replace("\xa0", " ")
