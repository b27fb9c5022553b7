"""Figure: the last test loss against depth with its power law, and the local slopes below."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toydepth.report.depth_panels import (
    all_depths,
    draw_losses,
    draw_slopes,
    limits,
    mark_legend,
    panel_legend,
)  # fmt: skip
from toydepth.report.layout import MAX_PANELS, new_figure, place_panels
from toydepth.report.series import Series
from toydepth.report.style import NotDrawn, alpha_axis, depth_axis
from toydepth.report.words import loss_label

_CROWD = 4  # with more lines than this a panel's legend stands beside it, and bars are faint


def draw_loss_against_depth(series: list[Series]) -> Figure:
    """Draws a panel a family of groups, its temperatures over each other, at the last step that could be fitted.

    Small points are replicates, large ones their geometric mean: the fit is linear in ln L. What the fit left out is
    hollow; an arm without a loss (diverged, missing) is a hollow triangle on the upper edge, a loss not above 0 on the
    lower.

    Raises: NotDrawn where no group could be fitted.
    """
    fitted = [one for one in series if one.trajectory]
    if not fitted:
        raise NotDrawn("no group of arms could be fitted")
    families = list(dict.fromkeys(one.family for one in fitted))[:MAX_PANELS]
    panels = [[one for one in fitted if one.family == family] for family in families]
    kinds = [panel[0].labels["loss"] for panel in panels]
    panels.sort(key=lambda panel: kinds.index(panel[0].labels["loss"]))
    shown = [one for panel in panels for one in panel]
    losses = [str(panel[0].labels["loss"]) for panel in panels]
    lines = max(map(len, panels))
    crowded = lines > _CROWD
    rows, columns, places = place_panels(losses, 2 if crowded else 4)
    width = 3.3 if columns == 1 else 2.25
    height = (3.9 if len(panels) == 1 else 3.1) + (0.09 * max(lines - 10, 0) if crowded else 0.35 + 0.15 * lines)
    figure = new_figure(columns * (width + 2.2 * crowded) + 0.6, rows * height + 0.5)
    axes = figure.subplots(2 * rows, columns, squeeze=False, height_ratios=[2.1, 1.0] * rows)
    depths = sorted({depth for one in shown for depth in all_depths(one)})
    slopes = np.concatenate([one.end.fit.local_slopes["slope"].to_numpy() for one in shown])
    for panel, loss, (row, column) in zip(panels, losses, places, strict=True):
        top, bottom = axes[2 * row, column], axes[2 * row + 1, column]
        draw_losses(top, panel)
        draw_slopes(bottom, panel, faint_bars=crowded)
        panel_legend(top, panel, width, aside=crowded)
        alpha_axis(bottom, slopes)
        # A loss in nats and a mean square have no common axis; within one loss, panels are to be compared.
        top.set_ylim(limits([one for one in shown if one.labels["loss"] == loss]))
        for ax in (top, bottom):
            depth_axis(ax, depths, width)
        _name_axes(top, bottom, loss, first=column == 0)
    for row, column in {(r, c) for r in range(rows) for c in range(columns)} - set(places):
        axes[2 * row, column].remove()
        axes[2 * row + 1, column].remove()
    figure.align_ylabels()
    handles = mark_legend(shown)
    fitting = int(figure.get_figwidth() / 1.75)
    figure.legend(handles=handles, loc="outside lower center", ncols=max(1, min(len(handles), fitting)))
    return figure


def _name_axes(top: Axes, bottom: Axes, loss: str, *, first: bool) -> None:
    """Labels x below the slopes and y on the left only: the panels of a row share both."""
    top.tick_params(labelbottom=False)
    bottom.set_xlabel("Depth ell (blocks)")
    if first:
        top.set_ylabel(loss_label(loss))
        bottom.set_ylabel("Local slope")
    else:
        top.tick_params(labelleft=False, which="both")
        bottom.tick_params(labelleft=False)
