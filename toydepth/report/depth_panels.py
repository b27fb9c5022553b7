"""The two panels of the depth figure: losses with the fitted power law, and local slopes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from toydepth.report.layout import wrap
from toydepth.report.series import Series
from toydepth.report.style import GREY, loss_limits
from toydepth.report.words import alpha_text, percent

_SMALL, _LARGE = 2.2, 5.0
_FLOOR_REACH = 30.0  # a noise floor further than this below the lowest loss would only stretch the axis


def draw_losses(ax: Axes, panel: list[Series]) -> None:
    """Draws losses, fits, left-out points and noise floors of the groups of one family on log axes."""
    ax.set_yscale("log")
    for one in panel:
        fit, look = one.end.fit, one.look
        depths = np.array(fit.depths, float)
        points: dict[str, Any] = {"linestyle": "", "marker": look.marker, "color": look.colour}
        if len(fit.losses) > 1:
            for losses in fit.losses:
                ax.plot(depths, losses, **points, markersize=_SMALL, alpha=0.7, label="replicate")
        ax.plot(depths, complete_means(fit.losses), **points, markersize=_LARGE, label="mean")
        if math.isfinite(fit.alpha):
            grid = np.geomspace(depths[0], depths[-1], 60)
            ax.plot(grid, fit.predict(grid), **look.line, label="fit")
        for point in fit.left_out:
            if point.depth > 0 and point.loss > 0:
                hollow: dict[str, Any] = {**points, "markerfacecolor": "white", "markeredgewidth": 0.9}
                ax.plot([point.depth], [point.loss], **hollow, markersize=_LARGE, label="left out")
            elif point.depth > 0:
                # A log axis has no place for it; on an edge it still shows that an arm is there no longer.
                edge, marker, label = (0.025, "v", "not above 0") if point.loss <= 0 else (0.975, "^", "no loss")
                ax.plot(
                    [point.depth], [edge], linestyle="", marker=marker, markersize=_LARGE, color=look.colour,
                    markerfacecolor="white", transform=ax.get_xaxis_transform(), label=label,
                )  # fmt: skip
        floor = noise_floor(one)
        if len(floor):
            ax.plot(floor.index, floor.to_numpy(), color=look.colour, linestyle=":", linewidth=0.9, label="noise floor")


def draw_slopes(ax: Axes, panel: list[Series], *, faint_bars: bool) -> None:
    """Draws the slope between neighbouring depths at their geometric middle, with its interval over replicates."""
    for i, one in enumerate(panel):
        slopes = one.end.fit.local_slopes
        # Set apart by a few percent of a depth, or the bars of several temperatures would hide each other.
        middle = slopes["depth_middle"] * 1.025 ** (i - (len(panel) - 1) / 2 if len(panel) <= 4 else 0)
        bars = np.array([slopes["slope"] - slopes["low"], slopes["high"] - slopes["slope"]])
        known = np.isfinite(bars).all(axis=0)
        look = one.look
        ax.errorbar(
            middle[known], slopes["slope"][known], yerr=bars[:, known], linestyle="", ecolor=look.colour,
            elinewidth=0.8, capsize=1.5, alpha=0.25 if faint_bars else 0.8,
        )  # fmt: skip
        ax.plot(middle, slopes["slope"], **look.line, linewidth=0.8, marker=look.marker, markersize=3.5, label="slope")


def panel_legend(ax: Axes, panel: list[Series], width: float, *, aside: bool) -> None:
    """Names the family, step and exponents above the panel (or `aside`), where no data can be covered."""
    handles, names = [], []
    for one in panel:
        handles.append(Line2D([], [], **one.look.line, marker=one.look.marker, markersize=4))
        names.append((f"T {one.labels['temperature']:g}: " if len(panel) > 1 else "") + alpha_text(one.end))
    steps = sorted({one.end.step for one in panel})
    where = f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"
    raw = ", raw weights" if all(one.weights == "raw" for one in panel) else ""
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    if not aside:
        place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}
    ax.legend(
        handles, names, title=f"{wrap(panel[0].family_name, width)}\n{where}{raw}", alignment="left", borderpad=0.1,
        borderaxespad=0.3, handlelength=2.6, **place,
    )  # fmt: skip


def mark_legend(shown: list[Series]) -> list[Line2D]:
    """Returns a grey handle for each kind of mark that occurs in the figure."""

    def mark(label: str, **kind: Any) -> Line2D:
        return Line2D([], [], **{"color": GREY, "linestyle": "", "label": label, **kind})

    left_out = [point for one in shown for point in one.end.fit.left_out if point.depth > 0]
    several = any(len(one.end.fit.losses) > 1 for one in shown)
    handles = []
    if several:
        handles.append(mark("replicate", marker="o", markersize=_SMALL))
    handles.append(mark("mean of replicates" if several else "loss", marker="o"))
    handles.append(mark("power law", linestyle="-"))
    if any(point.loss > 0 for point in left_out):
        handles.append(mark("left out of the fit", marker="o", markerfacecolor="white"))
    if any(point.loss <= 0 for point in left_out):
        handles.append(mark("left out, not above 0", marker="v", markerfacecolor="white"))
    if any(math.isnan(point.loss) for point in left_out):
        handles.append(mark("diverged or missing", marker="^", markerfacecolor="white"))
    if any(len(noise_floor(one)) for one in shown):
        handles.append(mark("noise floor", linestyle=":", linewidth=0.9))
    if several:
        handles.append(mark(f"{percent(shown[0].end.fit.confidence)} of a slope", marker="|", markersize=8))
    return handles


def noise_floor(one: Series) -> pd.Series:
    """Returns the noise floor at each depth, at the step shown; empty where it is unknown or far below the losses."""
    rows = one.curves[one.curves["step"].eq(one.end.step) & one.curves["depth"].gt(0) & one.curves["noise_floor"].gt(0)]
    floor = pd.Series(rows.groupby("depth")["noise_floor"].mean())
    return floor if len(floor) and floor.max() * _FLOOR_REACH > np.nanmin(_losses(one)) else floor.iloc[:0]


def limits(shown: list[Series]) -> tuple[float, float]:
    """Returns limits that hold every loss, left out or not, fit and noise floor, and marks on the edges."""
    fits = [one.end.fit for one in shown if math.isfinite(one.end.alpha)]
    parts = [part for one in shown for part in (_losses(one), noise_floor(one).to_numpy())]
    low, high = loss_limits(np.concatenate([*parts, *(fit.predict(fit.window) for fit in fits)]))
    left_out = [point.loss for one in shown for point in one.end.fit.left_out if point.depth > 0]
    air = (high / low) ** 0.06
    return low / air ** any(loss <= 0 for loss in left_out), high * air ** any(map(math.isnan, left_out))


def all_depths(one: Series) -> list[float]:
    """Returns the depths with a point or a mark."""
    return [float(d) for d in {*one.end.fit.depths, *(p.depth for p in one.end.fit.left_out)} if d > 0]


def _losses(one: Series) -> np.ndarray:
    hollow = [point.loss for point in one.end.fit.left_out if point.depth > 0 and point.loss > 0]
    return np.concatenate([one.end.fit.losses.ravel(), np.array(hollow, float)])


def complete_means(losses: np.ndarray) -> np.ndarray:
    """Returns geometric means over the replicates, since the power law is fitted to ln L; NaN where one is left out.

    Teachers differ several-fold in loss: a mean over some of them would lie off the line for no other reason.

    >>> complete_means(np.array([[1.0, 2.0], [4.0, float("nan")]])).tolist()
    [2.0, nan]
    """
    return np.exp(np.log(losses).mean(axis=0))
