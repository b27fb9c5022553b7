"""Figure: exponents of fields against those of their nulls, and the two effects between them, along training."""

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
from toydepth.report.style import Look, category
from toydepth.report.transport_panels import (
    CHANNELS,
    choose,
    column,
    draw_track,
    flag_handles,
    step_axis,
    tracks,
    value_limits,
)
from toydepth.report.words import percent

_NAME = "transport_nulls"
_MOST = 4
_KINDS = {
    "field": Look(category(0).colour, "-", "o"),
    "as_is": Look(category(1).colour, category(1).dash, "s"),
    "N0": Look("0.55", ":", "v"),
    "N1": Look(category(5).colour, category(3).dash, "D"),
    "N2": Look(category(3).colour, category(4).dash, "^"),
}
_EFFECTS = {
    "distribution": ("distribution: N2 - N0", Look(category(3).colour, "-", "^")),
    "assignment": ("assignment: as_is - N2", Look(category(2).colour, category(1).dash, "s")),
}


def write_transport_nulls_figure(
    exponents: pd.DataFrame, effects: pd.DataFrame, folder: str | Path, confidence: float = 0.95
) -> Figures:
    """Writes transport_nulls.png (150 dpi) and .svg: D, z, delta of field, as_is, N0, N1, N2, and both effects.

    A column a family, four at most. Of each channel the exponents, with the interval of the field over sizes, and below
    them the effects, with intervals over graph seeds, which hold for these fields alone. A family of one step has
    points with error bars. Gaps, hollow and crossed points are as in `write_transport_exponents_figure`.

    Args:
        exponents: of `toydepth.transport.study.exponents_by_step`.
        effects: of `toydepth.transport.study.effects_by_step`: family, step, effect, channel, mean, low, high; without
            rows the effects are left out.
        folder: made where it does not exist; a figure of the same name is replaced, or removed if it is skipped now.
        confidence: that of the intervals in both tables.

    Returns:
        Figures: the files, and a reason for each family, or all, that is not shown.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row = {"family": "tied", "D": 1.0, "z": 0.1, "delta": -0.1, "num_sizes": 3, "step": 0}
        >>> exponents = pd.DataFrame([row | {"kind": kind} for kind in ("field", "N2")])
        >>> effects = pd.DataFrame(columns=["family", "step", "effect", "channel", "mean", "low", "high"])
        >>> with TemporaryDirectory() as folder:
        ...     [path.name for path in write_transport_nulls_figure(exponents, effects, folder).paths]
        ['transport_nulls.png', 'transport_nulls.svg']

    Source: arXiv 2605.02968; as_is, the effects' pairs and intervals are ours.
    """
    figures = write_each({_NAME: lambda tables: _draw(tables[0], tables[1], confidence)}, (exponents, effects), folder)
    if figures.paths:
        figures.skipped.extend((_NAME, reason) for reason in choose(exponents, _MOST)[1])
    return figures


def _draw(exponents: pd.DataFrame, effects: pd.DataFrame, confidence: float) -> Figure:
    shown, _ = choose(exponents, _MOST)
    by_kind = {kind: tracks(exponents, kind) for kind in _KINDS if kind in set(exponents["kind"])}
    with_effects = bool(effects["family"].isin(list(shown)).any())
    each = 2 if with_effects else 1
    handles: list[Any] = [
        Line2D([], [], marker=_KINDS[kind].marker, markersize=3, label=kind, **_KINDS[kind].line) for kind in by_kind
    ]
    handles += [
        Line2D([], [], marker=look.marker, markersize=3, label=label, **look.line)
        for label, look in _EFFECTS.values() if with_effects
    ]  # fmt: skip
    # A null may be capped where the field is not.
    handles += flag_handles({f"{kind} {name}": rows[name] for kind, rows in by_kind.items() for name in shown})
    width = max(0.7 + 2.1 * len(shown), 4.2)
    columns = max(int(width / 1.65), 1)
    heights = [1.5, 1.0][:each] * len(CHANNELS)
    figure = new_figure(width, 0.6 + sum(heights) + 0.15 * (1 + (len(shown) < 2) + -(-len(handles) // columns)))
    axes = figure.subplots(len(heights), len(shown), sharex="col", sharey="row", squeeze=False, height_ratios=heights)
    for j, family in enumerate(shown):
        own = {kind: of_families[family] for kind, of_families in by_kind.items()}
        single = len(shown[family]) == 1
        for i, channel in enumerate(CHANNELS):
            _draw_kinds(axes[each * i, j], own, channel.name, single)
            if with_effects:
                _draw_effects(axes[each * i + 1, j], effects, family, shown[family], channel.name, single)
        axes[0, j].set_title(f"{family}, step {shown[family]['step'].iloc[0]:g}" if single else family, fontsize=8)
        if not single:
            step_axis(axes[-1, j], column(shown[family], "step"))
            axes[-1, j].set_xlabel("Training step")
    for i, channel in enumerate(CHANNELS):
        values = [of_families[family] for of_families in by_kind.values() for family in shown]
        _limit(axes[each * i], values, channel.name, channel.reference)
        axes[each * i, 0].set_ylabel(channel.label.replace(", ", "\n"))
        if with_effects:
            drawn = effects[(effects["channel"] == channel.name) & effects["family"].isin(list(shown))]
            _limit(axes[each * i + 1], [pd.DataFrame(drawn).rename(columns=_RENAMED)], "change", 0.0)
            axes[each * i + 1, 0].set_ylabel(f"effects on\n{channel.label.split(',')[0]}")
    figure.align_ylabels()
    said = f"shaded, bars: {percent(confidence)}; of exponents over sizes"
    # One family is too narrow for both.
    gap = ", " if len(shown) > 1 else ",\n"
    said += f"{gap}of effects over graph seeds" if with_effects else ""
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, handlelength=3.0, title=said,
                  alignment="left")  # fmt: skip
    return figure


_RENAMED = {"mean": "change", "low": "change_low", "high": "change_high"}


def _draw_kinds(ax: Axes, own: dict[str, pd.DataFrame], name: str, single: bool) -> None:
    for place, (kind, rows) in enumerate(own.items()):
        if single:
            moved = rows.assign(step=place)
            draw_track(ax, moved, name, _KINDS[kind], kind, banded=False)
        else:
            thin = {"field": 1.6}.get(kind, 1.0)
            draw_track(ax, rows, name, _KINDS[kind], kind, banded=kind == "field", width=thin)
    if single:
        _no_steps(ax)


def _draw_effects(ax: Axes, effects: pd.DataFrame, family: str, field: pd.DataFrame, name: str, single: bool) -> None:
    for place, (effect, (_, look)) in enumerate(_EFFECTS.items()):
        chosen = (effects["family"] == family) & (effects["channel"] == name) & (effects["effect"] == effect)
        rows = pd.DataFrame(effects[chosen]).set_index("step").rename(columns=_RENAMED)
        # A step without an effect is a gap.
        rows = rows.reindex(field["step"].to_numpy()).rename_axis("step").reset_index()
        if single:
            rows = rows.assign(step=1.0 + 2 * place)
        draw_track(ax, rows, "change", look, effect, banded=not single)
    if single:
        _no_steps(ax)


def _no_steps(ax: Axes) -> None:
    """Points side by side: the legend says which is which."""
    ax.set_xlim(-0.7, len(_KINDS) - 0.3)
    ax.set_xticks([])


def _limit(axes: Any, tables: list[pd.DataFrame], name: str, reference: float) -> None:
    parts = [np.concatenate([column(own, f"{name}{end}") for own in tables]) for end in ("", "_low", "_high")]
    for ax in axes:
        value_limits(ax, parts[0], parts[1], parts[2], reference)
