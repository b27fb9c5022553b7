"""A fitted law as text: a line for each number, then the search, the rows and what weakens the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from toydepth.fit.law.parameter import Parameter
from toydepth.fit.law.terms import space_name
from toydepth.fit.law.text import align, interval_text, significant

if TYPE_CHECKING:
    from toydepth.fit.law.law_fit import LawFit


def law_lines(fit: LawFit, show_all: bool = False) -> list[str]:
    """Returns a fit as lines of text; with show_all also the numbers that the rows do not determine."""
    e = fit.estimate
    where = ", ".join(f"{name} = {fit.labels[name]}{_offset(fit.offsets.get(name, 0.0))}" for name in fit.law.variables)
    lines = [fit.law.formula(), f"  {where}", ""]
    methods = list(fit.natural_intervals)
    several = len(methods) > 1
    heads = [f"{method}" + (" *" if several and method == fit.headline else "") for method in methods]
    table = [["", "value", "std. error", *[f"{100 * fit.confidence:g} % {head}" for head in heads], ""]]
    reasons = list(dict.fromkeys(one.reason for one in fit.parameters.values() if one.reason))
    for one in fit.parameters.values():
        table.append(_line(one, methods, reasons, show_all))
    lines += align(table)
    lines += [f"  ({i}) {reason}" for i, reason in enumerate(reasons, start=1)]
    lines += ["", f"objective: {e.problem.objective.in_words}, sum {e.value:.8g}, mean {e.value / e.num_rows:.8g}"]
    spread = "of ln L" if e.problem.objective.of_log else "of L"
    lines.append(
        f"rows: {e.num_rows} used of {fit.rows.total}; {_counted(len(fit.law.parameters), 'parameter')}; "
        f"residual standard deviation {fit.residual_std:.4g} {spread}"
    )
    searched = f" (on {e.search_rows} rows, the best taken on to all)" if e.search_rows < e.num_rows else ""
    lines.append(
        f"minimum: {100 * e.share_agreeing:.0f} % of {e.num_starts} starts agree{searched}; "
        f"condition number {e.condition:.3g}; {_strongest(fit)}"
    )
    for left in fit.rows.left_out:
        lines.append(f"left out: {left.count} row{'s' * (left.count > 1)}: {left.reason}")
    lines += [f"note: {note}" for note in (*fit.rows.notes, *fit.caveats)]
    return lines


def _line(one: Parameter, methods: list[str], reasons: Sequence[str | None], show_all: bool) -> list[str]:
    if one.fixed:
        return [one.name, significant(one.estimate), "fixed"]
    number = "" if one.identified else f"({reasons.index(one.reason) + 1})"
    if not one.identified and not show_all:
        return [one.name, "?", f"not identified {number}"]
    cells = [
        one.name,
        significant(one.estimate, one.standard_error),
        significant(one.standard_error, one.standard_error),
    ]
    for method in methods:
        cells.append(interval_text(one.intervals.get(method), one.standard_error))
    tail = f"as {one.shared_with}" if one.shared_with else ""
    return [*cells, tail if one.identified else f"not identified {number}"]


def _strongest(fit: LawFit) -> str:
    names = fit.law.parameters
    table = np.array(fit.correlations)
    if len(names) < 2:
        return "one parameter"
    upper = np.triu(np.abs(table), 1)
    i, j = np.unravel_index(int(np.argmax(np.nan_to_num(upper))), upper.shape)
    return f"largest correlation {table[i, j]:.2f} ({space_name(names[i])}, {space_name(names[j])})"


def _offset(value: float) -> str:
    return f" {'-' if value > 0 else '+'} {abs(value):g}" if value else ""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
