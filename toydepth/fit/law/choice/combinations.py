"""One combination of choices: the rows that it leaves, and the fit to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.fit.law.choice.options import EITHER
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.identify import find_unidentified
from toydepth.fit.law.model import make_model
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.profile import profile_all
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law

_SMALL_ERROR = 0.05  # of ln c, an exponent, ln L0: no profile is open there
_NO_ERROR = 8.0  # of an exponent: none is


@dataclass(frozen=True, eq=False)
class Combination:
    """One fit of the multiverse.

    Attributes:
        exclude_highest, ties, offsets (none that is 0), objective, law: what was chosen; ties is "either" where the tie
            rules keep the same rows.
        options: the same as text, {choice: option}.
        rows: how many were used. values, errors: {parameter: number} of those that the rows determine, with the
            standard error of the value itself. unidentified: {parameter: why} of the others.
        residual_std: of ln L, whatever the objective, with n - p degrees of freedom.
        converged, share_agreeing: of the search for the minimum. reason: why there is no fit, or None.
    """

    exclude_highest: int
    ties: str
    offsets: dict[str, float]
    objective: Objective
    law: Law
    options: dict[str, str]
    rows: int = 0
    values: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    unidentified: dict[str, str] = field(default_factory=dict)
    residual_std: float = float("nan")
    converged: bool = False
    share_agreeing: float = float("nan")
    reason: str | None = None


def fit_combination(
    blank: Combination,
    rows: Rows,
    labels: Mapping[str, str],
    near: Sequence[np.ndarray],
    confidence: float,
    num_starts: int,
    seed: int,
) -> tuple[Combination, np.ndarray | None]:
    """Returns the combination with its numbers, and the minimum (ln c, free exponents, ln L0)."""
    blank = replace(blank, rows=rows.num_rows)
    law = blank.law
    also = None
    if near:
        # A model's own parameters depend on its rows' geometric means; the natural ones do not.
        matrix, shift = make_model(law, rows.variables).to_natural()
        also = np.linalg.solve(matrix, (np.array(near) - shift).T).T
    try:
        estimate = estimate_rows(rows, law, blank.objective, num_starts, seed, also)
    except InputError as error:
        return replace(blank, reason=str(error)), None
    own_errors = np.sqrt(np.maximum(np.diag(estimate.own_covariance), 0))
    # A single parameter's profile is its objective, which closes on both sides unless the term has vanished.
    unneeded = np.all(own_errors < _SMALL_ERROR) or len(own_errors) == 1
    profiles = None if unneeded else profile_all(estimate, confidence)
    unidentified = dict(find_unidentified(estimate, rows.variables, labels, profiles, confidence))
    for name, error in zip(law.parameters, own_errors, strict=True):
        if name in law.free_exponents and not error < _NO_ERROR:
            unidentified.setdefault(name, "its standard error is beyond any use: hardly a row sees its term")
    for term in law.terms:
        # c is the term at x = 1, far outside the rows: without the exponent it is not known.
        if term.alpha in unidentified:
            unidentified.setdefault(term.coefficient, unidentified[term.alpha])
    natural, errors = estimate.natural, np.sqrt(np.maximum(np.diag(estimate.covariance), 0))
    values, value_errors = {}, {}
    for name, value, error in zip(law.parameters, natural, errors, strict=True):
        if name not in unidentified:
            logged = name not in law.free_exponents
            values[name] = float(np.exp(value) if logged else value)
            value_errors[name] = float(error * (values[name] if logged else 1))
    fitted = replace(
        blank,
        values=values,
        errors=value_errors,
        unidentified=unidentified,
        residual_std=estimate.log_residual_std,
        converged=estimate.converged,
        share_agreeing=estimate.share_agreeing,
    )
    return fitted, natural


def row_sets(
    table: pd.DataFrame | Mapping[str, Any],
    columns: Mapping[str, str],
    loss: str,
    exclusions: Sequence[int],
    rules: Sequence[str],
    common: Mapping[str, Any],
) -> Iterator[tuple[int, str, Rows | str]]:
    """Yields (exclude_highest, tie rule, rows or why there are none); "either" where the tie rules agree."""
    for excluded in exclusions:
        kept: dict[str, Rows | str] = {}
        for rule in rules:
            try:
                kept[rule] = choose_rows(table, columns, loss, exclude_highest=excluded, ties=rule, **common)
            except InputError as error:
                kept[rule] = str(error)
        marks = {one if isinstance(one, str) else one.numbers.tobytes() for one in kept.values()}
        if excluded == 0 or (len(rules) > 1 and len(marks) == 1):
            yield excluded, EITHER, kept[rules[0]]
        else:
            yield from ((excluded, rule, kept[rule]) for rule in rules)


def take_off(rows: Rows | str, offset: Mapping[str, float], smallest: Mapping[str, float]) -> Rows | str:
    """Returns the rows with an offset taken off; why not, where that would cost some of them."""
    wrong = [name for name, value in offset.items() if value >= smallest[name]]
    if wrong:
        name = wrong[0]
        return f"the offset {offset[name]:g} of {name} is not below its smallest value, {smallest[name]:g}"
    if isinstance(rows, str):
        return rows
    return replace(rows, variables={name: x - offset.get(name, 0.0) for name, x in rows.variables.items()})
