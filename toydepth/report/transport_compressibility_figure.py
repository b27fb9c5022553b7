"""Figure: how well one line over sizes tells the cascades, along training."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from toydepth.report.figures import Figures
from toydepth.report.law_figures import write_each
from toydepth.report.layout import new_figure
from toydepth.report.style import GREY, NotDrawn
from toydepth.report.transport_panels import (
    CHANNELS,
    choose,
    column,
    draw_track,
    family_look,
    flag_handles,
    step_axis,
)

_NAME = "transport_compressibility"


def write_transport_compressibility_figure(exponents: pd.DataFrame, folder: str | Path) -> Figures:
    """Writes transport_compressibility.png (150 dpi) and .svg: R^2 of the slopes D, z, delta against step.

    R^2 is that of the means of each size; a slope near 0 has a small one whatever its error. The three panels share y.
    Gaps, hollow and crossed points are as in `write_transport_exponents_figure`; no R^2, where all means are equal, is
    a gap too.

    Args:
        exponents: of `toydepth.transport.study.exponents_by_step`: family, step, kind, D_r_squared ..., as there.
        folder: made where it does not exist; a figure of the same name is replaced, or removed if it is skipped now.

    Returns:
        Figures: the files, and a reason for each family, or all, that cannot be shown.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row = {"family": "tied", "kind": "field", "D": 1.0, "num_sizes": 3, "step": 0}
        >>> with TemporaryDirectory() as folder:
        ...     write_transport_compressibility_figure(pd.DataFrame([row]), folder).skipped
        [('transport_compressibility', 'no slope has an R^2')]

    Source: arXiv 2605.02968, stepwise compressibility.
    """
    figures = write_each({_NAME: lambda table: _draw(table)}, exponents, folder)
    if figures.paths:
        figures.skipped.extend((_NAME, reason) for reason in choose(exponents)[1])
    return figures


def _draw(exponents: pd.DataFrame) -> Figure:
    shown, _ = choose(exponents)
    names = [f"{channel.name}_r_squared" for channel in CHANNELS]
    values = np.concatenate([column(own, name) for own in shown.values() for name in names])
    values = values[np.isfinite(values)]
    if not values.size:
        raise NotDrawn("no slope has an R^2")
    handles: list[Any] = [
        Line2D([], [], marker=family_look(i).marker, markersize=3, label=family, **family_look(i).line)
        for i, family in enumerate(shown)
    ]
    handles += flag_handles(shown)
    columns = 2 if max(len(str(one.get_label())) for one in handles) > 24 else 3
    figure = new_figure(7.2, 2.5 + 0.15 * -(-len(handles) // columns))
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    # A common axis, as near as the smallest allows: .998 and .9 must not look alike.
    low = max(math.floor(10 * float(values.min()) - 0.2) / 10, 0.0)
    for ax, channel, name in zip(axes, CHANNELS, names, strict=True):
        ax.axhline(1, color=GREY, linestyle=":", linewidth=0.8, zorder=0, label="_reference")
        for i, (family, own) in enumerate(shown.items()):
            draw_track(ax, own, name, family_look(i), family, banded=False)
        ax.set_title(channel.label, fontsize=8)
        ax.set_xlabel("Training step")
        step_axis(ax, np.concatenate([column(own, "step") for own in shown.values()]))
    axes[0].set_ylabel("R$^2$ over sizes")
    axes[0].set_ylim(low - 0.03 * (1 - low), 1 + 0.03 * (1 - low))
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, handlelength=3.0)
    return figure
