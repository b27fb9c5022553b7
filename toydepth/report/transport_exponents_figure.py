"""Figure: the finite-size exponents D, z and delta along training."""

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
from toydepth.report.layout import new_figure
from toydepth.report.style import Look
from toydepth.report.transport_panels import (
    CHANNELS,
    choose,
    column,
    draw_track,
    family_look,
    flag_handles,
    flags,
    step_axis,
    value_limits,
)
from toydepth.report.words import percent

_NAME = "transport_exponents"
_MAX_BANDS = 4  # more bands than this are one grey mush: the interval is then drawn at the last step only


def write_transport_exponents_figure(exponents: pd.DataFrame, folder: str | Path, confidence: float = 0.95) -> Figures:
    """Writes transport_exponents.png (150 dpi) and .svg: D, z and delta of the fields against step, a line a family.

    Bands are intervals; with more than four families, bars at the last step of each. Dotted: D = 1, z = 0, delta = 0. A
    step without exponents is a gap. Hollow: cascades of that step were capped, whose s and n are lower bounds; crossed:
    fewer sizes than at other steps. Where the families have one step in all, they are rows with error bars.

    Args:
        exponents: of `toydepth.transport.study.exponents_by_step`: family, step, kind, D, D_low, D_high ...,
            num_sizes, num_capped, missing.
        folder: made where it does not exist; a figure of the same name is replaced, or removed if it is skipped now.
        confidence: that of the intervals in the table.

    Returns:
        Figures: the files, and a reason for each family, or all, that cannot be shown.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row = {"family": "tied", "kind": "field", "D": 1.0, "z": 0.1, "delta": -0.1, "num_sizes": 3}
        >>> with TemporaryDirectory() as folder:
        ...     table = pd.DataFrame([row | {"step": step} for step in (0, 10, 100)])
        ...     [path.name for path in write_transport_exponents_figure(table, folder).paths]
        ['transport_exponents.png', 'transport_exponents.svg']

    Source: arXiv 2605.02968.
    """
    figures = write_each({_NAME: lambda table: _draw(table, confidence)}, exponents, folder)
    if figures.paths:
        figures.skipped.extend((_NAME, reason) for reason in choose(exponents)[1])
    return figures


def _draw(exponents: pd.DataFrame, confidence: float) -> Figure:
    shown, _ = choose(exponents)
    steps = np.unique(np.concatenate([column(own, "step") for own in shown.values()]))
    looks = {family: family_look(i) for i, family in enumerate(shown)}
    return (_draw_rows if len(steps) == 1 else _draw_lines)(shown, looks, steps, confidence)


def _draw_lines(shown: dict[str, pd.DataFrame], looks: dict[str, Look], steps: np.ndarray, confidence: float) -> Figure:
    banded = len(shown) <= _MAX_BANDS
    handles: list[Any] = [
        Line2D([], [], marker=look.marker, markersize=3, label=family, **look.line) for family, look in looks.items()
    ]
    handles += flag_handles(shown)
    columns = 2 if max(len(str(one.get_label())) for one in handles) > 24 else 3
    figure = new_figure(6.4, 5.4 + 0.15 * -(-len(handles) // columns))
    axes = figure.subplots(3, 1, sharex=True)
    for ax, channel in zip(axes, CHANNELS, strict=True):
        for i, (family, own) in enumerate(shown.items()):
            draw_track(ax, own, channel.name, looks[family], family, banded=banded)
            if not banded:
                _draw_end(ax, own, channel.name, looks[family], i / (len(shown) - 1))
        _limit(ax, shown, channel.name, channel.reference, "y")
        ax.set_ylabel(channel.label)
    step_axis(axes[-1], steps)
    if not banded:
        axes[-1].set_xlim(None, steps[-1] * 2.6)
    axes[-1].set_xlabel("Training step")
    figure.align_ylabels()
    said = f"{'shaded' if banded else 'bars beside the last step'}: {percent(confidence)}"
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, handlelength=3.0, title=said,
                  alignment="left")  # fmt: skip
    return figure


def _draw_end(ax: Axes, own: pd.DataFrame, name: str, look: Look, place: float) -> None:
    """The interval at the last step with one, beside the line so that families do not hide each other."""
    known = np.flatnonzero(np.isfinite(column(own, f"{name}_low")))
    if not known.size or column(own, "step")[known[-1]] <= 0:
        return
    last = known[-1]
    x = column(own, "step")[last] * 1.12 * 2.0**place
    ax.plot([x, x], [column(own, f"{name}_{end}")[last] for end in ("low", "high")], color=look.colour, linewidth=1.2,
            label="_interval")  # fmt: skip


def _draw_rows(shown: dict[str, pd.DataFrame], looks: dict[str, Look], steps: np.ndarray, confidence: float) -> Figure:
    """One step: a row a family, a panel a channel."""
    longest = max(map(len, shown))
    figure = new_figure(5.2 + min(0.06 * longest, 2.0), 1.1 + 0.22 * len(shown))
    axes = figure.subplots(1, 3, sharey=True)
    for ax, channel in zip(axes, CHANNELS, strict=True):
        for row, (family, own) in enumerate(shown.items()):
            value, low, high = (column(own, f"{channel.name}{end}")[0] for end in ("", "_low", "_high"))
            marked, look = flags(own), looks[family]
            ax.plot([low, high], [row, row], color=look.colour, linewidth=1.2, label="_interval")
            fill = "white" if marked["capped"][0] else look.colour
            ax.plot([value], [row], marker=look.marker, color=look.colour, markerfacecolor=fill, label=family)
        _limit(ax, shown, channel.name, channel.reference, "x")
        ax.set_xlabel(channel.label)
    axes[0].set_yticks(range(len(shown)), list(shown))
    axes[0].set_ylim(len(shown) - 0.5, -0.5)
    said = f"Step {steps[0]:g}; bars: {percent(confidence)}"
    handles = flag_handles(shown)
    figure.legend(handles=handles, loc="outside upper left", title=said, alignment="left", ncols=2)
    return figure


def _limit(ax: Axes, shown: dict[str, pd.DataFrame], name: str, reference: float, axis: str) -> None:
    parts = [np.concatenate([column(own, f"{name}{end}") for own in shown.values()]) for end in ("", "_low", "_high")]
    value_limits(ax, parts[0], parts[1], parts[2], reference, axis)
