"""Figure: how much worse a law fits as an exponent, or L0, is held elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from toydepth.fit.law import LawFit
from toydepth.fit.law.profile import profile_curve, threshold
from toydepth.report.law_panels import label_first, panels
from toydepth.report.style import category
from toydepth.report.words import percent

_PROFILE_POINTS = 41
_PROFILE_POINTS_LARGE, _LARGE = 31, 20_000  # rows; there each point takes seconds, and the curve is a parabola
_FARTHEST = 2.5  # from the minimum, in an exponent or ln L0, that a profile is drawn to
_TOP = 2.4  # of a panel of profiles, in thresholds
_INTERVAL = "#D6E6F2"
_DASHED = (0, (4, 2))


def draw_profiles(fit: LawFit) -> Figure:
    """Delta chi^2 against each exponent and L0; against coefficients where no exponent is free."""
    law, estimate = fit.law, fit.estimate
    floor = ("L0",) * (law.irreducible_loss is None)
    names = (*(law.free_exponents or [term.coefficient for term in law.terms]), *floor)
    goal = threshold(estimate, fit.confidence)
    figure, axes = panels(len(names))
    count = _PROFILE_POINTS if estimate.num_rows <= _LARGE else _PROFILE_POINTS_LARGE
    for ax, name in zip(axes, names, strict=True):
        known = fit.parameters[name].identified
        index = law.parameters.index(name)
        centre, error = float(estimate.natural[index]), math.sqrt(max(float(estimate.covariance[index, index]), 0.0))
        out = np.asarray if name in law.free_exponents else np.exp
        grid, curve = _profile(fit, name, count, _TOP * goal)
        if known:
            low, high = fit.parameters[name].low, fit.parameters[name].high
            ends = (out(grid[0]) if low is None else low, out(grid[-1]) if high is None else high)
            ax.axvspan(*map(float, ends), color=_INTERVAL, linewidth=0, zorder=0)
            parabola = ((grid - centre) / max(error, 1e-300)) ** 2
            ax.plot(out(grid), parabola, color=category(3).colour, linestyle=_DASHED, linewidth=1.1, zorder=4)
        ax.plot(out(grid), curve, color=category(0).colour if known else "0.6", zorder=3)
        ax.axhline(goal, color="0.2", linewidth=0.8, linestyle=":")
        ax.set_xlim(float(out(grid[0])), float(out(grid[-1])))
        ax.set_ylim(0, _TOP * goal)
        ax.set_xlabel(name)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        if not known:
            ax.text(0.5, 0.9, "not identified", transform=ax.transAxes, ha="center", color="0.35", fontsize=8)
    label_first(axes, r"$\Delta\chi^2$ (0 at the minimum)")
    handles: list[Any] = [
        Line2D([], [], color="0.2", linestyle=":", linewidth=0.8, label=f"{100 * fit.confidence:g} % threshold")
    ]
    if any(fit.parameters[name].identified for name in names):
        handles = [
            Line2D([], [], color=category(0).colour, label="profile"),
            Line2D(
                [], [], color=category(3).colour, linestyle=_DASHED, linewidth=1.1, label="parabola of the covariance"
            ),
            *handles,
            Patch(color=_INTERVAL, label=f"{percent(fit.confidence)}, {fit.headline}"),
        ]
    figure.legend(handles=handles, loc="outside upper left", ncols=4 if len(names) > 1 else 2)
    return figure


def _profile(fit: LawFit, name: str, count: int, top: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns values to hold a parameter at, in its space, and delta chi^2 there: as far as a panel shows it."""
    estimate, one = fit.estimate, fit.parameters[name]
    index, logged = fit.law.parameters.index(name), name not in fit.law.free_exponents
    centre, error = float(estimate.natural[index]), math.sqrt(max(float(estimate.covariance[index, index]), 0.0))
    reach = min(1.2 * math.sqrt(top) * error, _FARTHEST)
    low, high = centre - reach, centre + reach
    for end in (one.low, one.high) if one.identified else ():
        if end is not None and (end > 0 or not logged):
            beyond = centre + 1.15 * ((math.log(end) if logged else end) - centre)
            low, high = min(low, beyond), max(high, beyond)
    coarse = np.linspace(low, high, 2 * (count // 4) + 1)
    if logged and not one.identified:
        # It may have vanished: from nothing to where it would be all of the loss.
        log_loss = estimate.problem.log_loss
        most = log_loss.min() if name == "L0" else centre + np.median(log_loss) - estimate.theta[index]
        coarse = most + np.log(np.geomspace(1e-3, 1, len(coarse)))
    elif one.identified:
        coarse = np.union1d(coarse, [centre])
    curve = profile_curve(estimate, name, coarse)
    inside = np.flatnonzero(curve < top)
    if not inside.size:
        return coarse, curve
    # Closer where it is shown: a steep side must not be drawn as one corner.
    first, last = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, len(coarse) - 1)
    grid = np.linspace(coarse[first], coarse[last], count)
    if logged:
        grid = np.log(np.linspace(np.exp(grid[0]), np.exp(grid[-1]), count))
    values = np.union1d(coarse[first : last + 1], grid)
    return values, profile_curve(estimate, name, values)
