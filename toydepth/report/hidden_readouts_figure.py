"""Figure: what each layer of language models would predict, in nats a token, read out in two ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from toydepth.report.figures import Figures
from toydepth.report.layout import new_figure, save
from toydepth.report.style import category, figure_style

_KINDS = {"cross_entropy": ("logit lens", "-"), "cross_entropy_last_block": ("through the last block", (0, (3, 1.5)))}


def write_hidden_readouts_figure(table: pd.DataFrame, folder: str | Path) -> Figures:
    """Writes hidden_readouts.png and .svg: cross-entropy against relative depth, a colour a model.

    Solid, the final norm and head on h_k; dashed, the last block before them; a band of two standard errors (tokens
    taken as independent).

    Args:
        table: a row a model and layer: run, network, relative_depth, cross_entropy and cross_entropy_last_block, each
            with _error.
        folder: made where it does not exist.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with figure_style():
        return Figures(save(_draw(table), target, "hidden_readouts"), [])


def _draw(table: pd.DataFrame) -> Figure:
    figure = new_figure(4.6, 3.4)
    ax = figure.subplots()
    own = table.query("network == 'model'")
    runs = list(dict.fromkeys(own["run"]))
    for place, run in enumerate(runs):
        layers = own.query("run == @run").sort_values("layer")
        x = layers["relative_depth"].to_numpy()
        for column, (name, dash) in _KINDS.items():
            if column not in layers or not np.isfinite(layers[column]).any():
                continue
            y, error = (layers[each].to_numpy(float) for each in (column, f"{column}_error"))
            colour = category(place).colour
            label = name if len(runs) == 1 else f"{Path(run).name}, {name}"
            ax.plot(x, y, color=colour, linestyle=dash, label=label)
            ax.fill_between(x, y - 2 * error, y + 2 * error, color=colour, alpha=0.2, linewidth=0)
    ax.set_xlabel("Relative depth (blocks passed / depth)")
    ax.set_ylabel("Cross-entropy (nats a token)")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, None)
    if ax.lines:  # one token has no next one
        figure.legend(loc="outside upper left", ncols=1 if len(runs) > 1 else 2, handlelength=3.0)
    return figure
