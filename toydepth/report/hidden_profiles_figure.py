"""Figure: tokens in the plane of the principal components of their angle profiles, and what each cluster does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from toydepth.report.figures import Figures
from toydepth.report.layout import new_figure, save
from toydepth.report.style import Look, category, figure_style


def write_hidden_profiles_figure(
    table: pd.DataFrame,
    points: pd.DataFrame,
    profiles: pd.DataFrame,
    explained: Sequence[float],
    folder: str | Path,
    name: str = "hidden_profiles",
) -> Figures:
    """Writes <name>.png and .svg: the plane of the first two components, and the mean profile of each cluster.

    Left, a point a sampled token, small clusters on top; right, against relative depth, the mean of theta(h_k, h_k+1)
    and the band that holds the middle 90 % of the cluster's tokens. The legend gives shares with their intervals and
    how many tokens of each cluster stand at position 0.

    Args:
        table, points, profiles: of `toydepth.hidden.clusters.Clusters`.
        explained: shares of the variance of the first two components; NaN where there is no variance.
        folder: made where it does not exist.
        name: of the files, without ending.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with figure_style():
        return Figures(save(_draw(table, points, profiles, explained), target, name), [])


def _draw(table: pd.DataFrame, points: pd.DataFrame, profiles: pd.DataFrame, explained: Sequence[float]) -> Figure:
    figure = new_figure(6.8, 3.4)
    plane, depth = figure.subplots(1, 2)
    clusters: list[dict[str, Any]] = [
        {str(key): value for key, value in row.items()} for row in table.to_dict("records")
    ]
    looks = [category(place) for place in range(len(clusters))]
    for one, look in zip(clusters, looks, strict=True):
        _draw_tokens(plane, points.query(f"cluster == {one['cluster']}"), look, len(points))
        _draw_profile(depth, profiles.query(f"cluster == {one['cluster']}"), look, one["cluster"])
    for number, axis in enumerate((plane.xaxis, plane.yaxis)):
        share = explained[number] if number < len(explained) else float("nan")
        told = f", {100 * share:.0f} % of variance" if np.isfinite(share) else ""
        axis.set_label_text(f"Component {number + 1} (rad{told})")
        axis.set_major_locator(MaxNLocator(6))  # more would run into each other
    depth.set_xlabel("Relative depth (blocks passed / depth)")
    depth.set_ylabel("Angle between states (rad)")
    depth.set_xlim(0, 1)
    depth.set_ylim(0, None)
    handles = [
        Line2D([], [], color=look.colour, linestyle=look.dash, marker=look.marker, markersize=4) for look in looks
    ]
    title = "shaded: the middle 90 % of a cluster's tokens"
    figure.legend(
        handles, [_name(one) for one in clusters], loc="outside upper left", ncols=1, handlelength=3.0, title=title,
        alignment="left",
    )  # fmt: skip
    return figure


def _draw_tokens(ax: Axes, own: pd.DataFrame, look: Look, total: int) -> None:
    """Points; the more, the smaller and paler. One component alone is drawn on a line."""
    x = own["component_1"].to_numpy()
    y = own["component_2"].to_numpy() if "component_2" in own else np.zeros(len(own))
    few = len(own) < 0.05 * total or len(own) < 500
    # Thousands of points as shapes would make an SVG of megabytes.
    ax.scatter(
        x, y, s=9 if few else 3, color=look.colour, marker=look.marker if few else "o", alpha=0.8 if few else 0.25,
        linewidths=0, rasterized=True, zorder=3 if few else 2,
    )  # fmt: skip


def _draw_profile(ax: Axes, own: pd.DataFrame, look: Look, cluster: int) -> None:
    ordered = own.sort_values("relative_depth")
    x = ordered["relative_depth"].to_numpy()
    low, high = ordered["theta_q05"].to_numpy(), ordered["theta_q95"].to_numpy()
    ax.fill_between(x, low, high, color=look.colour, alpha=0.15, linewidth=0)
    few = len(x) < 8
    ax.plot(x, ordered["theta"].to_numpy(), marker=look.marker if few else "", markersize=3.5, label=f"{cluster}",
            **look.line)  # fmt: skip


def _name(one: dict[str, Any]) -> str:
    """Such as `bulk: 99.60 % [99.50, 99.68] of tokens, 0 % of them at position 0`."""
    kind = "bulk" if one["cluster"] == 0 else f"cluster {one['cluster']}"
    low, high = _percent(one["share_low"]), _percent(one["share_high"])
    where = f"{100 * one['first_share']:.0f} % of them at position 0"
    return f"{kind}: {_percent(one['share'])} % [{low}, {high}] of tokens, {where}"


def _percent(share: float) -> str:
    """Two places, of which rounding must not make all or none.

    >>> _percent(0.99999), _percent(1.0), _percent(0.00001)
    ('99.99', '100.00', '0.01')
    """
    if 0 < share < 1:
        return f"{min(max(100 * share, 0.01), 99.99):.2f}"
    return f"{100 * share:.2f}"
