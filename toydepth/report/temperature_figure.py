"""Figure: the last depth exponent against the temperature of the targets."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from toydepth.report.layout import new_figure
from toydepth.report.series import Series
from toydepth.report.step_figure import name_levels
from toydepth.report.style import NotDrawn, alpha_axis
from toydepth.report.words import percent


def draw_temperature(series: list[Series]) -> Figure:
    """Draws a line a family of groups that has several temperatures, with the interval of each exponent.

    Raises: NotDrawn where no family was fitted at two temperatures.
    """
    families: dict[tuple, list[Series]] = {}
    for one in series:
        if one.trajectory and one.labels["temperature"] is not None and math.isfinite(one.end.alpha):
            families.setdefault(one.family, []).append(one)
    lines = [line for line in families.values() if len(line) > 1]
    if not lines:
        raise NotDrawn("no group of arms could be fitted at two temperatures or more")
    figure = new_figure(4.2, 2.9 + 0.15 * len(lines))
    ax = figure.subplots()
    ax.set_xscale("log")
    for i, line in enumerate(lines):
        look = line[0].family_look
        # Families share their temperatures: a step aside keeps one's bars off the other's.
        aside = 1.05 ** (i - (len(lines) - 1) / 2)
        temperatures = np.array([one.labels["temperature"] for one in line], float) * aside
        alpha = np.array([one.end.alpha for one in line])
        ends = [(one.end.low, one.end.high) for one in line]
        bars = np.array(
            [(a - low, high - a) if low is not None else (0, 0) for a, (low, high) in zip(alpha, ends, strict=True)]
        ).T
        ax.errorbar(
            temperatures, alpha, yerr=bars, **look.line, marker=look.marker, markersize=4, elinewidth=0.9, capsize=2,
            label=line[0].family_name,
        )  # fmt: skip
    alpha_axis(ax, np.array([one.end.alpha for line in lines for one in line]))
    name_levels(ax)
    ax.set_xlabel("Temperature T")
    ax.set_ylabel("Depth exponent alpha")
    title = f"at the last step, bars: {percent(lines[0][0].end.fit.confidence)}"
    figure.legend(loc="outside upper left", title=title, alignment="left", handlelength=3.2)
    return figure
