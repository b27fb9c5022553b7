"""Which parameters a table can determine, and why it cannot determine the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from toydepth.fit.law.estimate import Estimate, find_minimum
from toydepth.fit.law.model import make_model
from toydepth.fit.law.profile import Profile, threshold
from toydepth.fit.law.solve import Problem
from toydepth.fit.law.terms import Law

TOO_ALIKE = 0.99  # of two terms over the rows: a correlation above it leaves a fiftieth of their variance to tell them
_EXACT = 1e-9  # of ln L: rounding
_DEAD = 1e-4  # of a term's largest value: there it is far below any noise
_PLAIN = 0.2  # standard error of ln c below which a term is far from nothing, and needs no test of it


def find_unidentified(
    estimate: Estimate,
    variables: Mapping[str, np.ndarray],
    labels: Mapping[str, str],
    profiles: list[Profile] | None,
    confidence: float,
) -> dict[str, str]:
    """Returns {parameter: why} of those the rows do not determine.

    In this order: a variable that is constant, or has two values where an exponent is free, or only two at which the
    term has not died out; two variables, or two terms, that move together (correlation 0.99 or more); a term without
    which the fit is no worse; an open profile.

    Args:
        estimate: the minimum.
        variables: symbol to values (n,).
        labels: symbol to the name of its column.
        profiles: of the natural parameters; None where all standard errors are so small that none is needed.
        confidence: of the tests.
    """
    law = estimate.problem.model.law
    reasons: dict[str, str] = {}

    def blame(names: list[str], why: str) -> None:
        for name in names:
            if name in law.parameters:
                reasons.setdefault(name, why)

    for term in law.terms:
        values = np.unique(variables[term.variable])
        label = labels.get(term.variable, term.variable)
        own = [term.coefficient, _exponent(law, term.variable)]
        if len(values) == 1:
            blame([*own, "L0"], f"{label} is {values[0]:g} in every row, so its term is a constant, as L0 is")
        elif len(values) == 2 and term.exponent is None:
            blame([*own, "L0"], f"{label} has two values, {values[0]:g} and {values[1]:g}: too few for an exponent")
    for name, label, where in _died_out(estimate, variables, labels):
        why = f"its term has died out beyond {label} = {where:g}: too few values are left for an exponent"
        blame([f"c_{name}", _exponent(law, name)], why)
    for first, second, r, what in _alike(estimate, variables):
        one, other = labels.get(first, first), labels.get(second, second)
        names = [name for v in (first, second) for name in (f"c_{v}", _exponent(law, v))]
        blame(names, f"{one} and {other} move together ({what}: r = {r:.3f})")
    worst = threshold(estimate, confidence)
    for name, dropped in _smaller_laws(estimate, reasons):
        chi2 = _how_much_worse(estimate, variables, dropped)
        if chi2 < worst:
            if name == "L0":
                blame(["L0"], f"L0 = 0 fits as well (delta chi2 {chi2:.2g}, {worst:.3g} would be too much)")
            else:
                why = f"the law fits as well without this term (delta chi2 {chi2:.2g}, {worst:.3g} would be too much)"
                blame([f"c_{name}", _exponent(law, name)], why)
    for name, profile in zip(law.parameters, profiles or [], strict=False):
        if profile.is_open:
            blame([name], _open(profile))
    return reasons


def _died_out(
    estimate: Estimate, variables: Mapping[str, np.ndarray], labels: Mapping[str, str]
) -> list[tuple[str, str, float]]:
    """Terms with a free exponent that matter at one or two values only: (variable, label, the last such value)."""
    terms, _ = estimate.problem.model.terms(estimate.theta)
    found = []
    for k, term in enumerate(estimate.problem.model.law.terms):
        values = variables[term.variable]
        alive = np.unique(values[terms[k] > _DEAD * terms[k].max()])
        if term.exponent is None and len(alive) <= 2 < len(np.unique(values)):
            found.append((term.variable, labels.get(term.variable, term.variable), float(alive[-1])))
    return found


def _exponent(law: Law, variable: str) -> str:
    """The exponent of a variable alone; one that it shares is known from the others."""
    term = next(term for term in law.terms if term.variable == variable)
    return term.alpha if not any(other.exponent == term.alpha for other in law.terms) else ""


def _alike(estimate: Estimate, variables: Mapping[str, np.ndarray]) -> list[tuple[str, str, float, str]]:
    """Pairs of variables that move together: their logs, or the fitted terms, whichever is more alike."""
    names = estimate.problem.model.law.variables
    terms, _ = estimate.problem.model.terms(estimate.theta)
    found = []
    for i, first in enumerate(names):
        for j in range(i):
            second = names[j]
            if min(np.ptp(variables[first]), np.ptp(variables[second])) == 0:
                continue
            logs = np.corrcoef(np.log(variables[first]), np.log(variables[second]))[0, 1]
            with np.errstate(invalid="ignore", divide="ignore"):
                both = np.corrcoef(terms[i], terms[j])[0, 1]
            both = both if np.isfinite(both) else 0.0
            if max(abs(logs), abs(both)) >= TOO_ALIKE:
                name = "their terms" if abs(both) >= abs(logs) else "their logs"
                found.append((second, first, float(both if abs(both) >= abs(logs) else logs), name))
    return found


def _smaller_laws(estimate: Estimate, blamed: Mapping[str, str]) -> list[tuple[str, Law]]:
    """The laws that lack one term, or L0, where that is not far from nothing already."""
    law = estimate.problem.model.law
    # Of the terms at the middle of the table: there a coefficient says how large its term is.
    errors = np.sqrt(np.maximum(np.diag(estimate.own_covariance), 0))
    if estimate.log_residual_std < _EXACT:
        errors = np.full_like(errors, np.inf)  # without noise every error is small: each term is tried
    smaller = []
    for k, term in enumerate(law.terms):
        if len(law.terms) > 1 and errors[k] > _PLAIN and term.coefficient not in blamed:
            smaller.append((term.variable, law.without(term.variable)))
    if law.irreducible_loss is None and errors[-1] > _PLAIN and "L0" not in blamed:
        smaller.append(("L0", Law(law.name, law.terms, 0.0)))
    return smaller


def _how_much_worse(estimate: Estimate, variables: Mapping[str, np.ndarray], law: Law) -> float:
    model = make_model(law, {name: variables[name] for name in law.variables})
    problem = Problem(model, estimate.problem.objective, estimate.problem.log_loss)
    found = find_minimum(problem, estimate.weights, num_starts=16)
    return max(float(estimate.delta_chi2(found.value)), 0.0)


def _open(profile: Profile) -> str:
    if profile.low is None and profile.high is None:
        return "its profile is open on both sides: no value fits worse"
    side, reached = ("below", profile.reached_low) if profile.low is None else ("above", profile.reached_high)
    return f"its profile is open {side}: far off, the fit is worse by a delta chi2 of {reached:.2g} at most"
