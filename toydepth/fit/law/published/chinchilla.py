"""The fit of arXiv 2404.10102: parameters and data, Huber loss of ln L, quasi-Newton methods from a grid of starts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

from toydepth.fit.law.fitting import fit_rows
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import chinchilla_law
from toydepth.fit.law.text import align, significant

NAMES = ("A", "B", "E", "alpha", "beta")
OURS = ("c_N", "c_D", "L0", "alpha_N", "alpha_D")
DELTA = 1e-3
# Of Approach 3 in arXiv 2203.15556: a = ln A, b = ln B, e = ln E, alpha, beta.
GRID = (np.arange(0, 26, 5.0), np.arange(0, 26, 5.0), np.linspace(-1, 1, 5), np.linspace(0, 2, 5), np.linspace(0, 2, 5))
_EVERY = 11  # start of the grid: it shares no factor with the grid's sides, so that all their values are met
_MIDDLE = np.array([10.0, 10.0, 0.0, 0.5, 0.5])
_SAME = 1e-4  # relative: starts whose objective is within it of the exact minimum have found it
_LARGEST = 300.0

PUBLISHED = np.array([482.01, 2085.43, 1.8172, 0.3478, 0.3658])
PUBLISHED_ERRORS = np.array([124.58, 1293.23, 0.03, 0.02, 0.02])
PUBLISHED_ROWS = 240


class ChinchillaProblem:
    """scale * sum of Huber(ln L - ln(A / N^alpha + B / D^beta + E)), theta = (ln A, ln B, ln E, alpha, beta).

    Args:
        rows: with variables N and D, in the units of the table.
        scale: 1 for the sum over rows, 1 / n for the mean.
    """

    def __init__(self, rows: Rows, scale: float = 1.0) -> None:
        self.log_n, self.log_d = np.log(rows.variables["N"]), np.log(rows.variables["D"])
        self.log_loss = np.log(rows.loss)
        self.scale = scale

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns the objective and its gradient (5,)."""
        a, b, e, alpha, beta = theta
        logs = np.stack([a - alpha * self.log_n, b - beta * self.log_d, np.full_like(self.log_n, e)])
        terms = np.exp(np.clip(logs, -_LARGEST, _LARGEST))
        loss = terms.sum(axis=0)
        residuals = self.log_loss - np.log(loss)
        psi = np.clip(residuals, -DELTA, DELTA)
        value = np.sum(psi * (residuals - psi / 2))
        pulls = -psi * terms / loss
        slopes = pulls.sum(axis=1)
        gradient = np.array([*slopes, -pulls[0] @ self.log_n, -pulls[1] @ self.log_d])
        return float(value) * self.scale, gradient * self.scale


def repeat_chinchilla(rows: Rows, labels: dict[str, str], every: int = _EVERY) -> tuple[dict[str, Any], list[str]]:
    """Repeats the refit of the Chinchilla law, also with a mean in place of the sum; returns (numbers, lines).

    L = A / N^alpha + B / D^beta + E; the five highest losses left out; sum over rows of the Huber loss, delta 1e-3, of
    ln L; from a spread part of the 4500 starts of Approach 3: BFGS, and L-BFGS-B, at scipy's default tolerances. Those
    do not know the scale of the objective: of a mean, which is n times as small, they are met before the minimum.

    Args:
        rows: chosen rows with variables N and D.
        labels: symbol to column.
        every: how many starts of the grid there are to one that is used.

    Source: arXiv 2404.10102; the grid, arXiv 2203.15556.
    """
    kind = Objective("huber", DELTA)
    fit = fit_rows(rows, chinchilla_law("N", "D"), labels, {}, kind, "covariance")
    lowest = fit.estimate.value
    starts = np.array(list(product(*GRID))[::every])
    plan = [("BFGS", "sum"), ("L-BFGS-B", "sum"), ("L-BFGS-B", "mean")]
    runs = [_run(rows, method, total, starts, lowest) for method, total in plan]
    single = [_run(rows, "L-BFGS-B", total, _MIDDLE[None], lowest) for total in ("sum", "mean")]
    with np.errstate(all="ignore"):
        at_published = ChinchillaProblem(rows)(np.concatenate([np.log(PUBLISHED[:3]), PUBLISHED[3:]]))[0]
    numbers = {
        "published": {
            "values": dict(zip(NAMES, PUBLISHED, strict=True)),
            "standard_errors": dict(zip(NAMES, PUBLISHED_ERRORS, strict=True)),
            "objective_on_this_table": at_published,
            "rows": PUBLISHED_ROWS,
            "of_this_table": rows.num_rows == PUBLISHED_ROWS and at_published < lowest * 1.01,
        },
        "grid": {"starts": len(starts), "of": int(np.prod([len(side) for side in GRID]))},
        "repeated": runs,
        "from_one_start": {"start": dict(zip(("a", "b", "e", "alpha", "beta"), _MIDDLE, strict=True)), "runs": single},
        "exact": {
            "values": {name: fit.parameters[ours].value for name, ours in zip(NAMES, OURS, strict=True)},
            "standard_errors": {
                name: fit.parameters[ours].standard_error if fit.parameters[ours].identified else None
                for name, ours in zip(NAMES, OURS, strict=True)
            },
            "unidentified": {NAMES[OURS.index(ours)]: reason for ours, reason in fit.unidentified.items()},
            "objective": lowest,
        },
    }
    return numbers, _lines(numbers)


def _run(rows: Rows, method: str, total: str, starts: np.ndarray, lowest: float) -> dict[str, Any]:
    """The best of all starts by its own objective; objectives as sums."""
    scale = 1.0 if total == "sum" else 1 / rows.num_rows
    problem = ChinchillaProblem(rows, scale)
    with np.errstate(all="ignore"):
        found = [minimize(problem, start, jac=True, method=method) for start in starts]
    values = np.array([one.fun for one in found]) / scale
    values = np.where(np.isfinite(values), values, np.inf)
    best = found[int(values.argmin())]
    theta = np.concatenate([np.exp(np.clip(best.x[:3], -_LARGEST, _LARGEST)), best.x[3:]])
    return {
        "method": method,
        "of": total,
        "values": dict(zip(NAMES, theta, strict=True)),
        "objective": float(values.min()),
        "above_exact": float(values.min() / lowest - 1) if lowest > 0 else None,
        "share_at_minimum": float(np.mean(values <= lowest * (1 + _SAME))),
        "message": str(best.message),
    }


def _lines(numbers: dict[str, Any]) -> list[str]:
    published, exact, runs, grid = (numbers[name] for name in ("published", "exact", "repeated", "grid"))
    heads = [f"{one['method']}, {one['of']}" for one in runs]
    table = [["", "published", *heads, "exact minimum", "std. error"]]
    for name in NAMES:
        value, error = exact["values"][name], exact["standard_errors"][name]
        shown = "not identified" if value is None else significant(value, 0.01 * error if error else None)
        cells = [_number(one["values"][name]) for one in runs]
        told = f"{published['values'][name]:g} +- {published['standard_errors'][name]:g}"
        table.append([name, told, *cells, shown, significant(error, error) if value is not None else ""])
    sums = [f"{value['objective']:.8g}" for value in runs]
    table.append(["sum of Huber", f"{published['objective_on_this_table']:.8g}", *sums, f"{exact['objective']:.11g}"])
    table.append(["starts there", "", *[f"{100 * one['share_at_minimum']:.2g} %" for one in runs]])
    lines = [
        f"sum of the Huber loss of ln L, delta {DELTA:g}; from {grid['starts']} of the {grid['of']} starts of the grid",
        "",
        *align(table),
        *[f"  {name}: {reason}" for name, reason in exact["unidentified"].items()],
        "",
    ]
    if published["of_this_table"]:
        above = 100 * (published["objective_on_this_table"] / exact["objective"] - 1)
        lines.append(f"The published point is {above:.2g} % above the exact minimum; its errors are a bootstrap's.")
    else:
        lines.append(f"The published numbers are of another table ({PUBLISHED_ROWS} rows): shown, not compared.")
    mean, one = runs[-1], numbers["from_one_start"]
    by_sum, by_mean = one["runs"]
    early = " and it stops early" if (mean["above_exact"] or 0) > 10 * _SAME else ""
    lines.append(
        f"A mean in place of the sum: L-BFGS-B's tolerances are absolute{early} ({mean['message']}). Its best start "
        f"ends {_above(mean)}, at alpha {_number(mean['values']['alpha'])}."
    )
    where = ", ".join(f"{name} {value:g}" for name, value in one["start"].items())
    lines.append(
        f"From one start ({where}): the sum gives alpha {_number(by_sum['values']['alpha'])}, {_above(by_sum)}; "
        f"the mean {_number(by_mean['values']['alpha'])}, {_above(by_mean)}."
    )
    lines.append("The search for the exact minimum does not depend on the scale of the objective.")
    return lines


def _above(run: dict[str, Any]) -> str:
    above = run["above_exact"]
    return "where the minimum is 0" if above is None else f"{100 * above:.3g} % above the exact minimum"


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else significant(value)
