"""The words and numbers that figures and tables share: names of groups, exponents with their intervals, labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from toydepth.fit import DepthExponent

Labels = Mapping[str, Any]

_FORMATS = {
    "teacher": "{}",
    "rho": "{:g}",
    "init": "{} init",
    "block": "{} block",
    "temperature": "T {:g}",
    "loss": "{}",
    "head": "{} head",
    "width": "width {:g}",
    "teacher_depth": "teacher depth {:g}",
    "experiment": "{}",
    "recipe": "recipe {}",
}
_PLAIN = ("block", "euler")  # the block unless said otherwise
_LOSS_LABELS = {"kl": "Test loss (nats)", "mse": "Test loss (mean squared difference)"}


def name_groups(groups: Sequence[Labels], leave_out: Sequence[str] = ()) -> list[str]:
    """Names each group by its teacher and init, and by what else sets it apart from the others.

    Args: groups, each a mapping from column to value (None where there is none); leave_out, columns never named.
    Returns: a name a group; alike only where the groups differ in nothing but `leave_out`.

    >>> tied = {"teacher": "tied", "init": "zero", "block": "euler", "temperature": 1.0, "width": 8}
    >>> name_groups([tied, {**tied, "temperature": 0.1}])
    ['tied, zero init, T 1', 'tied, zero init, T 0.1']
    >>> name_groups([tied, {**tied, "teacher": "correlated", "rho": 0.5, "block": "rk2"}])
    ['tied, zero init', 'correlated rho 0.5, zero init, rk2 block']
    """
    fields = ["teacher", "init", "block"]
    if varies(groups, "temperature") and "temperature" not in leave_out:
        fields.append("temperature")
    distinct = len({tuple(group.get(name) for name in _FORMATS if name not in leave_out) for group in groups})
    for extra in ("loss", "head", "width", "teacher_depth", "experiment", "recipe"):
        # What tells groups apart is named, what merely goes along with it (an experiment's name) is clutter.
        if len({_name(group, fields) for group in groups}) == distinct:
            break
        if extra not in leave_out and varies(groups, extra):
            fields.append(extra)
    return [_name(group, fields) for group in groups]


def varies(groups: Sequence[Labels], column: str) -> bool:
    """Returns whether the groups have more than one value of a column.

    >>> varies([{"init": "zero"}, {"init": "euler"}], "init")
    True
    """
    return len({group.get(column) for group in groups}) > 1


def number(value: float | None, digits: int = 2) -> str:
    """Writes a number with fixed digits, never as -0.00, and a missing one as `?`.

    >>> number(2.754), number(-0.001), number(None)
    ('2.75', '0.00', '?')
    """
    if value is None or not math.isfinite(value):
        return "?"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def interval(row: DepthExponent) -> str:
    """Writes the interval of alpha as `[2.39, 3.09]`, or `(no interval)`."""
    if row.low is None or row.high is None:
        return "(no interval)"
    return f"[{number(row.low)}, {number(row.high)}]"


def alpha_text(row: DepthExponent) -> str:
    """Writes `alpha = 2.75 [2.39, 3.09]`, or `alpha not identified`: what is not identified gets no number."""
    if not math.isfinite(row.alpha):
        return "alpha not identified"
    return f"alpha = {number(row.alpha)} {interval(row)}"


def loss_label(loss: str) -> str:
    """Returns the axis label of a loss with its unit.

    >>> loss_label("kl")
    'Test loss (nats)'
    """
    return _LOSS_LABELS.get(loss, "Test loss")


def percent(confidence: float) -> str:
    """Writes a confidence level.

    >>> percent(0.95)
    '95 % interval'
    """
    return f"{100 * confidence:g} % interval"


def _name(group: Labels, fields: Sequence[str]) -> str:
    known = [(name, group.get(name)) for name in fields]
    parts = [_FORMATS[name].format(value) for name, value in known if value is not None and (name, value) != _PLAIN]
    if group["teacher"] == "correlated" and group.get("rho") is not None:
        parts[0] += f" rho {group['rho']:g}"
    return ", ".join(parts)
