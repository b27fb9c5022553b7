"""The best use of a budget: which N and D (or m, ell, D) a law makes best at a cost, and how they grow with it."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from toydepth.fit.checks import check_confidence, is_number, refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.text import significant
from toydepth.fit.law.uses.allocation import ORDER, Allocation, Compute
from toydepth.fit.law.uses.allocator import Allocator
from toydepth.fit.law.uses.cost import DEFAULT_COST, SIZE_FACTOR, Cost, make_cost, with_size
from toydepth.fit.law.uses.draws import Laws, Quantity, draw_laws, summarise, why_unknown
from toydepth.fit.law.uses.shape import NO_SIZE, size_ratio

_STEP = 0.05  # in ln C, to either side, of the finite differences that give the exponents of N*(C)


def best_allocation(
    fit: LawFit,
    cost: str | Callable[..., Any] | Cost = DEFAULT_COST,
    budgets: Sequence[float] | None = None,
    *,
    confidence: float | None = None,
    seed: int = 0,
    laws: Laws | None = None,
) -> Compute:
    """Returns the variables that make the loss lowest at given costs, C = cost(x).

    The sum of the terms is minimised numerically along each budget, for the law at the minimum and for every draw:
    Newton's method in ln x, one variable (D where there is one) set by the budget. N = 12 m^2 ell where m and ell are
    in the law. For L = A / N^alpha + B / D^beta + E and C = 6 N D it must give alpha A / N^alpha = beta B / D^beta, so
    that N* ~ C^(beta / (alpha + beta)), D* ~ C^(alpha / (alpha + beta)), L* - E ~ C^(-alpha beta / (alpha + beta));
    with a term D^-1/3 and terms of m and ell that fall as N^-1/3 at the best shape, C^1/2, C^1/2, C^-1/6.

    Args:
        fit: of any law all of whose variables the cost grows with.
        cost: an expression or a function, as in `make_cost`, in the units of the table.
        budgets: default: five, a decade apart, about the middle of the rows' costs.
        confidence: of the intervals; default: the fit's.
        seed: of the draws. laws: draws made before, of `draw_laws`.

    Returns:
        Compute: with a reason and no number where a parameter that it needs is not identified, a variable costs
        nothing, or the law is of tau, which no budget of 6 N D fixes.

    Raises:
        InputError: for a cost of names that do not follow from the law's variables, one that is not positive on the
            rows, or budgets that are no positive numbers.

    Example:
        >>> import pandas as pd
        >>> from toydepth.fit.law.fitting import fit_law
        >>> N, D = (x.ravel() for x in np.meshgrid([1e7, 1e8, 1e9], [1e9, 1e10, 1e11]))
        >>> runs = pd.DataFrame({"N": N, "D": D, "loss": 100 / N**0.34 + 400 / D**0.28 + 1.7})
        >>> fit = fit_law(runs, "chinchilla", {"N": "N", "D": "D"})
        >>> [round(q.value, 4) for q in best_allocation(fit, budgets=[1e21]).at[0].exponents.values()]
        [0.4516, 0.5484, -0.1535]
        >>> round(0.28 / 0.62, 4), round(0.34 / 0.62, 4), round(0.34 * 0.28 / 0.62, 4)
        (0.4516, 0.5484, 0.1535)

    Source: closed forms, arXiv 2203.15556; C^1/2, C^-1/6, arXiv 2606.25008.
    """
    confidence = check_confidence(fit.confidence if confidence is None else confidence)
    cost = make_cost(cost)
    _check_budgets(budgets)
    names = fit.law.variables
    none = lambda why, table=None: Compute(cost.text, confidence, table, (), why)  # noqa: E731
    missing = cost.missing(names)
    if "D" in missing and "tau" in names:
        return none("the law is of tau, the sum of learning rates, not of D: the data of a tau depends on the schedule")
    if missing:
        raise refuse("cost", f"of {', '.join(with_size(dict.fromkeys(names, np.ones(1))))}", ", ".join(missing),
                     "The others do not follow from the variables of the law.")  # fmt: skip
    if reason := why_unknown(fit, [name for t in fit.law.terms for name in (t.coefficient, t.alpha)]):
        return none(reason)
    if (ratio := size_ratio(fit)) is None:
        return none(NO_SIZE)
    along = Allocator(fit, cost, ratio)
    spent = along.spent()
    table = (float(spent.min()), float(spent.max()))
    if idle := along.idle():
        return none(f"the cost {cost.text} does not grow with {idle}, so that more of it is always better", table)
    middle = round(float(np.log10(table[0]) + np.log10(table[1])) / 2)
    wanted = 10.0 ** np.arange(middle - 2, middle + 3) if budgets is None else np.asarray(budgets, float)
    steps = np.log(wanted)[:, None] + _STEP * np.array([0.0, -1.0, 1.0])
    laws = laws or draw_laws(fit, seed)
    best, total = along.search(laws, steps.ravel())
    best = best.reshape(len(wanted), 3, *best.shape[1:])
    total = total.reshape(len(wanted), 3, -1)
    with np.errstate(all="ignore"):
        at = [_allocation(fit, along, laws, *one, table, confidence) for one in zip(wanted, best, total, strict=True)]
    notes = []
    if along.follows:
        notes.append(f"N = {12 if ratio == SIZE_FACTOR else ratio:.4g} m^2 ell, which counts no embeddings")
    return Compute(cost.text, confidence, table, tuple(at), None, tuple(notes))


def variables_at(along: Allocator, log_x: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the variables of optima, with D/N and m/ell where both are known."""
    found = along.variables(log_x)
    for top, bottom in (("D", "N"), ("m", "ell")):
        if top in found and bottom in found:
            found[f"{top}/{bottom}"] = found[top] / found[bottom]
    return {name: found[name] for name in ORDER if name in found} | found


def _allocation(
    fit: LawFit,
    along: Allocator,
    laws: Laws,
    budget: float,
    best: np.ndarray,
    total: np.ndarray,
    table: tuple[float, float],
    confidence: float,
) -> Allocation:
    """One budget's numbers from best (3, r, q) and total (3, r): at C, and a step below and above."""
    why = "the search found no best use of the budget within a factor e^40 of the rows"
    falling = [t.alpha for t in fit.law.terms if fit.values[t.alpha] <= 0]
    if falling:
        why = (
            f"{falling[0]} = {significant(fit.values[falling[0]])} is not positive, so there is no best use of a budget"
        )
    found = variables_at(along, best)
    optimum = {name: summarise(values[0], confidence, why) for name, values in found.items()}
    exponents = {
        name: summarise(np.log(values[2] / values[1]) / (2 * _STEP), confidence, why)
        for name, values in found.items()
        if "/" not in name
    }
    exponents["L - L0"] = summarise((total[2] - total[1]) / (2 * _STEP), confidence, why)
    unknown = why_unknown(fit, ["L0"])
    loss = Quantity(None, reason=unknown) if unknown else summarise(np.exp(total[0]) + laws.floor, confidence, why)
    run, distance = None, 1.0
    if loss.value is not None:
        point: Mapping[str, float] = {name: float(found[name][0, 0]) for name in fit.law.variables}
        told = fit.predict(point, new_run=True, confidence=confidence).iloc[0]
        distance = float(told["distance"])
        run = (float(told["low"]), float(told["high"])) if np.isfinite(told["low"]) else None
    beyond = max(1.0, budget / table[1], table[0] / budget)
    return Allocation(float(budget), float(beyond), optimum, loss, run, distance, exponents)


def _check_budgets(budgets: Sequence[float] | None) -> None:
    if budgets is None:
        return
    advice = "Give a list such as [1e20, 1e21], in the units of the cost."
    try:
        wanted = list(budgets)
    except TypeError:
        raise refuse("budgets", "a list of positive numbers", reprlib.repr(budgets), advice) from None
    bad = [one for one in wanted if not (is_number(one) and np.isfinite(one) and one > 0)]
    if bad or not wanted or isinstance(budgets, str):
        raise refuse("budgets", "a list of positive numbers", reprlib.repr(bad[0] if bad else budgets), advice)
