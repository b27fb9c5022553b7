"""The search for the lowest loss along a budget: Newton's method in ln x, many laws and budgets at once."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np

from toydepth.fit.checks import refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.uses.cost import Cost, with_size
from toydepth.fit.law.uses.draws import Laws

_MOST_VARIABLES = 6

_DELTA = 1e-4  # in ln x, of those that give slope and curvature of the loss along a budget
_FARTHEST = 40.0  # in ln x: an optimum farther than this from where the search begins is none
_FLATTEST = 1e-6  # curvature of ln (L - L0) below which rounding, not the law, says where the optimum is


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
        self.rows = fit.rows.unshifted(fit.offsets)
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
        if q > _MOST_VARIABLES:  # a net of 3^(q - 1) points for every draw
            advice = "Fix the others, or give a cost of fewer."
            raise refuse("cost", f"of at most {_MOST_VARIABLES} variables of the law", q, advice)
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
