"""One number of a fitted law: its value, errors and intervals, or why the rows do not determine it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from toydepth.fit.law.law_fit import LawFit


@dataclass(frozen=True)
class Parameter:
    """One number of a law.

    Attributes:
        name: c_<variable>, alpha_<variable> or L0.
        value: None where the rows do not determine it; `estimate` has what the minimum says even so.
        standard_error: of the value itself. Of c and L0 it is value times the error of the logarithm
            (`log_standard_error`): the two are easily taken for each other.
        low, high: of the headline interval.
        identified: whether the rows determine it; reason: why not.
        space: where the interval was built, "ln" for c and L0 (which are positive), "plain" for exponents.
        fixed: whether it was given, not fitted; shared_with: whose number it is.
        intervals: every method that was asked for, to (low, high), or None on a side, or as a whole, that is open.
    """

    name: str
    estimate: float
    value: float | None
    standard_error: float | None
    log_standard_error: float | None
    low: float | None
    high: float | None
    identified: bool
    reason: str | None
    space: str
    fixed: bool
    shared_with: str | None
    intervals: dict[str, tuple[float | None, float | None] | None]


def read_parameter(fit: LawFit, name: str, free: Mapping[str, float], errors: Mapping[str, float]) -> Parameter:
    """Returns one number of a fit, from {name: value} and {name: standard error} of its natural parameters."""
    logged = name == "L0" or name.startswith("c_")
    shared, source = None, name
    if name not in free:
        term = next((t for t in fit.law.terms if t.alpha == name), None)
        exponent = fit.law.irreducible_loss if term is None else term.exponent
        if not isinstance(exponent, str):
            number = float(exponent or 0.0)
            return Parameter(name, number, number, None, None, None, None, True, None, "plain", True, None, {})
        shared, source = exponent, exponent
    with np.errstate(over="ignore"):  # of what the rows do not determine
        value = float(np.exp(free[source])) if logged else float(free[source])
    error = float(errors[source])
    reason = fit.unidentified.get(source)
    spans = {method: found.get(source) for method, found in fit.natural_intervals.items()}
    low, high = spans.get(fit.headline) or (None, None)
    return Parameter(
        name,
        value,
        None if reason else value,
        value * error if logged else error,
        error if logged else None,
        low,
        high,
        reason is None,
        reason,
        "ln" if logged else "plain",
        False,
        shared,
        spans,
    )
