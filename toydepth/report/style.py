"""One look for every figure: type sizes, colours that still differ in grey, and axes of depth, exponent and loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

GREY = "0.45"
_RC = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.title_fontsize": 7.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.4,
    "lines.markersize": 5.0,
    # Ids in an SVG are random unless salted, and a file that changes each time cannot be compared or cached.
    "svg.hashsalt": "toydepth",
}
# Okabe and Ito's colours for every kind of colour vision, in an order that keeps neighbours apart in grey as well.
_COLOURS = ("#0072B2", "#E69F00", "#000000", "#D55E00", "#56B4E9", "#009E73", "#CC79A7", "#7F7F7F")
_DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1)), (0, (8, 2)), (0, (6, 1.2, 1.2, 1.2, 1.2, 1.2)), (0, (1, 2.5)),
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")


class NotDrawn(Exception):
    """A figure has nothing to show. The message says why; it ends in the list of skipped figures."""


@dataclass(frozen=True)
class Look:
    """How one line is drawn: colour, dash and marker differ together, so that any one of them is enough."""

    colour: Any
    dash: Any
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """Keywords of a line without markers."""
        return {"color": self.colour, "linestyle": self.dash}


def category(index: int) -> Look:
    """Returns the look of the index-th of a few unordered things, such as teachers."""
    return Look(*(choices[index % len(choices)] for choices in (_COLOURS, _DASHES, _MARKERS)))


def sequence(index: int, count: int) -> Look:
    """Returns the look of the index-th of `count` ordered things, such as depths: dark to light."""
    # Stops short of the palette's yellow, which is too pale for a thin line on white.
    place = 0.05 if count < 2 else 0.05 + 0.77 * index / (count - 1)
    colour = tuple(float(part) for part in matplotlib.colormaps["viridis"](place)[:3])
    return Look(colour, _DASHES[index % 4], _MARKERS[index % len(_MARKERS)])


@contextmanager
def figure_style() -> Iterator[None]:
    """Holds the style while figures are built and saved; a person's own matplotlibrc neither shows nor changes."""
    with matplotlib.style.context(["default", _RC]):
        yield


def depth_axis(ax: Axes, depths: list[float], width: float) -> None:
    """Makes x a log axis with ticks at the depths themselves, named where there is room in `width` inches."""
    low, high = min(depths) / 1.15, max(depths) * 1.15
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    per_inch = math.log(high / low) / width
    names, last = [], -math.inf
    for depth in depths:
        roomy = math.log(depth) - last > per_inch * (0.1 + 0.065 * len(f"{depth:g}"))
        names.append(f"{depth:g}" if roomy else "")
        last = math.log(depth) if roomy else last
    ax.xaxis.set_major_locator(FixedLocator(depths))
    ax.xaxis.set_major_formatter(FixedFormatter(names))
    ax.xaxis.set_minor_locator(NullLocator())


def alpha_axis(ax: Axes, centres: np.ndarray) -> None:
    """Marks the exponents 1, 2 and 3 and keeps them in view.

    The limits follow the estimates, not their intervals: early ones are so wide that they would flatten all the rest.
    """
    known = centres[np.isfinite(centres)]
    low = min(-0.2, max(float(known.min()) - 0.2, -1.5)) if known.size else -0.2
    high = max(3.4, min(float(known.max()) + 0.3, 6.0)) if known.size else 3.4
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(FixedLocator(range(math.ceil(low), math.floor(high) + 1)))
    for level in (1, 2, 3):
        ax.axhline(level, color="0.8", linewidth=0.7, zorder=0)


def loss_limits(values: np.ndarray) -> tuple[float, float]:
    """Returns limits of a log axis that hold the positive values with some air.

    >>> low, high = loss_limits(np.array([1e-3, 1.0, float("nan")]))
    >>> 1e-4 < low < 1e-3 and 1 < high < 2
    True
    """
    known = values[np.isfinite(values) & (values > 0)]
    if not known.size:
        raise NotDrawn("no loss greater than 0")
    low, high = float(known.min()), float(known.max())
    air = max((high / low) ** 0.06, 1.15)
    return low / air, high * air
