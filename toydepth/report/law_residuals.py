"""Figure: the residuals of a law against the fitted loss and each variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from toydepth.fit.law import LawFit
from toydepth.report.law_panels import label_first, log_axis, name_ticks, panels, scatter, variable_label
from toydepth.report.style import GREY, category
from toydepth.report.words import number

_DATA = ("D", "tau")
# Stops short of the palette's yellow, which is too pale for a point on white.
_MAP = ListedColormap(colormaps["viridis"](np.linspace(0.02, 0.86, 256)))


def draw_residuals(fit: LawFit) -> Figure:
    """Residuals of ln L in per cent; a panel for the fitted loss and each variable."""
    log_fitted = fit.estimate.problem.model.log_loss(fit.estimate.theta)
    residuals, spread = 100 * fit.estimate.log_residuals, 100 * fit.estimate.log_residual_std
    names = fit.law.variables
    hue = next((name for name in names if name not in _DATA and np.ptp(fit.rows.variables[name]) > 0), "")
    colours: dict[str, Any] = {"color": category(0).colour}
    if hue:
        lowest, highest = (float(of(fit.rows.variables[hue])) for of in (np.min, np.max))
        colours = {"cmap": _MAP, "norm": LogNorm(lowest, highest)}
    against = {"Fitted loss": np.exp(log_fitted), **{variable_label(fit, n): fit.rows.variables[n] for n in names}}
    figure, axes = panels(len(against))
    for ax, (label, x) in zip(axes, against.items(), strict=True):
        ax.axhspan(-2 * spread, 2 * spread, color="0.93", zorder=0)
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
        scatter(ax, x, residuals, fit.rows.variables.get(hue), s=9, alpha=0.75, zorder=2, **colours)
        at, median = running_median(x, residuals)
        ax.plot(at, median, color=category(3).colour, linewidth=1.5, zorder=3)
        log_axis(ax, x, label)
    label_first(axes, "Residual of ln L (%)")
    if hue:
        bar = figure.colorbar(
            ScalarMappable(**colours),
            ax=list(axes),
            label=variable_label(fit, hue),
            aspect=25 * (1 if len(axes) <= 3 else 2),
            pad=0.01,
        )
        name_ticks(bar.ax.yaxis, colours["norm"].vmin, colours["norm"].vmax, 6)
    handles = [
        Line2D([], [], color=category(3).colour, linewidth=1.5, label="running median"),
        Patch(color="0.9", label=f"± 2 standard deviations ({number(2 * spread)} %)"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure


def running_median(x: np.ndarray, y: np.ndarray, bins: int = 15) -> tuple[np.ndarray, np.ndarray]:
    """Returns medians of x and y over bins of about equal counts; equal x stay together.

    >>> [part.tolist() for part in running_median(np.array([1.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, 5.0, 7.0]), 2)]
    [[1.0, 2.5], [1.0, 6.0]]
    """
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    least, starts = max(len(x) / bins, 1.0), [0]
    for edge in np.flatnonzero(np.diff(x) > 0) + 1:
        if edge - starts[-1] >= least:
            starts.append(int(edge))
    if len(starts) > 1 and len(x) - starts[-1] < least / 2:
        starts.pop()
    parts = [slice(a, b) for a, b in zip(starts, [*starts[1:], len(x)], strict=True)]
    return np.array([np.median(x[part]) for part in parts]), np.array([np.median(y[part]) for part in parts])
