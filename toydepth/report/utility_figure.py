"""Figure: what each block of a language model is worth, against relative depth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toydepth.report.figures import Figures
from toydepth.report.layout import new_figure, save
from toydepth.report.style import GREY, category, figure_style

_NAMES = {"skip": "skipped", "swap": "swapped with the next", "repeat": "repeated"}


def write_utility_figure(table: pd.DataFrame, folder: str | Path, name: str = "utility") -> Figures:
    """Writes <name>.png and .svg: the change of the loss, a line an intervention, with bands of two standard errors.

    y is a log axis, at whose lower end bands are cut; where a change is not positive, one that is linear around 0.

    Args:
        table: of `toydepth.llm.utility.Utility`.
        folder: made where it does not exist.
        name: of the files, without ending.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with figure_style():
        return Figures(save(_draw(table), target, name), [])


def _draw(table: pd.DataFrame) -> Figure:
    figure = new_figure(4.6, 3.2)
    ax = figure.subplots()
    for place, kind in enumerate(dict.fromkeys(table["intervention"])):
        own, look = table.query("intervention == @kind").sort_values("layer"), category(place)
        x, change = own["relative_depth"].to_numpy(float), own["change"].to_numpy(float)
        reach = 2 * own["change_error"].fillna(0).to_numpy(float)
        low = change - reach
        if (table["change"].to_numpy() > 0).all():
            low = np.maximum(low, table["change"].min() / 4)  # a log axis has no place for 0
        ax.fill_between(x, low, change + reach, color=look.colour, alpha=0.18, linewidth=0)
        marker = look.marker if len(x) <= 48 else ""
        ax.plot(x, change, marker=marker, markersize=3, label=_NAMES.get(kind, kind), **look.line)
    _scale(ax, table)
    ax.set_xlim(0, 1)
    ax.set_xlabel("Relative depth (middle of the blocks concerned)")
    ax.set_ylabel("Change of cross-entropy (nats per token)")
    title = "shaded: two standard errors, over documents"
    figure.legend(loc="outside upper left", ncols=3, handlelength=2.8, title=title, alignment="left")
    return figure


def _scale(ax: Axes, table: pd.DataFrame) -> None:
    """A log axis where every change is positive; else linear within the smallest tenth of sizes, and log beyond."""
    change = table["change"].to_numpy(float)
    change = change[np.isfinite(change)]
    if len(change) and (change > 0).all():
        ax.set_yscale("log")
        # A band that goes down to 0 and beyond is cut at the bottom.
        ax.set_ylim(float(change.min()) / 2, None)
        return
    sizes = np.abs(change[change != 0])
    if not sizes.size:
        return
    threshold = 10.0 ** np.floor(np.log10(np.quantile(sizes, 0.1)))
    ax.set_yscale("symlog", linthresh=float(threshold))
    ax.axhline(0, color=GREY, linewidth=0.7, zorder=0)
