"""Which runs to do next: those that make the interval of a chosen number shrink most."""

from __future__ import annotations

import ast
import reprlib
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from toydepth.errors import did_you_mean
from toydepth.fit.checks import check_confidence, check_count, refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.uses.cost import DEFAULT_COST, SIZE_FACTOR, make_cost, with_size
from toydepth.fit.law.uses.draws import laws_of, why_unknown
from toydepth.fit.law.uses.shape import NO_SIZE, size_ratio
from toydepth.fit.law.uses.valley import Valley

_STEP = 1e-5  # in ln c, exponents, ln L0, of the finite differences that give the gradient of a target
_MOST_CANDIDATES = 4096
_POINTS = 7  # a variable of the default grid, where there are not too many variables for it
Target = str | Callable[[Mapping[str, float]], float]


def next_runs(
    fit: LawFit,
    target: Target,
    *,
    candidates: pd.DataFrame | None = None,
    count: int = 5,
    confidence: float | None = None,
) -> pd.DataFrame:
    """Returns the runs, of those that could be done, after which the target would be known best.

    The target's variance is g^T V g, with V the covariance of the fit's own parameters and g its gradient in them. One
    more run at x, whose loss has the fit's noise sigma, adds j j^T / sigma^2 to V^-1, j the gradient of ln L(x) (or of
    L, where the fit is of L), so that

        V -> V - V j j^T V / (sigma^2 + j^T V j),    g^T V g falls by (g^T V j)^2 / (sigma^2 + j^T V j).

    Runs are chosen one after another, each candidate once. The plan believes the law and its noise: it asks where a run
    tells most if the law is right, not where the law may be wrong, nor what the run costs. Half widths are those of
    covariance intervals. Of a fit with groups, a run is taken to be a group of its own.

    Args:
        fit: of any law.
        target: a parameter's name (alpha_ell, c_m, L0); `m/ell`, the best shape at the table's median N;
            `L(m=8192, ell=80, D=1.4e12)`, the law's loss there; or a function of a dict of the law's numbers by name.
        candidates: a table with the law's variables, by symbol or by column; default: a log grid over the range
            of each, an octave beyond on either side; whole numbers of layers and width where the table has whole ones.
        count: of runs.
        confidence: of the intervals; default: the fit's.

    Returns:
        A table, best run first: the variables; cost, 6 N D, where N and D are known; half_width_before and half_width,
        half the length of the target's interval before and after the run (and those above it), in the target's units;
        ratio, half_width over that of today.

    Raises:
        InputError: for a target that is fixed, unknown, or not identified by the rows (there is no interval to
            shrink), candidates without the law's variables, or fewer candidates than runs.

    Example:
        >>> from toydepth.fit.law.fitting import fit_law
        >>> m = np.array([64, 96, 128, 192, 256, 384] * 2)
        >>> noise = np.exp(0.01 * np.array([1, -1, 1, 1, -1, -1, -1, 1, -1, -1, 1, 1]))
        >>> fit = fit_law(pd.DataFrame({"m": m, "loss": (40 / m + 1.7) * noise}), "universal", {"m": "m"})
        >>> next_runs(fit, "L0", count=2)["m"].tolist()
        [32.0, 768.0]

    Source: sequential D_A-optimal design, Fedorov, Theory of Optimal Experiments, 1972.
    """
    check_count("count", count, 1)
    confidence = check_confidence(fit.confidence if confidence is None else confidence)
    gradient, scale = _gradient(fit, target)
    runs = _default_candidates(fit) if candidates is None else _given(fit, candidates)
    if len(runs) < count:
        raise refuse("count", f"at most the number of candidates, {len(runs)}", count, "Give more candidates.")
    jacobian = jacobian_at(fit, runs)
    covariance, noise = fit.estimate.own_covariance.copy(), fit.estimate.noise_variance
    degrees = fit.estimate.interval_degrees
    half = lambda n: scale * stdtrit(degrees + n, 0.5 + confidence / 2) * np.sqrt(_quadratic(gradient, covariance))  # noqa: E731
    widths, chosen, free = [half(0)], [], np.ones(len(runs), bool)
    for _ in range(count):
        seen = jacobian @ covariance
        gain = (seen @ gradient) ** 2 / (noise + np.einsum("rp,rp->r", seen, jacobian))
        best = int(np.argmax(np.where(free, gain, -1.0)))
        chosen.append(best)
        free[best] = False
        covariance -= np.outer(seen[best], seen[best]) / (noise + float(seen[best] @ jacobian[best]))
        widths.append(half(len(chosen)))
    table = runs.iloc[chosen].reset_index(drop=True)
    cost = make_cost(DEFAULT_COST)
    if not cost.missing(table.columns):
        table["cost"] = cost(with_size({name: table[name].to_numpy(float) for name in table.columns}))
    table["half_width_before"], table["half_width"] = widths[:-1], widths[1:]
    table["ratio"] = table["half_width"] / widths[0]
    table.index = pd.RangeIndex(1, count + 1, name="run")
    return table


def jacobian_at(fit: LawFit, runs: pd.DataFrame) -> np.ndarray:
    """Returns the gradient (runs, p) of what the objective is of, ln L or L, in the fit's own parameters."""
    e = fit.estimate
    shifted = {name: runs[name].to_numpy(float) - fit.offsets.get(name, 0.0) for name in fit.law.variables}
    log_loss, jacobian = e.problem.model.on(shifted).jacobian(e.theta)
    return (jacobian if e.problem.objective.of_log else jacobian * np.exp(log_loss)).T


def _gradient(fit: LawFit, target: Target) -> tuple[np.ndarray, float]:
    """Returns (g (p,), scale): g of ln of a target that is positive by nature; its error is scale times that of ln."""
    value, of, needs = _read_target(fit, target)
    e = fit.estimate
    if needs and (reason := why_unknown(fit, needs)):
        raise refuse("target", "known from the rows", f"{target}, which has no interval yet", f"{reason}.")
    matrix, shift = e.problem.model.to_natural()
    steps = _STEP * np.eye(e.theta.size)
    ends = of(np.concatenate([e.theta + steps, e.theta - steps]) @ matrix.T + shift)
    gradient = (ends[: e.theta.size] - ends[e.theta.size :]) / (2 * _STEP)
    if not np.isfinite(gradient).all():
        raise refuse("target", "a number at the fit", f"{target}, which has none there", "Choose another.")
    if not np.any(np.abs(gradient) > 1e-12):
        raise refuse(
            "target", "something that the fit decides", f"{target}, which is the same for all", "Choose another."
        )
    if not needs:
        touched = [name for name, g in zip(fit.law.parameters, gradient @ np.linalg.inv(matrix), strict=True) if g]
        if reason := why_unknown(fit, touched):
            raise refuse("target", "known from the rows", "one with no interval yet", f"{reason}.")
    return gradient, value


def _read_target(fit: LawFit, target: Target) -> tuple[float, Callable[[np.ndarray], np.ndarray], list[str]]:
    """Returns (scale, function of natural parameters (r, p), names of the parameters it needs)."""
    law = fit.law
    everything = [name for term in law.terms for name in (term.coefficient, term.alpha)] + ["L0"]
    if callable(target):
        return 1.0, lambda natural: np.array([_call(fit, target, one) for one in natural]), []
    if not isinstance(target, str):
        raise refuse("target", "a name, 'm/ell', 'L(...)' or a function", reprlib.repr(target), "Give such as alpha_m.")
    name = "".join(target.split())
    if name in fit.parameters:
        one = fit.parameters[name]
        if one.fixed:
            raise refuse("target", "a number that is fitted", f"{name}, which is fixed", "Choose another.")
        place = law.parameters.index(one.shared_with or name)
        return (one.estimate if one.space == "ln" else 1.0), lambda natural: natural[:, place], [name]
    if name == "m/ell":
        if not {"m", "ell"} <= set(law.variables):
            raise refuse("target", "of the law's variables", "m/ell", f"The law is of {', '.join(law.variables)}.")
        if size_ratio(fit) is None:
            raise refuse("target", "a number that follows from the law", "m/ell", f"{NO_SIZE}.")
        rows = fit.rows.unshifted(fit.offsets)
        log_size = float(np.log(np.median(SIZE_FACTOR * rows["m"] ** 2 * rows["ell"])))
        shape = lambda natural: Valley(fit, laws_of(fit, natural)).best(log_size)  # noqa: E731
        needs = ["c_m", "alpha_m", "c_ell", "alpha_ell"]
        return float(np.exp(shape(fit.estimate.natural[None])[0])), shape, needs
    if name.startswith("L("):
        point = _point(target)
        loss = float(fit.predict(point)["loss"].iloc[0])  # refuses what is missing, or below its offset
        values = {v: point[v] if v in point else point[fit.labels[v]] for v in law.variables}
        shifted = {v: np.full(1, value - fit.offsets.get(v, 0.0)) for v, value in values.items()}
        model = fit.estimate.problem.model.on(shifted)
        matrix, shift = fit.estimate.problem.model.to_natural()
        back = np.linalg.inv(matrix)
        return loss, lambda natural: model.log_loss((natural - shift) @ back.T)[:, 0], everything
    known = [*law.parameters, "m/ell", "L(...)"]
    raise refuse("target", f"one of {', '.join(known)}", repr(target), f"Or a function.{did_you_mean(name, known)}")


def _call(fit: LawFit, target: Callable[[Mapping[str, float]], float], natural: np.ndarray) -> float:
    laws = laws_of(fit, natural[None])
    numbers = {term.coefficient: float(np.exp(laws.log_c[0, k])) for k, term in enumerate(fit.law.terms)}
    numbers |= {term.alpha: float(laws.alpha[0, k]) for k, term in enumerate(fit.law.terms)}
    return float(target({**numbers, "L0": float(laws.floor[0])}))


def _point(target: str) -> dict[str, float]:
    """Reads L(m=8192, ell=80, D=1.4e12)."""
    try:
        call = ast.parse(target.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not call.keywords:
            raise ValueError
        point = {str(one.arg): float(ast.literal_eval(one.value)) for one in call.keywords}
        if len(point) < len(call.keywords):
            raise ValueError
        return point
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, OverflowError):
        raise refuse("target", "such as L(m=1024, ell=24, D=1e11)", repr(target), "Name each variable once.") from None


def _given(fit: LawFit, candidates: pd.DataFrame) -> pd.DataFrame:
    point = fit.predict(candidates)  # refuses what is missing, or below its offset
    return pd.DataFrame({name: point[name].to_numpy(float) for name in fit.law.variables})


def _default_candidates(fit: LawFit) -> pd.DataFrame:
    rows = fit.rows.unshifted(fit.offsets)
    names = fit.law.variables
    points = max(min(_POINTS, int(_MOST_CANDIDATES ** (1 / len(names)))), 3)
    axes = []
    for name in names:
        low, high = rows[name].min() / 2, 2 * rows[name].max()
        axis = np.geomspace(low, high, points)
        if name in ("m", "ell") and np.all(rows[name] == np.round(rows[name])):
            axis = np.unique(np.maximum(np.round(axis), 1.0))
        axes.append(axis[axis > max(fit.offsets.get(name, 0.0), 0.0)])
    grid = pd.DataFrame(list(product(*axes)), columns=pd.Index(names))
    if {"m", "ell", "N"} <= set(names):
        # N is not free of m and ell: only what is as far from 12 m^2 ell as some row.
        ratio, known = grid["N"] / (grid["m"] ** 2 * grid["ell"]), rows["N"] / (rows["m"] ** 2 * rows["ell"])
        grid = grid.loc[((ratio >= known.min()) & (ratio <= known.max())).to_numpy()].reset_index(drop=True)
    return grid


def _quadratic(vector: np.ndarray, matrix: np.ndarray) -> float:
    return max(float(vector @ matrix @ vector), 0.0)
