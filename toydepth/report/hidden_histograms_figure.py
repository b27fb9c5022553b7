"""Figure: how angles and norms of a language model's tokens are distributed, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from toydepth.report.figures import Figures
from toydepth.report.layout import new_figure, save
from toydepth.report.style import figure_style

_PANELS = {
    "theta_states": "Angle between states (rad)",
    "theta_updates": "Angle between updates (rad)",
    "norm": "Norm of the state",
}


def write_hidden_histograms_figure(
    histograms: pd.DataFrame, depth: int, folder: str | Path, name: str = "hidden_histograms"
) -> Figures:
    """Writes <name>.png and .svg: of each layer a column, as dark as its share of tokens in a bin.

    Tokens of the bulk; a dotted line marks pi/2 in the panel of updates. A mean by layer hides whether all tokens do
    the same: here it shows.

    Args:
        histograms: of `Measurement.histogram_table`: position, quantity, layer, left, right, count.
        depth: blocks of the model.
        folder: made where it does not exist.
        name: of the files, without ending.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with figure_style():
        return Figures(save(_draw(histograms, depth), target, name), [])


def _draw(histograms: pd.DataFrame, depth: int) -> Figure:
    figure = new_figure(7.2, 2.8)
    axes = figure.subplots(1, 3)
    inside = np.isfinite(histograms["left"]) & np.isfinite(histograms["right"])  # what lies outside of all bins is not
    bulk = pd.DataFrame(histograms[inside]).query("position == 'bulk'")
    mesh = None
    for ax, (quantity, label) in zip(axes, _PANELS.items(), strict=True):
        own = bulk.query("quantity == @quantity")
        ax.set_ylabel(label)
        ax.set_xlabel("Layer")
        ax.set_xlim(-0.5, depth + 0.5)
        if own.empty:
            continue
        edges, shares = _grid(own, depth)
        # Rasterised: thousands of cells would make an SVG of megabytes.
        mesh = ax.pcolormesh(
            np.arange(depth + 2) - 0.5, edges, shares, norm=LogNorm(1e-3, 1.0), cmap="viridis_r", rasterized=True
        )
        if quantity == "norm":
            ax.set_yscale("log")
        if quantity == "theta_updates":
            ax.axhline(np.pi / 2, color="white", linewidth=1.6)
            ax.axhline(np.pi / 2, color="black", linestyle=":", linewidth=0.9)
            ax.annotate("$\\pi/2$", (1.0, np.pi / 2), xycoords=("axes fraction", "data"), xytext=(2, 0),
                        textcoords="offset points", va="center", fontsize=7)  # fmt: skip
    if mesh is not None:
        figure.colorbar(mesh, ax=axes, label="Share of the layer's tokens in a bin", extend="min", pad=0.02)
    return figure


def _grid(own: pd.DataFrame, depth: int) -> tuple[np.ndarray, Any]:
    """Edges of all bins between the least and the largest that hold a value, and shares (bins, layers)."""
    left, right = (own[name].to_numpy(float) for name in ("left", "right"))
    width = float(right[0] - left[0])
    even = np.allclose(right - left, width)  # angles; the bins of norms grow
    place = np.rint(left / width if even else np.log2(left) * 4).astype(int)
    low, high = place.min(), place.max()
    every = np.arange(low, high + 2)
    edges = every * width if even else 2.0 ** (every / 4)
    shares = np.full((high - low + 1, depth + 1), np.nan)
    layers, counts = (own[name].to_numpy(int) for name in ("layer", "count"))
    shares[place - low, layers] = counts / np.bincount(layers, counts)[layers]
    return edges, shares
