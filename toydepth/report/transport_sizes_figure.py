"""Figure: size and duration of cascades against the number of nodes, with the slopes fitted to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from toydepth.report.figures import Figures
from toydepth.report.law_figures import write_each
from toydepth.report.law_panels import name_ticks
from toydepth.report.layout import new_figure
from toydepth.report.style import GREY, Look
from toydepth.report.transport_panels import choose, column, family_look, records, tracks

_NAME = "transport_sizes"
_QUANTITIES = {"size": ("D", "Size s (relaxations)"), "duration": ("z", "Duration n (steps)")}
_NULLS: dict[str, Any] = {"N2": (0, (5, 2)), "N0": (0, (1, 1.5))}
_MAX_WITH_NULLS = 2


def write_transport_sizes_figure(table: pd.DataFrame, exponents: pd.DataFrame, folder: str | Path) -> Figures:
    """Writes transport_sizes.png (150 dpi) and .svg: s and n against N at the last step with exponents, log-log.

    Pale points are cascades: replicates and graph seeds; a hollow triangle is a capped one, whose s and n are lower
    bounds. Large points are geometric means of a size; lines have the slope of the table and pass through the mean of
    these. The legend gives D and z with one standard error. Thin lines, with one or two families: nulls N2 and N0.

    Args:
        table: of `toydepth.transport.study.measure_study`: family, step, kind, num_nodes, size, duration, capped,
            problem.
        exponents: of `toydepth.transport.study.exponents_by_step` of that table.
        folder: made where it does not exist; a figure of the same name is replaced, or removed if it is skipped now.

    Returns:
        Figures: the files, and a reason for each family, or all, that cannot be shown.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row = {"family": "tied", "kind": "field", "step": 0}
        >>> nodes = pd.Series([100, 200, 400])
        >>> cascades = pd.DataFrame({"num_nodes": nodes, "size": nodes / 5, "duration": 4.0}).assign(**row)
        >>> cascades = cascades.assign(capped=False, problem=None)
        >>> exponents = pd.DataFrame([row | {"D": 1.0, "z": 0.0, "num_sizes": 3}])
        >>> with TemporaryDirectory() as folder:
        ...     [path.name for path in write_transport_sizes_figure(cascades, exponents, folder).paths]
        ['transport_sizes.png', 'transport_sizes.svg']

    Source: arXiv 2605.02968.
    """
    figures = write_each({_NAME: lambda tables: _draw(*tables)}, (table, exponents), folder)
    if figures.paths:
        figures.skipped.extend((_NAME, reason) for reason in choose(exponents)[1])
    return figures


def _draw(table: pd.DataFrame, exponents: pd.DataFrame) -> Figure:
    shown, _ = choose(exponents)
    handles: list[Any] = []
    rows = {family: _last(own) for family, own in shown.items()}
    with_nulls = len(shown) <= _MAX_WITH_NULLS
    figure = new_figure(6.8, 3.0 + 0.16 * (len(shown) + 1))
    axes = figure.subplots(1, 2)
    kinds, capped = set(), False
    for i, (family, row) in enumerate(rows.items()):
        look = family_look(i)
        own = table[(table["family"] == family) & (table["step"] == row["step"]) & table["problem"].isna()]
        field = pd.DataFrame(own[own["kind"] == "field"])
        for ax, (quantity, (exponent, _)) in zip(axes, _QUANTITIES.items(), strict=True):
            _draw_field(ax, field, quantity, float(row[exponent]), look, family)
            for kind in _NULLS if with_nulls else ():
                slope = _null_slope(exponents, kind, family, row["step"], exponent)
                null = pd.DataFrame(own[own["kind"] == kind])
                if len(null) and np.isfinite(slope):
                    kinds.add(kind)
                    _draw_line(ax, null, quantity, slope, f"_{kind}", color=look.colour, linewidth=0.9,
                               linestyle=_NULLS[kind])  # fmt: skip
        hit = np.unique(column(field, "num_nodes")[column(field, "capped") > 0]).tolist()
        capped = capped or bool(hit)
        handles.append(Line2D([], [], marker=look.marker, label=_legend(family, row, hit), **look.line))
    grey: dict[str, Any] = {"color": GREY}
    others: list[Any] = [
        Line2D([], [], linestyle=_NULLS[kind], linewidth=0.9, label=f"null {kind}", **grey)
        for kind in _NULLS if kind in kinds
    ]  # fmt: skip
    if capped:
        others.append(Line2D([], [], linestyle="", marker="^", markerfacecolor="none", label="capped", **grey))
    for ax, (_, label) in zip(axes, _QUANTITIES.values(), strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        name_ticks(ax.xaxis, *ax.get_xlim())
        name_ticks(ax.yaxis, *ax.get_ylim())
        ax.set_xlabel("Number of nodes N")
        ax.set_ylabel(label)
    if others:
        axes[0].legend(handles=others, loc="lower right", handlelength=3.0)
    figure.legend(handles=handles, loc="outside upper left", ncols=1, handlelength=3.0, title="± one standard error",
                  alignment="left")  # fmt: skip
    return figure


def _last(own: pd.DataFrame) -> dict[str, Any]:
    """The row of the last step with exponents."""
    place = int(np.flatnonzero(np.isfinite(column(own, "D")))[-1])
    return records(own.iloc[[place]])[0]


def _draw_field(ax: Axes, field: pd.DataFrame, quantity: str, slope: float, look: Look, family: str) -> None:
    capped = column(field, "capped") > 0
    nodes, values = column(field, "num_nodes"), column(field, quantity)
    points: dict[str, Any] = {"linestyle": "", "color": look.colour}
    ax.plot(nodes[~capped], values[~capped], marker=look.marker, markersize=3, markeredgewidth=0, alpha=0.3,
            label="_cascades", **points)  # fmt: skip
    ax.plot(nodes[capped], values[capped], marker="^", markersize=5, markerfacecolor="none", alpha=0.7,
            label="_capped", **points)  # fmt: skip
    sizes, means = _means(field, quantity)
    ax.plot(sizes, means, linestyle="", marker=look.marker, color=look.colour, markersize=4.5, label="_means")
    _draw_line(ax, field, quantity, slope, family, **look.line)


def _draw_line(ax: Axes, own: pd.DataFrame, quantity: str, slope: float, label: str, **style: Any) -> None:
    """Least squares passes through the mean of the points that it was fitted to."""
    sizes, means = _means(own, quantity)
    x = np.log(sizes)
    ends = np.array([x.min() - 0.15, x.max() + 0.15])
    ax.plot(np.exp(ends), np.exp(np.log(means).mean() + slope * (ends - x.mean())), label=label, **style)


def _means(own: pd.DataFrame, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """Geometric means of a quantity over the cascades of each N."""
    sizes, group = np.unique(column(own, "num_nodes"), return_inverse=True)
    return sizes, np.exp(np.bincount(group, np.log(column(own, quantity))) / np.bincount(group))


def _null_slope(exponents: pd.DataFrame, kind: str, family: str, step: Any, exponent: str) -> float:
    own = tracks(exponents, kind)[family]
    return float(column(own, exponent)[own["step"] == step][0])


def _legend(family: str, row: dict[str, Any], capped: list[Any]) -> str:
    """Such as `tied, step 1000: D 0.990 ± 0.012, z 0.130 ± 0.021; z curved; capped at N 5000`."""
    numbers, curved = [], []
    for exponent, _ in _QUANTITIES.values():
        error = row.get(f"{exponent}_error")
        spread = f"± {error:.3f}" if error is not None else "(no error)"
        numbers.append(f"{exponent} {row[exponent]:.3f} {spread}")
        # None: it cannot be told.
        curved += [exponent] if row.get(f"{exponent}_curved") else []
    told = f"{family}, step {row['step']:g}: {', '.join(numbers)}"
    told += f"; {' and '.join(curved)} curved" if curved else ""
    return told + (f"; capped at N {', '.join(f'{size:g}' for size in sorted(capped))}" if capped else "")
