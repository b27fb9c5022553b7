"""Figure: where in a language model a restored state brings a fact back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from toydepth.report.figures import Figures
from toydepth.report.layout import new_figure, save
from toydepth.report.style import figure_style


def write_trace_figure(table: pd.DataFrame, folder: str | Path, name: str = "trace") -> Figures:
    """Writes <name>.png and .svg: a heat map, a row a role of positions, a column a layer.

    Args:
        table: of `toydepth.llm.tracing.Tracing`.
        folder: made where it does not exist.
        name: of the files, without ending.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with figure_style():
        return Figures(save(_draw(table), target, name), [])


def _draw(table: pd.DataFrame) -> Figure:
    roles = list(dict.fromkeys(table["role"]))
    grid = table.pivot(index="role", columns="layer", values="effect").loc[roles]
    values, layers = grid.to_numpy(float), grid.columns.to_numpy()
    facts = {str(role): int(count) for role, count in zip(table["role"], table["facts"], strict=True)}
    figure = new_figure(6.0, 0.95 + 0.27 * len(roles))
    ax = figure.subplots()
    # White is 0 on both sides: what hurts must not look like a little help.
    reach = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    edges = np.arange(len(layers) + 1) - 0.5
    mesh = ax.pcolormesh(edges, np.arange(len(roles) + 1) - 0.5, values, cmap="RdBu_r", vmin=-reach, vmax=reach)
    ax.invert_yaxis()
    ax.set_yticks(range(len(roles)), [f"{role} ({facts[role]})" for role in roles])
    ax.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    ax.tick_params(axis="y", length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel("Layer of the restored state (0: embedding)")
    ax.set_ylabel("Position (facts)")
    bar = figure.colorbar(mesh, ax=ax, pad=0.015, aspect=12)
    bar.set_label("Probability\nbrought back")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return figure
