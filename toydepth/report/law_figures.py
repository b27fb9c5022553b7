"""Figures of a fitted law: its residuals, what each term explains, and how sure each exponent is."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullFormatter

from toydepth.fit.law import LawFit
from toydepth.fit.law.profile import profile_curve, threshold
from toydepth.report.figures import Figures
from toydepth.report.layout import new_figure, place_panels, save
from toydepth.report.style import GREY, NotDrawn, category, figure_style
from toydepth.report.words import number, percent

MOST_POINTS = 2000
_WORDS = {"m": "Width m", "ell": "Depth ell", "D": "Tokens D", "tau": "Training time tau", "N": "Parameters N"}
_DATA = ("D", "tau")
_TALL, _WIDE = 2.35, 2.75  # inches of a panel
_GRID = 200
_PROFILE_POINTS = 41
_PROFILE_POINTS_LARGE, _LARGE = 31, 20_000  # rows; there each point takes seconds, and the curve is a parabola
_FARTHEST = 2.5  # from the minimum, in an exponent or ln L0, that a profile is drawn to
_TOP = 2.4  # of a panel of profiles, in thresholds
_INTERVAL = "#D6E6F2"
_DASHED = (0, (4, 2))
_AREAS = (0, 1, 5, 6, 4, 3)  # colours that stay apart when pale; black does not
_HATCHES = ("////", "\\\\\\\\", "xxxx", "....")
# Stops short of the palette's yellow, which is too pale for a point on white.
_MAP = ListedColormap(colormaps["viridis"](np.linspace(0.02, 0.86, 256)))


def write_law_figures(fit: LawFit, folder: str | Path) -> Figures:
    """Writes the figures of a fitted law as PNG (150 dpi) and SVG; the same fit gives the same bytes.

    law_residuals: residuals of ln L against the fitted loss and each variable. law_decomposition: the terms stacked
    along each variable, the others at their medians, with the rows moved there. law_profiles: how much worse the fit
    gets as an exponent, or L0, is held elsewhere. What the rows do not determine is grey or hatched, and says so.

    Args:
        fit: from `fit_law`.
        folder: made where it does not exist; figures of the same name are replaced.

    Returns:
        Figures: the files, and a reason for each figure that could not be drawn.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from toydepth.fit.law import fit_law
        >>> noise = np.exp(0.01 * np.cos(np.arange(8)))
        >>> table = {"m": 2.0 ** np.arange(8), "loss": (3 / 2.0 ** np.arange(8) + 2) * noise}
        >>> with TemporaryDirectory() as folder:
        ...     figures = write_law_figures(fit_law(table, columns={"m": "m"}), folder)
        >>> [path.name for path in figures.paths if path.suffix == ".png"]
        ['law_residuals.png', 'law_decomposition.png', 'law_profiles.png']

    Source: partial residuals, Ezekiel 1924; profiles, docs/notation.md.
    """
    return write_each(
        {"law_residuals": _draw_residuals, "law_decomposition": _draw_decomposition, "law_profiles": _draw_profiles},
        fit,
        folder,
    )


def write_each(drawings: dict[str, Callable[[Any], Figure]], shown: Any, folder: str | Path) -> Figures:
    """Draws and saves each figure; one that has nothing to show goes to `skipped`, and its old files go."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    skipped: list[tuple[str, str]] = []
    with figure_style():
        for name, draw in drawings.items():
            try:
                paths += save(draw(shown), target, name)
            except NotDrawn as reason:
                skipped.append((name, str(reason)))
                for kind in ("png", "svg"):
                    (target / f"{name}.{kind}").unlink(missing_ok=True)
    return Figures(paths, skipped)


def _draw_residuals(fit: LawFit) -> Figure:
    """Residuals of ln L in per cent; a panel for the fitted loss and each variable."""
    log_fitted = fit.estimate.problem.model.log_loss(fit.estimate.theta)
    residuals = 100 * (fit.estimate.problem.log_loss - log_fitted)
    weights = fit.estimate.weights
    spread = math.sqrt(float(np.sum(weights * residuals**2)) / max(fit.estimate.degrees, 1))
    names = fit.law.variables
    hue = next((name for name in names if name not in _DATA and np.ptp(fit.rows.variables[name]) > 0), "")
    colours: dict[str, Any] = {"color": category(0).colour}
    if hue:
        lowest, highest = (float(of(fit.rows.variables[hue])) for of in (np.min, np.max))
        colours = {"cmap": _MAP, "norm": LogNorm(lowest, highest)}
    against = {"Fitted loss": np.exp(log_fitted), **{variable_label(fit, n): fit.rows.variables[n] for n in names}}
    figure, axes = _panels(len(against))
    for ax, (label, x) in zip(axes, against.items(), strict=True):
        ax.axhspan(-2 * spread, 2 * spread, color="0.93", zorder=0)
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
        _scatter(ax, x, residuals, fit.rows.variables.get(hue), s=9, alpha=0.75, zorder=2, **colours)
        at, median = running_median(x, residuals)
        ax.plot(at, median, color=category(3).colour, linewidth=1.5, zorder=3)
        _log_axis(ax, x, label)
    _label_first(axes, "Residual of ln L (%)")
    if hue:
        bar = figure.colorbar(
            ScalarMappable(**colours),
            ax=list(axes),
            label=variable_label(fit, hue),
            aspect=25 * (1 if len(axes) <= 3 else 2),
            pad=0.01,
        )
        _name_ticks(bar.ax.yaxis, colours["norm"].vmin, colours["norm"].vmax, 6)
    handles = [
        Line2D([], [], color=category(3).colour, linewidth=1.5, label="running median"),
        Patch(color="0.9", label=f"± 2 standard deviations ({number(2 * spread)} %)"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure


def _draw_decomposition(fit: LawFit) -> Figure:
    """The terms, stacked, along each variable; the others at their medians."""
    model, theta = fit.estimate.problem.model, fit.estimate.theta
    rows, names = fit.rows.variables, fit.law.variables
    terms, floor = model.terms(theta)
    loss = np.exp(fit.estimate.problem.log_loss)
    middle = {name: float(np.median(values)) for name, values in rows.items()}
    figure, axes = _panels(len(names))
    lowest = highest = float(floor)
    for k, (ax, name) in enumerate(zip(axes, names, strict=True)):
        x = np.geomspace(rows[name].min(), rows[name].max() * (1 + 1e-9), _GRID)
        along = {other: np.full(_GRID, middle[other]) for other in names} | {name: x}
        parts, _ = model.on(along).terms(theta)
        # The own term on top, so that all below it is level.
        order = [*(j for j in range(len(names)) if j != k), k]
        bottom = np.full(_GRID, float(floor))
        level = float(floor)
        ax.fill_between(x, 0, bottom, linewidth=0, **_area(fit, "L0", None))
        for j in order:
            ax.fill_between(x, bottom, bottom + parts[j], linewidth=0, **_area(fit, f"c_{names[j]}", j))
            bottom = bottom + parts[j]
            level += float(parts[j][0]) if j != k else 0.0
        ax.plot(x, bottom, color="0.2", linewidth=0.9)
        # Each row as it would be with the others at their medians: what is left of its loss when they are taken off.
        moved = loss - float(floor) - (terms.sum(axis=0) - terms[k]) + level
        _scatter(ax, rows[name], moved, s=5, color="black", alpha=0.5, zorder=3)
        lowest = min(lowest, float(moved.min()))
        highest = max(highest, float(moved.max()), float(bottom.max()))
        _log_axis(ax, rows[name], variable_label(fit, name))
    # One axis for all, so that terms compare. Of L0 there is an end only, or it would press the terms into lines.
    air = 0.06 * (highest - lowest)
    foot = max(lowest - 2 * air, 0.0) if floor > 0 else 0.0
    axes[0].set_ylim(foot, highest + air)
    _label_first(axes, "Loss")
    title = "other variables at their medians" if len(names) > 1 else None
    handles: list[Any] = [
        Patch(label=_verdict(fit, term.coefficient, f"term of {variable_label(fit, term.variable)}"),
              **_area(fit, f"c_{term.variable}", j))
        for j, term in enumerate(fit.law.terms)
    ][::-1]  # fmt: skip
    if floor > 0:
        handles.append(Patch(label=_verdict(fit, "L0", "L0 (axis cut)" if foot else "L0"), **_area(fit, "L0", None)))
    handles.append(
        Line2D(
            [],
            [],
            color="black",
            marker="o",
            markersize=2.5,
            linestyle="",
            label="rows, moved to the medians" if title else "rows",
        )
    )
    figure.legend(handles=handles, loc="outside upper left", ncols=2, title=title, alignment="left")
    return figure


def _draw_profiles(fit: LawFit) -> Figure:
    """Delta chi^2 against each exponent and L0; against coefficients where no exponent is free."""
    law, estimate = fit.law, fit.estimate
    floor = ("L0",) * (law.irreducible_loss is None)
    names = (*(law.free_exponents or [term.coefficient for term in law.terms]), *floor)
    goal = threshold(estimate, fit.confidence)
    figure, axes = _panels(len(names))
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
    _label_first(axes, r"$\Delta\chi^2$ (0 at the minimum)")
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


def variable_label(fit: LawFit, name: str) -> str:
    """Returns a variable in words, with what was taken off it: `Depth ell - 1`."""
    offset = fit.offsets.get(name, 0.0)
    column = fit.labels.get(name, name)
    words = _WORDS.get(name, name if column == name else f"{column} ({name})")
    return f"{words} {'-' if offset > 0 else '+'} {abs(offset):g}" if offset else words


def thin(x: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """Returns the places of at most `most` points, spread evenly over their order along x.

    >>> thin(np.array([3.0, 1.0, 2.0]), 2).tolist()
    [1, 0]
    """
    if len(x) <= most:
        return np.arange(len(x))
    return np.argsort(x, kind="stable")[np.linspace(0, len(x) - 1, most).astype(int)]


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


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    """Returns panels with one y axis for all."""
    rows, columns, places = place_panels(["panel"] * count, max_columns=3)
    figure = new_figure(max(_WIDE * columns + 0.5, 3.6), _TALL * rows + 0.55)
    grid = figure.add_gridspec(rows, columns)
    axes: list[Axes] = []
    for place in places:
        axes.append(figure.add_subplot(grid[place], sharey=axes[0] if axes else None))
        axes[-1].tick_params(labelleft=place[1] == 0)
    return figure, axes


def _label_first(axes: list[Axes], label: str) -> None:
    for ax in axes:
        place = ax.get_subplotspec()
        if place is not None and place.is_first_col():
            ax.set_ylabel(label)


def _scatter(ax: Axes, x: np.ndarray, y: np.ndarray, colours: np.ndarray | None = None, **kind: Any) -> Any:
    shown = thin(x)
    if len(shown) < len(x):
        ax.set_title(f"{len(shown)} of {len(x)} rows shown", loc="right", fontsize=6.5, color=GREY, pad=2)
    if colours is not None:
        kind["c"] = colours[shown]
    return ax.scatter(x[shown], y[shown], linewidths=0, **kind)


def _log_axis(ax: Axes, x: np.ndarray, label: str) -> None:
    low, high = float(x.min()), float(x.max())
    ax.set_xscale("log")
    air = (high / low) ** 0.04 if high > low else 1.5
    ax.set_xlim(low / air, high * air)
    _name_ticks(ax.xaxis, *ax.get_xlim())
    ax.set_xlabel(label)


def _name_ticks(axis: Axis, low: float, high: float, most: int = 5) -> None:
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


def _area(fit: LawFit, name: str, index: int | None) -> dict[str, Any]:
    """The look of a term's area: its colour, or hatched grey where the rows do not determine it."""
    if _is_known(fit, name):
        return {"facecolor": "0.86" if index is None else _pale(index)}
    hatch = _HATCHES[-1 if index is None else index % (len(_HATCHES) - 1)]
    return {"facecolor": "0.96", "edgecolor": "0.62", "hatch": hatch}


def _verdict(fit: LawFit, name: str, words: str) -> str:
    return words if _is_known(fit, name) else f"{words}: not identified"


def _is_known(fit: LawFit, name: str) -> bool:
    """Whether the rows determine a coefficient, and the exponent of its term; or L0."""
    exponent = next((term.alpha for term in fit.law.terms if term.coefficient == name), name)
    return fit.parameters[name].identified and fit.parameters[exponent].identified


def _pale(index: int) -> tuple[float, float, float]:
    red, green, blue = to_rgb(category(_AREAS[index % len(_AREAS)]).colour)
    return 0.4 + 0.6 * red, 0.4 + 0.6 * green, 0.4 + 0.6 * blue


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
