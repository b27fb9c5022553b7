"""Figure: the depth exponent along training."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toydepth.report.layout import new_figure
from toydepth.report.series import Series
from toydepth.report.style import NotDrawn, alpha_axis
from toydepth.report.words import percent

_LEVELS = {1: "ensemble\naveraging 1", 2: "coherent first-\norder errors 2", 3: "random local\nerrors 3"}
_MAX_BANDS = 4  # more bands than this are one grey mush: the interval is then drawn at the last step only


def draw_alpha_against_step(series: list[Series]) -> Figure:
    """Draws a line a group with its interval, lines at the exponents theory knows, step 0 omitted.

    Averaged weights; a group that has none is a thin faded line of its raw weights. Limits follow the estimates.

    Raises: NotDrawn where no group was fitted at two steps.
    """
    fitted = [one for one in series if len(one.trajectory) > 1]
    if not fitted:
        raise NotDrawn("no group of arms could be fitted at two steps or more")
    banded = len(fitted) <= _MAX_BANDS
    # In a single family only the temperature differs: the rest of the names is said once, in the title.
    alone = len({one.family for one in fitted}) == 1 and len(fitted) > 1
    columns = 4 if alone and len(fitted) > 4 else 2
    figure = new_figure(5.2, 3.0 + 0.16 * -(-len(fitted) // columns))
    ax = figure.subplots()
    ax.set_xscale("log")
    for i, one in enumerate(fitted):
        _draw_line(ax, one, i, f"T {one.labels['temperature']:g}" if alone else one.name, banded=banded)
        if not banded:
            _draw_end(ax, one, i, len(fitted))
    alpha_axis(ax, np.concatenate([_column(one, "alpha") for one in fitted]))
    name_levels(ax)
    ax.set_xlabel("Training step")
    ax.set_ylabel("Depth exponent alpha")
    intervals = f"{'shaded' if banded else 'bars at the last step'}: {percent(fitted[0].end.fit.confidence)}"
    figure.legend(
        loc="outside upper left", ncols=columns, handlelength=3.2, alignment="left",
        title=f"{fitted[0].family_name}; {intervals}" if alone else intervals,
    )  # fmt: skip
    return figure


def name_levels(ax: Axes) -> None:
    """Names the exponents 1, 2 and 3 outside the right edge."""
    for level, text in _LEVELS.items():
        ax.annotate(
            text, (1.0, level), xycoords=("axes fraction", "data"), xytext=(3, 0), textcoords="offset points",
            fontsize=6.5, color="0.35", va="center", annotation_clip=False,
        )  # fmt: skip


def _draw_line(ax: Axes, one: Series, index: int, name: str, *, banded: bool) -> None:
    step, alpha = _column(one, "step"), _column(one, "alpha")
    faded: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.6} if one.weights == "raw" else {}
    if banded:
        low, high = _column(one, "low"), _column(one, "high")
        ax.fill_between(step, low, high, color=one.look.colour, alpha=0.08 if faded else 0.16, linewidth=0)
    name += " (raw weights)" if one.weights == "raw" else ""
    spacing = max(1, len(step) // 8)
    ax.plot(
        step, alpha, **one.look.line, **faded, marker=one.look.marker, markersize=3.5,
        # Markers of different lines start apart, so that they do not sit on each other at shared steps.
        markevery=(index % spacing, spacing), label=name,
    )  # fmt: skip


def _draw_end(ax: Axes, one: Series, index: int, count: int) -> None:
    end = one.end
    if end.low is None or end.high is None:
        return
    shift = 1.08 * 2.2 ** (index / max(count - 1, 1))
    ax.plot([end.step * shift] * 2, [end.low, end.high], color=one.look.colour, linewidth=1.0, label="_interval")


def _column(one: Series, name: str) -> np.ndarray:
    """Returns one attribute of every fitted step, NaN where there is none."""
    return np.array([np.nan if (value := getattr(row, name)) is None else value for row in one.trajectory], float)
