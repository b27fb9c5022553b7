"""Figure: how the exponents move with each setting that the sources leave open."""

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
from toydepth.report.style import GREY, Look, NotDrawn
from toydepth.report.transport_panels import CHANNELS, Channel, column, family_look, records, value_limits
from toydepth.report.words import percent

_NAME = "transport_sensitivity"
_MOST = 4


def write_transport_sensitivity_figure(
    sensitivity: pd.DataFrame, folder: str | Path, confidence: float = 0.95
) -> Figures:
    """Writes transport_sensitivity.png (150 dpi) and .svg: D, z, delta, a row a value of a setting.

    Each family, four at most, has a point with its interval; a line, and a band with one or two families, marks its
    value under the settings as they are, whose rows are in brackets. Hollow: capped cascades. A row without exponents
    says so. Dotted: D = 1, z = 0, delta = 0.

    Args:
        sensitivity: of `toydepth.transport.sensitivity.measure_sensitivity`, of one step: setting, value, is_default,
            family, step, D, D_low, D_high ..., num_capped, missing.
        folder: made where it does not exist; a figure of the same name is replaced, or removed if it is skipped now.
        confidence: that of the intervals in the table.

    Returns:
        Figures: the files, and a reason for each family that is not shown, and each row that has no exponents.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row = {"setting": "m_BA", "family": "tied", "step": 9, "z": 0.1, "delta": -0.1, "num_sizes": 3}
        >>> values = [{"value": "2", "is_default": True, "D": 1.0}, {"value": "3", "is_default": False, "D": 0.99}]
        >>> with TemporaryDirectory() as folder:
        ...     table = pd.DataFrame([row | value for value in values])
        ...     [path.name for path in write_transport_sensitivity_figure(table, folder).paths]
        ['transport_sensitivity.png', 'transport_sensitivity.svg']

    Source: the idea of a specification curve, Simonsohn, Simmons, Nelson, Nature Human Behaviour 2020.
    """
    figures = write_each({_NAME: lambda table: _draw(table, confidence)}, sensitivity, folder)
    if figures.paths:
        figures.skipped.extend((_NAME, reason) for reason in _unsaid(sensitivity))
    return figures


def _draw(sensitivity: pd.DataFrame, confidence: float) -> Figure:
    if sensitivity.empty or not np.isfinite(column(sensitivity, "D")).any():
        raise NotDrawn("no setting has an exponent")
    families = _families(sensitivity)[:_MOST]
    shown = pd.DataFrame(sensitivity[sensitivity["family"].isin(families)])
    rows = _rows(shown)
    height = 0.16 + 0.07 * (len(families) - 1)
    figure = new_figure(7.0, 1.0 + 0.15 * len(families) + height * len(rows))
    axes = figure.subplots(1, 3, sharey=True)
    steps = {str(row["family"]): row["step"] for row in records(shown)}
    for ax, channel in zip(axes, CHANNELS, strict=True):
        for i, family in enumerate(families):
            own = pd.DataFrame(shown[shown["family"] == family])
            shift = 0.6 * ((i + 0.5) / len(families) - 0.5)
            _draw_default(ax, own, channel, family_look(i), banded=len(families) <= 2)
            _draw_values(ax, own, channel, family_look(i), rows, shift)
        value, low, high = (column(shown, f"{channel.name}{end}") for end in ("", "_low", "_high"))
        value_limits(ax, value, low, high, channel.reference, "x")
        for y in range(1, len(rows)):
            if rows[y][0] != rows[y - 1][0]:
                ax.axhline(y - 0.5, color="0.85", linewidth=0.6, zorder=0, label="_separator")
        ax.set_xlabel(channel.label)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    axes[0].set_yticks(range(len(rows)), _names(rows, shown))
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    handles: list[Any] = [
        Line2D([], [], marker=family_look(i).marker, color=family_look(i).colour, markersize=3.5,
               label=f"{family}, step {steps[family]:g}")
        for i, family in enumerate(families)
    ]  # fmt: skip
    if (column(shown, "num_capped") > 0).any():
        marks: dict[str, Any] = {"color": GREY, "linestyle": "", "markerfacecolor": "white"}
        handles.append(Line2D([], [], marker="o", label="hollow: capped cascades", **marks))
    said = f"bars: {percent(confidence)}; lines: the settings as they are, in brackets"
    figure.legend(handles=handles, loc="outside upper left", ncols=2, title=said, alignment="left")
    return figure


def _families(sensitivity: pd.DataFrame) -> list[str]:
    known = records(sensitivity[np.isfinite(column(sensitivity, "D"))])
    return list(dict.fromkeys(str(row["family"]) for row in known))


def _rows(shown: pd.DataFrame) -> list[tuple[str, str]]:
    """(setting, value), settings in the table's order, numbers in theirs."""
    keys = list(dict.fromkeys(zip(shown["setting"].astype(str), shown["value"].astype(str), strict=True)))
    settings = list(dict.fromkeys(setting for setting, _ in keys))
    return sorted(keys, key=lambda key: (settings.index(key[0]), _number(key[1])))


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0  # words keep the table's order


def _names(rows: list[tuple[str, str]], shown: pd.DataFrame) -> list[str]:
    """The value, of the default in brackets; on the first row of a setting, its name too."""
    default = shown[shown["is_default"].astype(bool)]
    defaults = set(zip(default["setting"].astype(str), default["value"].astype(str), strict=True))
    said = [value.removesuffix(".0") for _, value in rows]
    names = [f"[{value}]" if key in defaults else f"{value} " for key, value in zip(rows, said, strict=True)]
    return [
        name if i and rows[i - 1][0] == setting else f"{setting}    {name}"
        for i, (name, (setting, _)) in enumerate(zip(names, rows, strict=True))
    ]


def _draw_default(ax: Axes, own: pd.DataFrame, channel: Channel, look: Look, *, banded: bool) -> None:
    default = pd.DataFrame(own[own["is_default"].astype(bool)]).iloc[:1]
    value, low, high = (column(default, f"{channel.name}{end}") for end in ("", "_low", "_high"))
    if not np.isfinite(value).any():
        return
    ax.axvline(float(value[0]), color=look.colour, linewidth=0.8, alpha=0.7, zorder=1, label="_default")
    if banded and np.isfinite(low[0]) and np.isfinite(high[0]):
        ax.axvspan(float(low[0]), float(high[0]), color=look.colour, alpha=0.08, linewidth=0, zorder=0)


def _draw_values(
    ax: Axes, own: pd.DataFrame, channel: Channel, look: Look, rows: list[tuple[str, str]], shift: float
) -> None:
    places = [rows.index(key) for key in zip(own["setting"].astype(str), own["value"].astype(str), strict=True)]
    y = np.array(places) + shift
    value, low, high = (column(own, f"{channel.name}{end}") for end in ("", "_low", "_high"))
    capped, known = column(own, "num_capped") > 0, np.isfinite(value)
    ax.hlines(y, low, high, color=look.colour, linewidth=0.9, alpha=0.6)
    marks: dict[str, Any] = {"linestyle": "", "marker": look.marker, "markersize": 3.5, "color": look.colour}
    ax.plot(value[known & ~capped], y[known & ~capped], label=str(own["family"].iloc[0]), **marks)
    ax.plot(value[capped & known], y[capped & known], label="_capped", markerfacecolor="white", **marks)
    for place in y[~known]:
        ax.annotate("no exponents", (0.02, place), xycoords=("axes fraction", "data"), fontsize=6, va="center",
                    color=look.colour)  # fmt: skip


def _unsaid(sensitivity: pd.DataFrame) -> list[str]:
    families = _families(sensitivity)
    reasons = []
    if len(families) > _MOST:
        reasons.append(f"{'; '.join(families[_MOST:])}: not shown, {_MOST} families is the most; give fewer")
    for row in records(sensitivity[~np.isfinite(column(sensitivity, "D"))]):
        why = row.get("missing") or "no reason given"
        reasons.append(f"{row['family']}, {row['setting']} {row['value']}: no exponents: {why}")
    return reasons
