"""AIC, AICc and BIC of laws on the same rows, and the likelihoods they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erf, gammaln

from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.objective import Objective

_ROUNDING = 1e-9  # residual std over the loss: no table of trained models is that exact


@dataclass(frozen=True)
class Criteria:
    """Of one law: -2 ln likelihood, and AIC, AICc, BIC less those of the best law; weight, of AICc, over the laws.

    The noise's scale is counted as a parameter. AICc, and so the weight, is None with two rows more than parameters or
    fewer.
    """

    deviance: float
    aic: float
    aicc: float | None
    bic: float
    weight: float | None


def compute_criteria(estimates: Mapping[str, Estimate]) -> dict[str, Criteria]:
    """Returns AIC, AICc, BIC of laws fitted to the same rows by the same objective, as differences from the best.

    AIC = deviance + 2 k, AICc = AIC + 2 k (k + 1) / (n - k - 1), BIC = deviance + k ln n; k = p + 1, the scale of the
    noise too; weights exp(-AICc / 2), of sum 1.
    """
    worth = {name: deviance(e) for name, e in estimates.items()}
    aic, aicc, bic = {}, {}, {}
    for name, e in estimates.items():
        k, n = e.theta.size + 1, e.num_rows
        aic[name] = worth[name] + 2 * k
        bic[name] = worth[name] + k * np.log(n)
        if n - k - 1 > 0:
            aicc[name] = aic[name] + 2 * k * (k + 1) / (n - k - 1)
    best, lowest, least = min(aic.values()), min(bic.values()), min(aicc.values(), default=0.0)
    shares = {name: float(np.exp(-(value - least) / 2)) for name, value in aicc.items()}
    total = sum(shares.values())
    return {
        name: Criteria(
            worth[name],
            float(aic[name] - best),
            float(aicc[name] - least) if name in aicc else None,
            float(bic[name] - lowest),
            shares[name] / total if name in shares else None,
        )
        for name in estimates
    }


def deviance(estimate: Estimate) -> float:
    """Returns -2 ln likelihood of the rows, of ln L or L as the objective has it, the noise's scale at its best too.

    log, linear: normal noise of variance s^2 / w_i: n (ln(2 pi SSR / n) + 1) - sum ln w_i.
    student: its own, with its constant.
    huber: the density exp(-lambda rho(r)) / Z, Z = sqrt(2 pi / lambda) erf(delta sqrt(lambda / 2)) + 2 / (lambda delta)
    exp(-lambda delta^2 / 2), lambda at its best. It is the one likelihood whose maximum is the minimum of the objective
    whatever lambda is, so that criteria and fit speak of the same thing; it is normal for a large delta, Laplace's for
    a small one (residuals far above delta). Of student and huber, weights count as numbers of rows.

    Example:
        A residual of +-1 with a normal law: n (ln 2 pi + 1) = 11.35 for n = 4.

        >>> from toydepth.fit.law.table.choose import choose_rows
        >>> rows = choose_rows({"x": [1, 1, 2, 2], "loss": [9.0, 11.0, 9.0, 11.0]}, {"x": "x"}, "loss")
        >>> from toydepth.fit.law.fitting import estimate_rows
        >>> from toydepth.fit.law.terms import Law, Term
        >>> law = Law("one term", (Term("x", 1.0),))
        >>> round(deviance(estimate_rows(rows, law, Objective("linear"))), 2)
        11.35
    """
    objective, weights, value = estimate.problem.objective, estimate.weights, estimate.value
    count = estimate.num_rows
    if objective.kind in ("log", "linear"):
        return float(count * (np.log(2 * np.pi * value / count) + 1) - np.sum(np.log(weights)))
    if objective.kind == "student":
        nu = objective.degrees
        return float(2 * value - 2 * count * (gammaln((nu + 1) / 2) - gammaln(nu / 2) - np.log(nu * np.pi) / 2))
    delta, mean = objective.delta, value / count

    def half(log_rate: float) -> float:
        rate = np.exp(log_rate)
        inside = np.sqrt(2 * np.pi / rate) * erf(delta * np.sqrt(rate / 2))
        outside = 2 / (rate * delta) * np.exp(-rate * delta**2 / 2)
        return rate * mean + np.log(inside + outside)

    # lambda times the mean of rho is 1/2 for a normal law and 1 for Laplace's; between them for this one.
    middle = -np.log(mean)
    best: Any = minimize_scalar(
        half, bounds=(middle - np.log(2) - 0.1, middle + 0.1), method="bounded", options={"xatol": 1e-10}
    )
    return float(2 * count * best.fun)


def likelihood_text(objective: Objective) -> str:
    """Returns the likelihood of an objective in words."""
    return {
        "log": "normal noise of ln L",
        "linear": "normal noise of L",
        "huber": "density exp(-lambda Huber) of ln L, normalised, lambda fitted",
        "student": f"Student's t of ln L, {objective.degrees:g} degrees of freedom",
    }[objective.kind]


def is_exact(estimate: Estimate) -> bool:
    """Whether a law fits every row to rounding: then there is no noise to weigh laws by."""
    size = float(np.sqrt(np.mean(estimate.residuals**2)))
    typical = 1.0 if estimate.problem.objective.of_log else float(np.exp(np.mean(estimate.problem.log_loss)))
    return size < _ROUNDING * typical
