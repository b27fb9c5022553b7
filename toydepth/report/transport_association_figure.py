"""Figure: rank correlations of channels with the loss, as a forest of points and intervals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from toydepth.report.figures import Figures
from toydepth.report.law_figures import write_each
from toydepth.report.layout import new_figure
from toydepth.report.style import GREY, NotDrawn
from toydepth.report.transport_panels import column, records
from toydepth.report.words import percent

_NAME = "transport_association"
_KINDS = {
    "raw": "raw",
    "partial": "given the\nlearning rate",
    "given_step": "given\nthe step",
    "differences": "of changes\nfrom step to step",
}
_ROW = ("family", "model", "channel")
_MOST_ROWS = 60
_SURE, _UNSURE = "#0072B2", "0.55"
_BELOW = 0.05


def write_transport_association_figure(
    association: pd.DataFrame, folder: str | Path, confidence: float = 0.95
) -> Figures:
    """Writes transport_association.png (150 dpi) and .svg: a row a channel, a panel a kind of rank correlation.

    Blue: p < 0.05 after Holm's correction over the channels of that model or family; grey: not, or no p. Hollow, and
    said at the right: the raw correlation may be no more than two trends, for it is lost, or undefined, in what stands
    there. Intervals are not corrected.

    Args:
        association: of `toydepth.transport.channels.associate_study`: family, model, channel, kind, rho, low, high,
            p_holm, problem, trend.
        folder: made where it does not exist; a figure of the same name is replaced, or removed if it is skipped now.
        confidence: that of the intervals in the table.

    Returns:
        Figures: the files, and why correlations are not defined, or rows not shown.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row = {"family": "tied", "model": "width 8", "channel": "ln v_rel", "kind": "raw", "rho": 0.6, "low": 0.2,
        ...        "high": 0.8, "p_holm": 0.01, "problem": None, "trend": ""}
        >>> with TemporaryDirectory() as folder:
        ...     [path.name for path in write_transport_association_figure(pd.DataFrame([row]), folder).paths]
        ['transport_association.png', 'transport_association.svg']

    Source: rank and partial rank correlations, arXiv 2605.02968; the rest is ours.
    """
    figures = write_each({_NAME: lambda table: _draw(table, confidence)}, association, folder)
    if figures.paths:
        figures.skipped.extend((_NAME, reason) for reason in _unsaid(association))
    return figures


def _draw(association: pd.DataFrame, confidence: float) -> Figure:
    if association.empty:
        raise NotDrawn("no model has a loss at 12 steps or more")
    if not np.isfinite(column(association, "rho")).any():
        raise NotDrawn("; ".join(_unsaid(association)))
    rows = _rows(association)[:_MOST_ROWS]
    kinds = [kind for kind in _KINDS if kind in set(association["kind"])]
    names = _names(rows)
    figure = new_figure(1.6 * len(kinds) + 0.055 * max(map(len, names)) + 1.5, 1.2 + 0.17 * len(rows))
    axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    found = {tuple(str(row[name]) for name in (*_ROW, "kind")): row for row in records(association)}
    for ax, kind in zip(axes, kinds, strict=True):
        for y, key in enumerate(rows):
            one = found.get((*key, kind))
            if one is not None:
                _draw_one(ax, y, one)
        _arrange(ax, rows, _KINDS[kind])
    for y, key in enumerate(rows):
        trend = next((found[*key, kind]["trend"] for kind in kinds if (*key, kind) in found), "")
        if trend:
            axes[-1].annotate(
                f"trend: lost {trend}", (1.0, y), xycoords=("axes fraction", "data"), xytext=(4, 0),
                textcoords="offset points", va="center", fontsize=6.5, annotation_clip=False,
            )  # fmt: skip
    axes[0].set_yticks(range(len(rows)), names)
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    figure.supxlabel(f"Rank correlation with ln loss, {percent(confidence)}", fontsize=8)
    marks: dict[str, Any] = {"marker": "o", "markersize": 4}
    handles = [
        Line2D([], [], color=_SURE, label="p < 0.05 after Holm's correction", **marks),
        Line2D([], [], color=_UNSURE, label="not, or no p", **marks),
        Line2D([], [], color=GREY, linestyle="", markerfacecolor="white", label="hollow: may be a trend", **marks),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    return figure


def _rows(association: pd.DataFrame) -> list[tuple[str, ...]]:
    """(family, model, channel) of each row, in the table's order."""
    keys = zip(*(association[name].astype(str) for name in _ROW), strict=True)
    return list(dict.fromkeys(keys))


def _names(rows: list[tuple[str, ...]]) -> list[str]:
    """The channel; on the first row of a model, the family and the model too."""
    return [
        channel if i and rows[i - 1][:2] == (family, model) else f"{family}, {model}    {channel}"
        for i, (family, model, channel) in enumerate(rows)
    ]


def _draw_one(ax: Axes, y: int, one: dict[str, Any]) -> None:
    rho, low, high, p = (np.nan if one[name] is None else float(one[name]) for name in ("rho", "low", "high", "p_holm"))
    if not np.isfinite(rho):
        ax.text(0, y, "undefined", ha="center", va="center", fontsize=6, color=GREY,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # fmt: skip
        return
    colour = _SURE if p < _BELOW else _UNSURE
    ax.plot([low, high], [y, y], color=colour, linewidth=1.1, label="_interval")
    fill = "white" if one["trend"] else colour
    ax.plot([rho], [y], marker="o", markersize=4, color=colour, markerfacecolor=fill, label=str(one["channel"]))


def _arrange(ax: Axes, rows: list[tuple[str, ...]], title: str) -> None:
    ax.axvline(0, color=GREY, linestyle=":", linewidth=0.8, zorder=0, label="_reference")
    for y in range(1, len(rows)):
        if rows[y][:2] != rows[y - 1][:2]:
            thick = rows[y][0] != rows[y - 1][0]
            ax.axhline(y - 0.5, color="0.6" if thick else "0.88", linewidth=0.7, zorder=0, label="_separator")
    ax.set_title(title, fontsize=8)
    ax.set_xlim(-1.05, 1.05)
    ax.xaxis.set_major_locator(FixedLocator([-1, 0, 1]))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _unsaid(association: pd.DataFrame) -> list[str]:
    """What is not defined and why; which rows have no place."""
    undefined = Counter(
        (str(row["kind"]), str(row["problem"] or "no reason given"))
        for row in records(association) if row["rho"] is None
    )  # fmt: skip
    reasons = []
    for (kind, problem), count in undefined.items():
        said = " ".join(_KINDS.get(kind, kind).split())
        reasons.append(f"the correlation {said} is not defined in {count} rows: {problem}")
    rest = _rows(association)[_MOST_ROWS:]
    if rest:
        models = dict.fromkeys(", ".join(key[:2]) for key in rest)
        reasons.append(f"{len(rest)} rows are not shown, {_MOST_ROWS} is the most: of {'; '.join(models)}")
    return reasons
