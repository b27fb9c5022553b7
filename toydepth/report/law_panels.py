"""What the panels of a law's figures have in common: places, log axes, points, and words for variables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

from toydepth.fit.law import LawFit
from toydepth.report.layout import new_figure, place_panels
from toydepth.report.style import GREY

MOST_POINTS = 2000
_WORDS = {"m": "Width m", "ell": "Depth ell", "D": "Tokens D", "tau": "Training time tau", "N": "Parameters N"}
_TALL, _WIDE = 2.35, 2.75  # inches of a panel


def panels(count: int) -> tuple[Figure, list[Axes]]:
    """Returns panels with one y axis for all."""
    rows, columns, places = place_panels(["panel"] * count, max_columns=3)
    figure = new_figure(max(_WIDE * columns + 0.5, 3.6), _TALL * rows + 0.55)
    grid = figure.add_gridspec(rows, columns)
    axes: list[Axes] = []
    for place in places:
        axes.append(figure.add_subplot(grid[place], sharey=axes[0] if axes else None))
        axes[-1].tick_params(labelleft=place[1] == 0)
    return figure, axes


def label_first(axes: list[Axes], label: str) -> None:
    """Labels the y axis of the panels at the left."""
    for ax in axes:
        place = ax.get_subplotspec()
        if place is not None and place.is_first_col():
            ax.set_ylabel(label)


def log_axis(ax: Axes, x: np.ndarray, label: str) -> None:
    """Makes the x axis a log one, about the values, with round numbers named."""
    low, high = float(x.min()), float(x.max())
    ax.set_xscale("log")
    air = (high / low) ** 0.04 if high > low else 1.5
    ax.set_xlim(low / air, high * air)
    name_ticks(ax.xaxis, *ax.get_xlim())
    ax.set_xlabel(label)


def name_ticks(axis: Axis, low: float, high: float, most: int = 5) -> None:
    """Names a few round numbers of a log axis: powers of ten, or 1, 2, 5 and finer where there are too few of them."""
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), np.arange(1, 10, 0.5), np.arange(1, 10, 0.1)):
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [step * 10.0**power for power in powers for step in steps]
        ticks = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(ticks) >= 3:
            break
    skip = math.ceil(len(ticks) / most)
    ticks = ticks[::skip]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([_tick(tick, max(ticks)) for tick in ticks]))
    axis.set_minor_formatter(NullFormatter())


def _tick(value: float, largest: float) -> str:
    """Writes 500, 0.02, and powers of ten where there would be many zeros; 10000 too, where 100000 is beside it."""
    power = math.floor(math.log10(value) + 1e-9)
    if -3 <= power < (4 if largest >= 1e5 else 5):
        return f"{value:.6g}"
    lead = value / 10.0**power
    return f"$10^{{{power}}}$" if abs(lead - 1) < 1e-6 else f"${lead:.3g}{{\\cdot}}10^{{{power}}}$"


def scatter(ax: Axes, x: np.ndarray, y: np.ndarray, colours: np.ndarray | None = None, **kind: Any) -> Any:
    """Draws points, of very many an even choice, and then says so."""
    shown = thin(x)
    if len(shown) < len(x):
        ax.set_title(f"{len(shown)} of {len(x)} rows shown", loc="right", fontsize=6.5, color=GREY, pad=2)
    if colours is not None:
        kind["c"] = colours[shown]
    return ax.scatter(x[shown], y[shown], linewidths=0, **kind)


def thin(x: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """Returns the places of at most `most` points, spread evenly over their order along x.

    >>> thin(np.array([3.0, 1.0, 2.0]), 2).tolist()
    [1, 0]
    """
    if len(x) <= most:
        return np.arange(len(x))
    return np.argsort(x, kind="stable")[np.linspace(0, len(x) - 1, most).astype(int)]


def variable_label(fit: LawFit, name: str) -> str:
    """Returns a variable in words, with what was taken off it: `Depth ell - 1`."""
    offset = fit.offsets.get(name, 0.0)
    column = fit.labels.get(name, name)
    words = _WORDS.get(name, name if column == name else f"{column} ({name})")
    return f"{words} {'-' if offset > 0 else '+'} {abs(offset):g}" if offset else words
