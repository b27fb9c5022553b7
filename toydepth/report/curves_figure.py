"""Figure: test loss against step, a line a depth."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from toydepth.report.layout import MAX_PANELS, new_figure, place_panels, wrap
from toydepth.report.series import Series
from toydepth.report.style import GREY, Look, NotDrawn, loss_limits, sequence
from toydepth.report.words import loss_label


def draw_training_curves(series: list[Series]) -> Figure:
    """Draws a panel a group: geometric means over replicates within their lowest and highest, step 0 omitted.

    An arm that diverged is a thin line up to where it did, and has no part in means and limits.

    Raises: NotDrawn where no arm has a loss after step 0.
    """
    rows = {id(one): _drawable(one) for one in series}
    shown = [one for one in series if len(rows[id(one)])][:MAX_PANELS]
    if not shown:
        raise NotDrawn("no arm has a loss after step 0")
    kinds = [str(one.labels["loss"]) for one in shown]
    shown.sort(key=lambda one: kinds.index(str(one.labels["loss"])))
    losses = [str(one.labels["loss"]) for one in shown]
    depths = sorted({float(depth) for one in shown for depth in rows[id(one)]["depth"].unique()})
    looks = {depth: sequence(i, len(depths)) for i, depth in enumerate(depths)}
    count, columns, places = place_panels(losses)
    width = 3.6 if columns == 1 else 2.2 if columns < 4 else 1.9
    figure = new_figure(columns * width + 1.2, count * (2.7 if count == 1 else 2.2) + 0.3)
    axes = figure.subplots(count, columns, squeeze=False, sharex=True)
    for one, loss, (row, column) in zip(shown, losses, places, strict=True):
        ax = axes[row, column]
        _draw_panel(ax, rows[id(one)], looks)
        name = one.name + (" (raw weights)" if one.weights == "raw" else "")
        ax.set_title(wrap(name, width), loc="left", fontsize=7.5)
        ax.set_ylim(_limits(pd.concat([rows[id(other)] for other in shown if other.labels["loss"] == loss])))
        if column == 0:
            ax.set_ylabel(loss_label(loss))
        else:
            ax.tick_params(labelleft=False, which="both")
        if (row + 1, column) not in places:
            ax.set_xlabel("Training step")
            ax.tick_params(labelbottom=True)
    for row, column in {(r, c) for r in range(count) for c in range(columns)} - set(places):
        axes[row, column].remove()
    figure.legend(handles=_handles(shown, rows, looks), title="Depth ell", loc="outside right upper", handlelength=3.0)
    return figure


def _drawable(one: Series) -> pd.DataFrame:
    rows = one.curves
    return rows.loc[rows["step"].gt(0) & rows["loss"].gt(0) & np.isfinite(rows["loss"].to_numpy())]


def _draw_panel(ax: Axes, rows: pd.DataFrame, looks: dict[float, Look]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    diverged = rows["diverged"].to_numpy(dtype=bool)
    kept = rows.loc[~diverged]
    for i, (depth, look) in enumerate(looks.items()):
        arms = kept.loc[kept["depth"].eq(depth)]
        if not len(arms):
            continue
        arms = arms.assign(log_loss=np.log(arms["loss"].to_numpy()))
        logs = arms.groupby("step")["log_loss"].agg(["mean", "min", "max"])
        if len(arms[["teacher_seed", "replicate"]].drop_duplicates()) > 1:
            low, high = np.exp(logs["min"].to_numpy()), np.exp(logs["max"].to_numpy())
            ax.fill_between(logs.index, low, high, color=look.colour, alpha=0.15, linewidth=0)
        spacing = max(1, len(logs) // 5)
        ax.plot(
            logs.index, np.exp(logs["mean"].to_numpy()), **look.line, linewidth=1.2, marker=look.marker, markersize=3,
            # Markers of different depths start apart, so that they do not sit on each other where lines meet.
            markevery=(i % spacing, spacing), label=f"{depth:g}",
        )  # fmt: skip
    for _, arm in rows.loc[diverged].groupby(["teacher_seed", "replicate", "depth"], dropna=False):
        colour = looks[float(arm["depth"].iloc[0])].colour
        ax.plot(arm["step"], arm["loss"], color=colour, linewidth=0.5, label="diverged")


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    diverged = rows["diverged"].to_numpy(dtype=bool)
    losses = rows["loss"].to_numpy(dtype=float)
    return loss_limits(losses if diverged.all() else losses[~diverged])


def _handles(shown: list[Series], rows: dict[int, pd.DataFrame], looks: dict[float, Look]) -> list[Line2D]:
    handles = [
        Line2D([], [], **look.line, linewidth=1.2, marker=look.marker, markersize=3, label=f"{depth:g}")
        for depth, look in looks.items()
    ]
    if any(rows[id(one)]["diverged"].any() for one in shown):
        handles.append(Line2D([], [], color=GREY, linewidth=0.5, label="diverged"))
    return handles
