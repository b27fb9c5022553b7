"""The best use of a budget: which N and D (or m, ell, D) a law makes best at a cost, and how they grow with it."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from toydepth.fit.checks import check_confidence, is_number, plain, refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.text import align, significant
from toydepth.fit.law.uses.cost import DEFAULT_COST, SIZE_FACTOR, Cost, make_cost, with_size
from toydepth.fit.law.uses.shape import (
    NO_SIZE,
    Laws,
    Quantity,
    draw_laws,
    raw_variables,
    size_ratio,
    summarise,
    why_unknown,
)

_STEP = 0.05  # in ln C, to either side, of the finite differences that give the exponents of N*(C)
_DELTA = 1e-4  # in ln x, of those that give slope and curvature of the loss along a budget
_FARTHEST = 40.0  # in ln x: an optimum farther than this from where the search begins is none
_FLATTEST = 1e-6  # curvature of ln (L - L0) below which rounding, not the law, says where the optimum is
_ORDER = ("N", "D", "tau", "D/N", "m", "ell", "m/ell")


@dataclass(frozen=True)
class Allocation:
    """The optimum at one budget.

    Attributes:
        budget: in the units of the cost.
        beyond: by what factor the budget lies outside those of the table's rows (1 inside).
        optimum: symbol of each variable, and N, D/N and m/ell where they follow, to its best value.
        loss: that of the law there, L*. new_run: (low, high) of one more run there, with its noise, or None.
        distance: by what factor some variable of the optimum lies outside the rows (1 inside).
        exponents: d ln x* / d ln C of each variable and of "L - L0".
    """

    budget: float
    beyond: float
    optimum: dict[str, Quantity]
    loss: Quantity
    new_run: tuple[float, float] | None
    distance: float
    exponents: dict[str, Quantity]


@dataclass(frozen=True)
class Compute:
    """The optimum at each budget, or the reason for none.

    Attributes:
        cost: as text. confidence: of the intervals.
        table: (lowest, highest) cost of the rows.
        at: one a budget. notes: what was taken for granted.
    """

    cost: str
    confidence: float
    table: tuple[float, float] | None
    at: tuple[Allocation, ...]
    reason: str | None
    notes: tuple[str, ...] = ()

    def report(self) -> str:
        """Returns the allocations as text."""
        title = f"best use of a budget, cost {self.cost}"
        if self.reason or self.table is None:
            return f"{title}: none: {self.reason}"
        low, high = self.table
        lines = [f"{title} ({100 * self.confidence:g} % intervals; the rows cost {low:.3g} ... {high:.3g})"]
        names = list(dict.fromkeys(name for one in self.at for name in one.optimum))
        for some in (["N", "D", "tau", "D/N"], ["m", "ell", "m/ell"], [name for name in names if name not in _ORDER]):
            if any(name in names for name in some):
                lines += self._table([name for name in some if name in names], with_loss=some[0] == "N")
        if "N" not in names and "D" not in names:
            lines += self._table([], with_loss=True)
        lines += self._exponents()
        far = [one for one in self.at if max(one.beyond, one.distance) > 1.0005]
        said = (f"{one.budget:.3g} (cost x {one.beyond:.3g}, a variable x {one.distance:.3g})" for one in far)
        lines += [f"  outside the rows: {', '.join(said)}"] if far else []
        lines += sorted({f"  no loss: {one.loss.reason}" for one in self.at if one.loss.reason})
        lines += sorted({f"  no optimum: {q.reason}" for one in self.at for q in one.optimum.values() if q.reason})
        lost = max((q.lost for one in self.at for q in one.optimum.values()), default=0.0)
        if lost:
            lines.append(f"  {100 * lost:.2g} % of the draws have no optimum")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _table(self, names: list[str], with_loss: bool) -> list[str]:
        """Two lines a budget: numbers, and their intervals below."""
        rows = [["cost", *(f"{name} *" for name in names), *(["L *", "one more run there"] if with_loss else [])]]
        for one in self.at:
            found = [one.optimum[name] for name in names] + ([one.loss] if with_loss else [])
            run = "?" if one.new_run is None else f"[{one.new_run[0]:.4g}, {one.new_run[1]:.4g}]"
            pairs = [q.text().partition(" ") for q in found]
            rows.append([f"{one.budget:.3g}", *(number for number, _, _ in pairs)])
            rows.append(["", *(interval for _, _, interval in pairs), *([run] if with_loss else [])])
        return align([row for row in rows if any(row)])

    def _exponents(self) -> list[str]:
        """One line where they are the same at all budgets, else one for the lowest and one for the highest."""
        chosen = [one for one in self.at if all(q.value is not None for q in one.exponents.values())]
        if not chosen:
            return []
        first, last = chosen[0], chosen[-1]
        ends = [[q.value or 0.0 for q in one.exponents.values()] for one in (first, last)]
        same = bool(np.allclose(*ends, rtol=0, atol=5e-4))
        rows = [["growth", *(f"{name} ~ C^" for name in first.exponents)]]
        for one in [last] if same else [first, last]:
            rows.append(["" if same else f"at {one.budget:.3g}", *(q.text() for q in one.exponents.values())])
        return align(rows)

    def to_dict(self) -> dict[str, Any]:
        """Returns the allocations for JSON."""
        return plain(asdict(self))


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


class Allocator:
    """The loss along a budget: the law's free variables in ln x, the last of them set by the cost.

    Where m and ell are in the law, N is theirs. `search` is all that is needed from outside.
    """

    def __init__(self, fit: LawFit, cost: Cost, size_ratio: float) -> None:
        self.fit, self.cost, self.size_ratio = fit, cost, size_ratio
        names = fit.law.variables
        self.follows = {"m", "ell"} <= set(names)
        free = [name for name in names if not (name == "N" and self.follows)]
        # What is set by the budget: data or time where there is any.
        paying = next((name for name in ("D", "tau") if name in free), free[-1])
        self.names = [name for name in free if name != paying] + [paying]
        self.rows = raw_variables(fit)
        self.centre = np.array([np.log(np.maximum(self.rows[name], 1e-300)).mean() for name in self.names])

    def variables(self, log_x: np.ndarray) -> dict[str, np.ndarray]:
        """Returns every variable (...) of ln x (..., q), N too where it follows."""
        found = {name: np.exp(log_x[..., i]) for i, name in enumerate(self.names)}
        if self.follows:
            found["N"] = self.size_ratio * found["m"] * found["m"] * found["ell"]
        return found

    def log_cost(self, log_x: np.ndarray) -> np.ndarray:
        """Returns ln C; NaN where the cost is no positive number."""
        spent = self.cost(self.variables(log_x))
        return np.log(np.where(spent > 0, spent, np.nan))

    def spent(self) -> np.ndarray:
        """Returns the costs of the rows, (n,).

        Raises:
            InputError: where one is no positive number.
        """
        spent = self.cost(with_size(self.rows))
        bad = spent[~(np.isfinite(spent) & (spent > 0))]
        if bad.size:
            raise refuse("cost", "a positive number on every row", f"{bad[0]:g} of {self.cost.text}", "Correct it.")
        return spent

    def idle(self) -> str | None:
        """Returns the first variable that the cost grows with at no row."""
        points = np.log(np.stack([self.rows[name] for name in self.names], axis=-1))
        for name, step in zip(self.names, 0.5 * np.eye(len(self.names)), strict=True):
            if not np.any(self.log_cost(points + step) - self.log_cost(points - step) > 1e-9):
                return name
        return None

    def pay(self, log_x: np.ndarray, log_budget: np.ndarray, along: np.ndarray) -> np.ndarray:
        """Moves ln x (..., q) along a direction until it costs the budget; NaN where it never does."""
        moved = np.zeros(log_x.shape[:-1])
        for _ in range(60):
            here = self.log_cost(log_x + moved[..., None] * along) - log_budget
            if not np.any(np.abs(here) > 1e-12):
                break
            ahead = self.log_cost(log_x + (moved + 1e-6)[..., None] * along) - log_budget
            moved = moved - np.clip(here / np.maximum((ahead - here) / 1e-6, 1e-3), -4.0, 4.0)
        paid = np.abs(self.log_cost(log_x + moved[..., None] * along) - log_budget) < 1e-9
        return np.where(paid[..., None], log_x + moved[..., None] * along, np.nan)

    def log_sum(self, laws: Laws, log_x: np.ndarray) -> np.ndarray:
        """Returns ln (L - L0) of r laws at ln x (r, ..., q); infinite where a variable is not above its offset."""
        variables = self.variables(log_x)
        total: Any = 0.0
        for k, name in enumerate(self.fit.law.variables):
            total = total + np.exp(laws.log_terms(k, variables[name] - self.fit.offsets.get(name, 0.0)))
        return np.where(np.isfinite(total) & (total > 0), np.log(total), np.inf)

    def search(self, laws: Laws, log_budgets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the best ln x (budgets, r, q) and ln (L - L0) there (budgets, r); NaN where there is no optimum.

        The first law is searched from a net of starts; its optima are where the others begin.
        """
        q, budgets = len(self.names), len(log_budgets)
        net = np.array(list(product((-3.0, 0.0, 3.0), repeat=q - 1))).reshape(3 ** (q - 1), q - 1)
        starts = np.concatenate([net, np.zeros((len(net), 1))], axis=1) + self.centre
        places = np.arange(budgets).repeat(len(starts))
        with np.errstate(all="ignore"):
            begin = self.pay(np.tile(starts, (budgets, 1)), log_budgets[places], np.ones(q))
            found, value = self._descend(_rows_of(laws, np.zeros(len(begin), int)), begin, log_budgets[places])
            value = np.where(np.isnan(value), np.inf, value).reshape(budgets, -1)
            first = found.reshape(budgets, -1, q)[np.arange(budgets), value.argmin(axis=1)]
            # Kinks of a cost can stop Newton's method on a slope: all around must be higher.
            around = np.repeat(first[:, None, :], len(_stencil(q - 1)), axis=1)
            around[..., :-1] += 0.05 * _stencil(q - 1)
            around = self.pay(around, log_budgets[:, None], np.eye(q)[-1])
            higher = self.log_sum(_rows_of(laws, np.zeros(budgets, int)), around) - value.min(axis=1)[:, None] > -1e-9
            first[~higher.all(axis=1)] = np.nan
            draws = len(laws.floor)
            # Without an optimum of the fit itself there is nothing to give an interval of.
            begin = np.repeat(first, draws, axis=0)
            law = np.tile(np.arange(draws), budgets)
            found, value = self._descend(_rows_of(laws, law), begin, log_budgets.repeat(draws))
        return found.reshape(budgets, draws, q), value.reshape(budgets, draws)

    def _descend(self, laws: Laws, begin: np.ndarray, log_budget: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Newton's method, one problem a row: laws (P,), ln x (P, q), ln C (P,)."""
        q = begin.shape[1] - 1
        last = np.eye(q + 1)[-1]
        offsets = _stencil(q)
        here, count = begin.copy(), len(begin)
        falls = (laws.alpha > 0).all(axis=1)
        value = np.where(falls, self.log_sum(laws, here), np.inf)
        live = np.nonzero(np.isfinite(value))[0]
        if not q:
            here = self.pay(here, log_budget, last)
            return here, np.where(falls & np.isfinite(here).all(axis=1), self.log_sum(laws, here), np.nan)
        radius, settled = np.full(count, 2.0), np.zeros(count, bool)
        for _ in range(80):
            if not live.size:
                break
            some, paid = _rows_of(laws, live), log_budget[live]
            around = np.repeat(here[live, None, :], len(offsets), axis=1)
            around[..., :q] += _DELTA * offsets
            around = self.pay(around, paid[:, None], last)
            slope, curvature = _expand(self.log_sum(some, around), q)
            readable = np.array(np.isfinite(slope.sum(axis=1) + curvature.sum(axis=(1, 2))), ndmin=1)
            values, vectors = np.linalg.eigh(np.where(readable[:, None, None], curvature, np.eye(q)))
            turned = np.einsum("pij,pi->pj", vectors, np.where(readable[:, None], slope, 0.0))
            step = -np.einsum("pij,pj->pi", vectors, turned / np.maximum(np.abs(values), _FLATTEST))
            size = np.abs(step).max(axis=1)
            step *= np.minimum(1.0, radius[live] / np.maximum(size, 1e-300))[:, None]
            trial = here[live]
            trial[:, :q] += step
            trial = self.pay(trial, paid, last)
            new = self.log_sum(some, trial)
            better = np.asarray(new) <= np.asarray(value[live]) + 1e-15
            moved, keep = live[better], np.flatnonzero(better)
            here[moved], value[moved] = trial[keep], new[keep]
            radius[live] = np.where(better, np.minimum(2 * radius[live], 4.0), 0.25 * radius[live])
            # A small radius alone is a kink, of a cost with minimum or maximum.
            done = readable & ((size < 1e-6) | (radius[live] < 1e-9))
            settled[live[done & (values[:, 0] > _FLATTEST)]] = True
            lost = ~readable | (np.abs(here[live] - begin[live]).max(axis=1) > _FARTHEST)
            live = live[~done & ~lost]
        here[~settled], value[~settled] = np.nan, np.nan
        return here, value


def variables_at(along: Allocator, log_x: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the variables of optima, with D/N and m/ell where both are known."""
    found = along.variables(log_x)
    for top, bottom in (("D", "N"), ("m", "ell")):
        if top in found and bottom in found:
            found[f"{top}/{bottom}"] = found[top] / found[bottom]
    return {name: found[name] for name in _ORDER if name in found} | found


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


def _rows_of(laws: Laws, places: np.ndarray) -> Laws:
    return Laws(laws.log_c[places], laws.alpha[places], laws.floor[places])


def _stencil(q: int) -> np.ndarray:
    """Returns (points, q): the centre, one step to either side on each axis, and the corners of each pair of axes."""
    eye = np.eye(q)
    points = [np.zeros(q), *eye, *-eye]
    for i, j in combinations(range(q), 2):
        points += [eye[i] + eye[j], eye[i] - eye[j], eye[j] - eye[i], -eye[i] - eye[j]]
    return np.array(points).reshape(len(points), q)


def _expand(values: np.ndarray, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns slope (P, q) and curvature (P, q, q) of values (P, points) on the stencil."""
    up, down, middle = values[:, 1 : 1 + q], values[:, 1 + q : 1 + 2 * q], values[:, :1]
    slope = (up - down) / (2 * _DELTA)
    curvature = np.zeros((len(values), q, q))
    curvature[:, range(q), range(q)] = (up - 2 * middle + down) / _DELTA**2
    for n, (i, j) in enumerate(combinations(range(q), 2)):
        a, b, c, d = (values[:, 1 + 2 * q + 4 * n + m] for m in range(4))
        curvature[:, i, j] = curvature[:, j, i] = (a - b - c + d) / (4 * _DELTA**2)
    return slope, curvature
