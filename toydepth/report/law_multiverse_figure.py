"""Figure: each exponent under every combination of choices, sorted, with the choices below."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from toydepth.fit.law.choice.combinations import Combination
from toydepth.fit.law.choice.effects import Multiverse
from toydepth.fit.law.choice.options import CHOICES, EITHER
from toydepth.intervals import t_interval
from toydepth.report.figures import Figures
from toydepth.report.law_figures import write_each
from toydepth.report.layout import new_figure
from toydepth.report.style import GREY, NotDrawn, category
from toydepth.report.words import percent

_HEADS = {"exclude_highest": "excluded", "ties": "ties", "offset": "offset", "objective": "objective", "law": "law"}
_PANEL = 2.3  # inches of axis
_LINE = 0.125  # inches of a line of dots


def write_multiverse_figure(multiverse: Multiverse, folder: str | Path) -> Figures:
    """Writes law_multiverse.png (150 dpi) and .svg: a specification curve of each free exponent.

    Above, an exponent with its interval (of the covariance) under every combination that determines it, from the lowest
    to the highest; below, dots that say what each combination chose. A line marks the base.

    Args:
        multiverse: from `toydepth.fit.law.choice.multiverse`.
        folder: made where it does not exist; a figure of the same name is replaced.

    Returns:
        Figures: the files, and a reason for each exponent, or all, that cannot be shown.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from toydepth.fit.law import make_law
        >>> from toydepth.fit.law.choice.multiverse import multiverse
        >>> noise = np.exp(0.01 * np.cos(np.arange(12)))
        >>> table = {"m": 2.0 ** np.arange(12), "loss": (3 / 2.0 ** np.arange(12) + 2) * noise}
        >>> found = multiverse(table, make_law("decomposed", ["m"]), {"m": "m"}, objectives=["log", "student"])
        >>> with TemporaryDirectory() as folder:
        ...     [path.name for path in write_multiverse_figure(found, folder).paths]
        ['law_multiverse.png', 'law_multiverse.svg']

    Source: Simonsohn, Simmons, Nelson, Nature Human Behaviour 2020.
    """
    figures = write_each({"law_multiverse": _draw}, multiverse, folder)
    if figures.paths:
        lost = [name for name in multiverse.exponents if not _sorted(multiverse, name)]
        figures.skipped.extend(("law_multiverse", f"no combination determines {name}") for name in lost)
    return figures


def _draw(found: Multiverse) -> Figure:
    shown = {name: _sorted(found, name) for name in found.exponents}
    shown = {name: among for name, among in shown.items() if among}
    if not shown:
        raise NotDrawn("no combination determines a free exponent" if found.exponents else "no exponent is free")
    lines = _lines(found)
    handles: list[Any] = [
        Line2D([], [], color=_colour(found, kind), marker="o", markersize=3.5, label=kind)
        for kind in found.options["objective"]
    ]
    if len(_shapes(found)) > 1:
        marks: dict[str, Any] = {"color": GREY, "linestyle": "", "markersize": 3.5}
        handles += [Line2D([], [], marker=marker, label=law, **marks) for law, marker in _shapes(found).items()]
    handles.append(Line2D([], [], color=GREY, linestyle=":", linewidth=0.9, label="base"))
    names = max(len(f"{choice} {option}") for choice, option in lines) if lines else 0
    width = 0.4 + 0.05 * names + (_PANEL + 0.35) * len(shown)
    # As many columns as fit, by the longest name.
    columns = max(int((width - 0.1) / (0.55 + 0.06 * max(len(str(one.get_label())) for one in handles))), 1)
    above = 0.17 * math.ceil(len(handles) / columns)
    figure = new_figure(width, 2.4 + _LINE * max(len(lines), 1) + above)
    axes = figure.subplots(2, len(shown), sharex="col", squeeze=False, height_ratios=(2.0, _LINE * max(len(lines), 1)))
    for i, (name, among) in enumerate(shown.items()):
        _draw_values(axes[0, i], found, name, among)
        _draw_dots(axes[1, i], lines, among, named=i == 0)
    axes[0, 0].set_ylabel(f"Exponent, {percent(found.confidence)}")
    figure.legend(handles=handles, loc="outside upper left", ncols=min(columns, len(handles)), columnspacing=1.4)
    return figure


def _draw_values(ax: Axes, found: Multiverse, name: str, among: list[Combination]) -> None:
    size = _size(among, 3.4)
    for place, one in enumerate(among):
        value = one.values[name]
        span = t_interval(value, one.errors[name], one.rows - len(one.law.parameters), found.confidence)
        colour = _colour(found, one.options["objective"])
        if span is not None:
            ax.plot([place, place], span, color=colour, linewidth=0.8, alpha=0.55, zorder=2)
        marker = _shapes(found)[one.options["law"]]
        ax.plot([place], [value], color=colour, marker=marker, markersize=size, markeredgewidth=0, zorder=3)
    if found.base in among:
        ax.axvline(among.index(found.base), color=GREY, linestyle=":", linewidth=0.9, zorder=1)
        ax.axhline(found.base.values[name], color=GREY, linestyle=":", linewidth=0.9, zorder=1)
    values = [one.values[name] for one in among]
    reach = np.array([t for one in among if (t := 2.5 * one.errors[name]) < math.inf])
    low, high = min(values), max(values)
    # Limits follow the typical interval: one that is very wide would flatten the rest.
    air = max(float(np.median(reach)) if reach.size else 0.0, 0.15 * (high - low), 1e-3 * abs(high) + 1e-9)
    ax.set_ylim(low - air, high + air)
    ax.set_xlim(-1, len(among))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    fitted = sum(name in one.law.parameters and one.reason is None for one in found.combinations)
    ax.set_title(f"{name}: {len(among)} of {fitted} fits", loc="left", fontsize=8)
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(bottom=False)


def _draw_dots(ax: Axes, lines: list[tuple[str, str]], among: list[Combination], *, named: bool) -> None:
    size = _size(among, 1.9)
    for row, (choice, option) in enumerate(lines):
        made = [place for place, one in enumerate(among) if one.options[choice] in (option, *_both(choice))]
        ax.plot(made, [row] * len(made), linestyle="", marker="o", markersize=size, color="0.15", markeredgewidth=0)
        if row and choice != lines[row - 1][0]:
            ax.axhline(row - 0.5, color="0.85", linewidth=0.6, zorder=0)
    ax.set_ylim(max(len(lines), 1) - 0.5, -0.5)
    ax.yaxis.set_major_locator(FixedLocator(range(len(lines))))
    ax.yaxis.set_minor_locator(NullLocator())
    if named:
        ax.set_yticks(range(len(lines)), [f"{_HEADS[choice]} {option}" for choice, option in lines], fontsize=6)
    else:
        ax.tick_params(labelleft=False)
    ax.tick_params(left=False)
    ax.xaxis.set_major_locator(NullLocator())
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.set_xlabel("combinations, sorted")


def _size(among: list[Combination], largest: float) -> float:
    """The size of a marker, in points, of which so many stand side by side in a panel."""
    return max(min(largest, 0.8 * 72 * _PANEL / len(among)), 0.8)


def _sorted(found: Multiverse, name: str) -> list[Combination]:
    return sorted((one for one in found.combinations if name in one.values), key=lambda one: one.values[name])


def _lines(found: Multiverse) -> list[tuple[str, str]]:
    """(choice, option) of the lines of dots: choices with several options; laws only where several free an exponent."""
    options = {**found.options, "law": tuple(_shapes(found))}
    if all(one.ties == EITHER for one in found.combinations):
        del options["ties"]
    return [(choice, option) for choice in CHOICES if len(options.get(choice, ())) > 1 for option in options[choice]]


def _both(choice: str) -> tuple[str, ...]:
    """A combination of either tie rule stands under both."""
    return (EITHER,) if choice == "ties" else ()


def _colour(found: Multiverse, kind: str) -> Any:
    return category(found.options["objective"].index(kind)).colour


def _shapes(found: Multiverse) -> dict[str, str]:
    """The marker of each law that frees an exponent."""
    names = dict.fromkeys(one.options["law"] for one in found.combinations if one.law.free_exponents)
    return {name: category(i).marker for i, name in enumerate(names)}
