"""What the figures of gradient transport share: channels, looks of families, an axis of steps, lines with gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from toydepth.report.style import GREY, Look, NotDrawn, category

MAX_FAMILIES = 10
_MANY_STEPS = 24  # with more points than this on a line, only those that say something have a marker


@dataclass(frozen=True)
class Channel:
    """name: of the column; label: of its axis; reference: where a cascade in proportion to N would be."""

    name: str
    label: str
    reference: float


CHANNELS = (
    Channel("D", "D, slope of ln s", 1.0),
    Channel("z", "z, slope of ln n", 0.0),
    Channel("delta", "$\\delta$, slope of ln v$_{\\mathrm{rel}}$", 0.0),
)


def column(table: pd.DataFrame, name: str) -> np.ndarray:
    """Returns a column as floats, NaN for None and for a column that no row has."""
    if name not in table:
        return np.full(len(table), np.nan)
    return np.asarray(table[name].astype(float), float)


def records(table: Any) -> list[dict[str, Any]]:
    """Returns the rows, None for whatever says that there is no value."""
    rows = pd.DataFrame(table).to_dict("records")
    return [{str(name): None if _is_none(value) else value for name, value in row.items()} for row in rows]


def _is_none(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def family_look(index: int) -> Look:
    """Returns the look of the index-th family: where colours begin again, dash and marker are other ones.

    >>> family_look(1) == category(1), family_look(9).colour == category(1).colour, family_look(9) == family_look(1)
    (True, True, False)
    """
    other = category(index + 3 * (index // 8))
    return Look(category(index).colour, other.dash, other.marker)


def tracks(exponents: pd.DataFrame, kind: str = "field") -> dict[str, pd.DataFrame]:
    """Returns of each family its rows of a kind, a row for every step that the family has: NaN is a gap in a line.

    Raises: NotDrawn where there is no row at all.
    """
    found = {}
    for family, own in exponents.groupby("family", sort=False):
        rows = own[own["kind"] == kind].set_index("step")
        found[str(family)] = rows.reindex(np.unique(own["step"])).rename_axis("step").reset_index()
    if not found:
        raise NotDrawn("no family of models")
    return found


def choose(exponents: pd.DataFrame, most: int = MAX_FAMILIES) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Returns the tracks of the families to show, fields alone, and why others are not shown.

    Raises: NotDrawn where no family has an exponent at any step.
    """
    found = tracks(exponents)
    known = {family: own for family, own in found.items() if np.isfinite(column(own, "D")).any()}
    reasons = [
        f"{family}: no exponent at any step: {_why(own)}" for family, own in found.items() if family not in known
    ]
    if not known:
        raise NotDrawn("; ".join(reasons))
    names = list(known)
    if len(names) > most:
        reasons.append(f"{'; '.join(names[most:])}: not shown, {most} families is the most; give fewer")
    return {family: known[family] for family in names[:most]}, reasons


def _why(own: pd.DataFrame) -> str:
    given = own["missing"].dropna() if "missing" in own else []
    return "; ".join(dict.fromkeys(map(str, given))) or "no field"


def flags(own: pd.DataFrame) -> dict[str, np.ndarray]:
    """Returns which rows have capped cascades, and which rest on fewer sizes than others of the family."""
    sizes = np.where(np.isfinite(column(own, "D")), column(own, "num_sizes"), np.nan)
    fewer = sizes < np.nanmax(sizes, initial=0)
    return {"capped": column(own, "num_capped") > 0, "fewer": fewer}


def flag_handles(shown: dict[str, pd.DataFrame]) -> list[Any]:
    """What the marks of `draw_track` mean; of those alone that occur."""
    marks: dict[str, Any] = {"color": GREY, "linestyle": "", "markersize": 5}
    said = {
        "capped": Line2D([], [], marker="o", markerfacecolor="white", label="hollow: capped cascades", **marks),
        "fewer": Line2D([], [], marker="x", label="crossed: fewer sizes than at other steps", **marks),
    }
    return [handle for name, handle in said.items() if any(flags(own)[name].any() for own in shown.values())]


def draw_track(
    ax: Axes, own: pd.DataFrame, name: str, look: Look, label: str, *, banded: bool, width: float = 1.3
) -> None:
    """Draws a column against step: a line with gaps, its band, bars where a step stands alone, and the flags.

    Args:
        own: of `tracks`. name: of the column; those of the interval are name_low and name_high.
        banded: False draws no band, and bars all the same.
    """
    x, y = column(own, "step"), column(own, name)
    low, high = column(own, f"{name}_low"), column(own, f"{name}_high")
    known = np.isfinite(y)
    lone = known & ~np.r_[False, known[:-1]] & ~np.r_[known[1:], False]
    if banded:
        ax.fill_between(x, low, high, color=look.colour, alpha=0.15, linewidth=0)
    ax.vlines(x[lone], low[lone], high[lone], color=look.colour, linewidth=1.0)
    every = [int(i) for i in np.flatnonzero(known if len(x) <= _MANY_STEPS else lone)]
    ax.plot(x, y, marker=look.marker, markersize=3, markevery=every, linewidth=width, label=label, **look.line)
    marked = {place: known & on for place, on in flags(own).items()}
    styles: dict[str, dict[str, Any]] = {
        "capped": {"marker": look.marker, "markerfacecolor": "white"},
        "fewer": {"marker": "x"},
    }
    for place, style in styles.items():
        if marked[place].any():
            ax.plot(
                x[marked[place]], y[marked[place]], linestyle="", color=look.colour, markersize=5, zorder=4,
                label=f"_{place}", **style,
            )  # fmt: skip


def value_limits(ax: Axes, y: np.ndarray, low: np.ndarray, high: np.ndarray, reference: float, axis: str = "y") -> None:
    """Draws the reference and keeps it, all values, and intervals of up to twice the typical width in view.

    A few very wide intervals would flatten all the rest; they run out of the panel.
    """
    bounded = np.isfinite(low) & np.isfinite(high) & np.isfinite(y)
    reach = np.where(bounded, np.maximum(high - y, y - low), np.inf)
    typical = float(np.median(reach[bounded])) if bounded.any() else 0.0
    held = reach <= 2 * typical
    known = np.concatenate([y[np.isfinite(y)], low[held], high[held], [reference]])
    air = max(0.06 * float(np.ptp(known)), 0.01)
    ends = float(known.min()) - air, float(known.max()) + air
    if axis == "y":
        ax.axhline(reference, color=GREY, linestyle=":", linewidth=0.8, zorder=0, label="_reference")
        ax.set_ylim(*ends)
    else:
        ax.axvline(reference, color=GREY, linestyle=":", linewidth=0.8, zorder=0, label="_reference")
        ax.set_xlim(*ends)


def step_axis(ax: Axes, steps: np.ndarray) -> None:
    """Makes x a log axis of steps; where there is a step 0 it stands at the left, on a short linear part."""
    steps = np.unique(steps)
    positive = steps[steps > 0]
    if not positive.size:
        ax.set_xlim(-1, 1)
        ax.xaxis.set_major_locator(FixedLocator([0]))
        return
    first, last = float(positive[0]), float(positive[-1])
    zero = len(positive) < len(steps)
    if zero:
        ax.set_xscale("symlog", linthresh=first, linscale=0.4)
    else:
        ax.set_xscale("log")
    # On the linear part one `first` is 0.4 decades long or so.
    ax.set_xlim(-0.3 * first if zero else first / 1.25, last * 1.25)
    ticks = _ticks(first, last)
    names = [f"{tick:g}" if tick < 1e4 else _power(tick) for tick in ticks]
    ax.xaxis.set_major_locator(FixedLocator([0.0] * zero + ticks))
    ax.xaxis.set_major_formatter(FixedFormatter(["0"] * zero + names))
    ax.xaxis.set_minor_locator(NullLocator())


def _ticks(first: float, last: float) -> list[float]:
    """Powers of ten, or 1, 2, 5 where there are fewer than two, or both ends.

    >>> _ticks(1, 2000), _ticks(300, 1500), _ticks(60, 70)
    ([1.0, 10.0, 100.0, 1000.0], [500.0, 1000.0], [60, 70])
    """
    decades = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    for leads in ((1,), (1, 2, 5)):
        inside = [lead * 10.0**power for power in decades for lead in leads if first <= lead * 10.0**power <= last]
        if len(inside) > 1:
            # Very long trainings: every second power.
            return inside[:: 1 + len(inside) // 9]
    return [first] if first == last else [first, last]


def _power(tick: float) -> str:
    """Such as 2x10^4, as mathematics."""
    power = math.floor(math.log10(tick) + 1e-9)
    lead = tick / 10.0**power
    return f"$10^{{{power}}}$" if abs(lead - 1) < 1e-6 else f"${lead:.3g}{{\\times}}10^{{{power}}}$"
