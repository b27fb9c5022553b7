"""Laws on part of the rows: where a fit starts, whether the rows left determine it, how far it is off."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from toydepth.errors import InputError
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.model import Model, make_model
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law


def start_at(estimate: Estimate, model: Model) -> np.ndarray:
    """Returns the minimum of one law as a start (1, p) of another, or of the same on other rows.

    The law of `model` must have the variables of the other; exponents that it cannot take it takes nearest.
    """
    old = estimate.problem.model
    a, alpha, floor = old.split(estimate.theta)
    order = [old.law.variables.index(name) for name in model.law.variables]
    alpha, log_c = alpha[order], (a + alpha * old.log_means)[order]
    free = np.linalg.pinv(model.mixing) @ (alpha - model.fixed)
    alpha = model.mixing @ free + model.fixed
    last = [np.log(max(float(floor), 1e-300))] if model.law.irreducible_loss is None else []
    return model.lift(np.concatenate([log_c - alpha * model.log_means, free, last])[None])


def fit_kept(rows: Rows, full: Estimate, num_starts: int, seed: int) -> Estimate | str:
    """Returns the minimum on what is left of the rows, or why they do not determine the law."""
    law, objective = full.problem.model.law, full.problem.objective
    if rows.num_rows <= len(law.parameters):
        return f"{rows.num_rows} rows are left for {len(law.parameters)} parameters"
    if why := _too_few_values(rows, law):
        return why
    also = start_at(full, make_model(law, rows.variables))
    try:
        found = estimate_rows(rows, law, objective, num_starts, seed, also)
    except InputError as error:
        return str(error)
    if not found.determined:
        return f"the rows left do not determine the law (condition number {found.condition:.2g})"
    return found


def _too_few_values(rows: Rows, law: Law) -> str | None:
    for term in law.terms:
        needed = 3 if term.exponent is None and law.irreducible_loss is None else 2
        count = len(np.unique(rows.variables[term.variable]))
        if count < needed:
            return f"the rows left have {count} value{'s' * (count > 1)} of {term.variable}, and {needed} are needed"
    return None


def as_fit(
    estimate: Estimate, rows: Rows, labels: Mapping[str, str], offsets: Mapping[str, float], confidence: float
) -> LawFit:
    """Wraps a minimum as a LawFit for its predictions: without intervals or verdicts on parameters."""
    law = estimate.problem.model.law
    return LawFit(
        law, dict(labels), dict(offsets), rows, estimate, {}, "covariance", confidence, {}, None, 0, ()
    )  # fmt: skip


def rms(errors: np.ndarray) -> float:
    """Returns the root mean square."""
    return float(np.sqrt(np.mean(errors**2)))
