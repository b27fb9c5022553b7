"""The procedure published with arXiv 2602.05970: width, depth and data by Adam, from one start, in 50,000 steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from toydepth.fit.checks import refuse
from toydepth.fit.law.fitting import fit_rows
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.published.adam import Descent, adam
from toydepth.fit.law.published.depth_text import depth_lines
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import free_law

NAMES = ("ln c_m", "ln c_ell", "ln c_D", "alpha_m", "alpha_ell", "alpha_D", "L0")
UNITS = {"m": 1.0, "ell": 100.0, "D": 1e-6}  # what a variable is multiplied by
START = np.array([np.log(200.0), np.log(200.0), np.log(10.0), 1.0, 1.0, 0.33, 1.69])
RATES = np.array([0.005, 0.005, 0.005, 0.0005, 0.0005, 0.0005, 0.005])
SINGLE = np.array([False, False, False, True, True, True, True])
STEPS, FURTHER = 50_000, 200_000
_SAME = 1e-3  # relative: by how much the objective at the published point may differ on the table it was fitted to

# As printed in the notebook Scaling/fit-5.ipynb of the paper's repository; the paper rounds to three decimals.
PUBLISHED = np.array(
    [np.log(333.3809), np.log(1284.3677), np.log(8.486743), 0.9769136, 1.2013903, 0.2990961, 1.7503270]
)
PUBLISHED_ERRORS = np.array([0.512621, 1.823789, 0.089048, 0.083273, 0.268540, 0.013913, 0.025556])
PUBLISHED_ROWS, PUBLISHED_OBJECTIVE = 203, 0.00305783


class DepthProblem:
    """100 mean((ln L - ln L_fit)^2) on rows, theta = (ln c_m, ln c_ell, ln c_D, alpha_m, alpha_ell, alpha_D, L0).

    Args:
        rows: with variables m, ell and D, in the units of the table.
    """

    def __init__(self, rows: Rows) -> None:
        self.log_x = np.log([UNITS[name] * rows.variables[name] for name in UNITS])
        self.loss = rows.loss
        self.log_loss = np.log(rows.loss)
        self._jacobian = np.ones((7, rows.num_rows))

    def fitted(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns L_fit (n,) and its derivatives (7, n); the array of these is used again."""
        jacobian = self._jacobian
        powers = theta[:3, None] - theta[3:6, None] * self.log_x
        terms = np.exp(powers, out=jacobian[:3])
        np.multiply(terms, -self.log_x, out=jacobian[3:6])
        return terms.sum(axis=0) + theta[6], jacobian

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns the objective and its gradient (7,)."""
        loss, jacobian = self.fitted(theta)
        residuals = self.log_loss - np.log(loss)
        count = len(residuals)
        return float(residuals @ residuals) / count * 100, jacobian @ (residuals / loss) * (-200 / count)

    def errors(self, theta: np.ndarray, of_log: bool, degrees: bool) -> tuple[np.ndarray, float]:
        """Returns sqrt(diag(s^2 (J^T J)^-1)) (7,) and s^2, with residuals and J of ln L or L, s^2 over n - 7 or n."""
        loss, jacobian = self.fitted(theta)
        residuals = self.log_loss - np.log(loss) if of_log else self.loss - loss
        slopes = jacobian / loss if of_log else jacobian
        count = len(residuals)
        variance = float(residuals @ residuals) / (count - 7 if degrees else count)
        inverse = np.linalg.pinv(slopes @ slopes.T, hermitian=True)
        return np.sqrt(np.maximum(np.diag(inverse), 0) * variance), variance


def repeat_depth(
    rows: Rows, labels: dict[str, str], steps: int = STEPS, further: int = FURTHER
) -> tuple[dict[str, Any], list[str]]:
    """Repeats the procedure, goes on with it, and finds the exact minimum; returns (numbers, lines).

    L = c_m / m^alpha_m + c_ell / (100 ell)^alpha_ell + c_D / (D / 1e6)^alpha_D + L0; rows with a loss strictly below
    the 40th highest; Adam on the mean squared residual of ln L times 100, of ln c (from ln 200, ln 200, ln 10) and L0
    (from 1.69) at rate 0.005, of the exponents (from 1, 1, 0.33) at 0.0005, constant, for 50,000 steps. In the
    publication the exponents and L0 were in single precision, ln c in double; double precision throughout ends
    elsewhere, since 50,000 steps do not reach the minimum.

    Args:
        rows: chosen rows with variables m, ell, D, in the units of the table.
        labels: symbol to column.
        steps: of the procedure. further: of the longer one, in double precision.

    Raises:
        InputError: for too few rows, or where Adam leaves the positive losses.

    Source: arXiv 2602.05970 and the facts of its repository (precision, standard errors).
    """
    scaled = {name: UNITS[name] * rows.variables[name] for name in UNITS}
    fit = fit_rows(replace(rows, variables=scaled), free_law(*UNITS), labels, {}, Objective("log"), "profile")
    problem = DepthProblem(rows)
    marks = sorted({max(steps // 50, 1), max(steps // 5, 1), steps})
    later = sorted({*marks, max(further // 2, 1), further})
    with np.errstate(all="ignore"):
        as_published = _descend(problem, marks, SINGLE)
        double = _descend(problem, later, None)
        at_published = problem(PUBLISHED)[0]
    the_table = rows.num_rows == PUBLISHED_ROWS and abs(at_published / PUBLISHED_OBJECTIVE - 1) < _SAME
    numbers = _numbers(problem, fit, as_published, double, steps, at_published if the_table else None)
    return numbers, depth_lines(numbers)


def _descend(problem: DepthProblem, marks: list[int], single: np.ndarray | None) -> Descent:
    done = adam(problem, START, RATES, marks, single)
    if max(marks) not in done.theta or not np.isfinite(problem(done.theta[max(marks)])[0]):
        got = f"none any more at step {len(done.values)}"
        advice = "Its start and rates are made for the digitised Chinchilla table: fit the law instead."
        raise refuse("the losses of depth-paper's descent", "positive and finite", got, advice)
    return done


def _numbers(
    problem: DepthProblem, fit: LawFit, as_published: Descent, double: Descent, steps: int, at_published: float | None
) -> dict[str, Any]:
    published: dict[str, Any] = {
        "values": _plain_values(PUBLISHED),
        "errors_as_published": dict(zip(NAMES, PUBLISHED_ERRORS, strict=True)),
        "objective": PUBLISHED_OBJECTIVE if at_published is None else at_published,
        "rows": PUBLISHED_ROWS,
        "of_this_table": at_published is not None,
    }
    exact = {name: one.value for name, one in fit.parameters.items()}
    lowest = fit.estimate.value / fit.estimate.num_rows * 100
    path = [_stop(problem, as_published, step, "single") for step in as_published.theta]
    path += [_stop(problem, double, step, "double") for step in double.theta]
    recorded = as_published.values[-max(len(as_published.values) // 10, 1) :]
    numbers = {
        "published": published,
        "repeated": _stop(problem, as_published, steps, "single"),
        "repeated_in_double_precision": _stop(problem, double, steps, "double"),
        "path": path,
        "last_tenth": {
            "steps": len(recorded),
            "lowest": recorded.min(),
            "median": np.median(recorded),
            "highest": recorded.max(),
            "recorded_last": recorded[-1],
        },
        "exact": {
            "values": exact,
            "standard_errors": {name: one.standard_error for name, one in fit.parameters.items() if one.identified},
            "log_standard_errors": {
                name: one.log_standard_error for name, one in fit.parameters.items() if one.identified
            },
            "intervals": {name: (one.low, one.high) for name, one in fit.parameters.items() if one.identified},
            "unidentified": fit.unidentified,
            "objective": lowest,
        },
    }
    if at_published is not None:
        published["delta_chi2"] = float(fit.estimate.delta_chi2(at_published * fit.estimate.num_rows / 100))
        numbers["standard_errors"] = _formulas(problem)
    return numbers


def _stop(problem: DepthProblem, descent: Descent, step: int, precision: str) -> dict[str, Any]:
    theta = descent.theta[step]
    return {"step": step, "precision": precision, "objective": problem(theta)[0], "values": _plain_values(theta)}


def _plain_values(theta: np.ndarray) -> dict[str, float]:
    return {
        name.removeprefix("ln "): float(np.exp(x) if name.startswith("ln ") else x)
        for name, x in zip(NAMES, theta, strict=True)
    }


def _formulas(problem: DepthProblem) -> list[dict[str, Any]]:
    """The four usual formulas of standard errors at the published point, the nearest to the published ones first."""
    found = []
    for of_log in (False, True):
        for degrees in (True, False):
            errors, variance = problem.errors(PUBLISHED, of_log, degrees)
            found.append(
                {
                    "residuals": "ln L" if of_log else "L",
                    "divisor": "n - 7" if degrees else "n",
                    "variance": variance,
                    "errors": dict(zip(NAMES, errors, strict=True)),
                    "largest_difference": float(np.abs(errors / PUBLISHED_ERRORS - 1).max()),
                }
            )
    return sorted(found, key=lambda one: one["largest_difference"])
