"""Profile likelihood: how much worse the best fit gets as one parameter is held elsewhere; where that is too much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.solve import solve
from toydepth.fit.law.starts import spread_starts

_FARTHEST = 40.0  # standard errors, at least, before a side is called open
_FARTHEST_MOVE = 8.0  # in ln c, an exponent, ln L0: a factor 3000
_ROUNDS = 14
_VALLEYS = 8  # other starts, where one has found a fit that is too bad
_TURNS = 0.5  # |ln g| above which a coefficient can be moved by its exponent


@dataclass(frozen=True)
class Profile:
    """low, high: where delta chi^2 crosses the threshold, in the parameter's space (ln c, alpha, ln L0).

    None where it does not, on that side, within 40 standard errors: the profile is open. closest_low, closest_high:
    the delta chi^2 that was reached there.
    """

    low: float | None
    high: float | None
    reached_low: float
    reached_high: float

    @property
    def is_open(self) -> bool:
        """Whether one side, or both, never gets bad enough."""
        return self.low is None or self.high is None


def threshold(estimate: Estimate, confidence: float) -> float:
    """Returns the delta chi^2 of an interval: the square of Student's t quantile with n - p degrees of freedom."""
    return float(stdtrit(estimate.interval_degrees, 0.5 + confidence / 2)) ** 2


def hold(estimate: Estimate, index: np.ndarray, at: np.ndarray, starts: np.ndarray | None = None):
    """Minimises with natural parameter index[i] held at at[i], for all i at once.

    Args:
        estimate: the free minimum.
        index: (fits,), of the natural parameters.
        at: (fits,), values in their space.
        starts: (fits, p) to begin from; default: along the ridge of the covariance.

    Returns:
        (theta (fits, p), delta chi^2 (fits,)).
    """
    matrix, shift = estimate.problem.model.to_natural()
    rows = matrix[index]
    whence = np.broadcast_to(estimate.theta, (len(index), estimate.theta.size)) if starts is None else starts
    whence = estimate.problem.model.lift(whence)
    # To the held value along the direction in which the objective grows least.
    ridge = rows @ estimate.ridge
    along = ridge / np.maximum(np.einsum("fp,fp->f", rows, ridge), 1e-300)[:, None]
    missing = at - (np.einsum("fp,fp->f", rows, whence) + shift[index])
    whence = whence + along * missing[:, None]
    if rows.shape[1] == 1:  # nothing is left to fit
        return whence, np.asarray(estimate.delta_chi2(estimate.problem.value(whence, estimate.weights)))
    basis = np.linalg.svd(rows[:, None, :], full_matrices=True)[2][:, 1:, :]
    found = solve(estimate.problem, whence, estimate.weights, np.swapaxes(basis, 1, 2), max_steps=150, tolerance=1e-7)
    return found.theta, np.asarray(estimate.delta_chi2(found.value))


def hold_from_all(estimate: Estimate, index: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `hold`, but from several valleys, the best of each: one search can be stuck where the valley bends.

    Begins at the estimate and at spread starts, each moved to the held value: a coefficient by its exponent, which
    leaves the size of the term at the middle of the table as it is; all else by itself.
    """
    model = estimate.problem.model
    others = spread_starts(model, estimate.problem.log_loss, _VALLEYS, seed=0)
    whence = np.concatenate([np.broadcast_to(estimate.theta, (2, estimate.theta.size)), others])
    matrix, shift = model.to_natural()
    fits = len(index)
    starts = np.repeat(whence[None], fits, axis=0)
    rows = matrix[index]
    # The entry that moves: the largest of the exponents' where they turn the coefficient, else the parameter's own.
    turning = np.abs(rows)
    turning[np.arange(fits), index] = 0
    by = np.where(turning.max(axis=1) > _TURNS, turning.argmax(axis=1), index)
    missing = at[:, None] - (np.einsum("fp,fsp->fs", rows, starts) + shift[index][:, None])
    moved = starts.copy()
    # The second copy of the estimate moves along the ridge, inside `hold`.
    step = missing / rows[np.arange(fits), by][:, None]
    step[:, 1] = 0
    moved[np.arange(fits)[:, None], np.arange(len(whence))[None], by[:, None]] += step
    count = len(whence)
    flat = moved.reshape(fits * count, -1)
    theta, chi2 = hold(estimate, np.repeat(index, count), np.repeat(at, count), flat)
    best = chi2.reshape(fits, count).argmin(axis=1) + count * np.arange(fits)
    return theta[best], chi2[best]


def profile_all(estimate: Estimate, confidence: float) -> list[Profile]:
    """Returns the profile of every natural parameter: both ends are sought by a bracketed secant, all at once.

    The search is in the signed root of delta chi^2, which is nearly a line. Where rows of a group go together, the
    threshold is that of independent rows times the factor by which groups change the parameter's variance (covariance
    of clusters).
    """
    size = estimate.theta.size
    index = np.repeat(np.arange(size), 2)
    goals = np.sqrt(threshold(estimate, confidence) * estimate.inflation)[index]
    sign = np.tile([-1.0, 1.0], size)
    centre = estimate.natural[index]
    error = np.sqrt(np.maximum(np.diag(estimate.covariance)[index], 0) / estimate.inflation[index])
    # A coefficient is the term at x = 1, which may lie far outside the rows: what its exponent may move, times ln g.
    far = np.ones(size)
    far[: estimate.problem.model.num_terms] += np.abs(estimate.problem.model.log_means)
    farthest = np.maximum(np.minimum(_FARTHEST * error, _FARTHEST_MOVE * far[index]), 1e-9)
    step = np.minimum(goals * error, farthest)
    inside, inside_root = np.zeros(2 * size), np.zeros(2 * size)
    outside, outside_root = np.full(2 * size, np.inf), np.full(2 * size, np.inf)
    starts = np.broadcast_to(estimate.theta, (2 * size, size)).copy()
    reached = np.zeros(2 * size)
    answer = np.full(2 * size, np.nan)
    live = np.arange(2 * size)
    for _ in range(_ROUNDS):
        if not live.size:
            break
        theta, chi2 = hold(estimate, index[live], centre[live] + sign[live] * step[live], starts[live])
        bad = np.flatnonzero(np.sqrt(np.maximum(chi2, 0)) >= goals[live])
        if bad.size:  # too bad is believed only when other valleys agree
            other, better = hold_from_all(estimate, index[live][bad], centre[live][bad] + (sign * step)[live][bad])
            gain = better < chi2[bad]
            theta[bad[gain]], chi2[bad[gain]] = other[gain], better[gain]
        root = np.sqrt(np.maximum(chi2, 0))
        reached[live] = np.maximum(reached[live], chi2)
        goal = goals[live]
        over = root >= goal
        inside[live] = np.where(over, inside[live], step[live])
        inside_root[live] = np.where(over, inside_root[live], root)
        starts[live[~over]] = theta[~over]
        outside[live] = np.where(over, step[live], outside[live])
        outside_root[live] = np.where(over, root, outside_root[live])
        close = np.abs(root - goal) < 1e-4 * goal
        answer[live[close]] = step[live[close]]
        open_side = ~over & (step[live] >= farthest[live] * (1 - 1e-9))
        live = live[~close & ~open_side]
        goal = goals[live]
        bracketed = np.isfinite(outside[live])
        with np.errstate(invalid="ignore"):
            slope = (goal - inside_root[live]) / (outside_root[live] - inside_root[live])
            # Kept off the ends of the bracket, which a curved profile would make the secant hug.
            between = inside[live] + (outside[live] - inside[live]) * np.clip(slope, 0.05, 0.95)
        ahead = np.clip(
            inside[live] * goal / np.maximum(inside_root[live], 0.1 * goal), 1.2 * inside[live], 4 * inside[live]
        )
        step[live] = np.where(bracketed, between, np.minimum(np.maximum(ahead, 1e-12), farthest[live]))
    bracketed = np.isnan(answer) & np.isfinite(outside)
    answer[bracketed] = ((inside + outside) / 2)[bracketed]
    ends = np.where(np.isnan(answer), np.nan, centre + sign * answer)
    pairs = zip(ends[0::2], ends[1::2], reached[0::2], reached[1::2], strict=True)
    return [Profile(_or_none(a), _or_none(b), float(c), float(d)) for a, b, c, d in pairs]


def profile_curve(estimate: Estimate, name: str, values: np.ndarray) -> np.ndarray:
    """Returns delta chi^2 at values (k,) of a natural parameter, in its space: ln c, an exponent, ln L0.

    Each is also begun from its better neighbour, until nothing improves: what starts far off can end in another valley,
    and several may lie side by side.
    """
    order = np.argsort(values)
    ascending = np.asarray(values, float)[order]
    which = np.full(len(ascending), estimate.problem.model.law.parameters.index(name))
    theta, chi2 = hold_from_all(estimate, which, ascending)
    for _ in range(len(ascending)):
        padded = np.pad(chi2, 1, constant_values=np.inf)
        better = np.arange(len(ascending)) + np.where(padded[:-2] < padded[2:], -1, 1)
        again, other = hold(estimate, which, ascending, theta[np.clip(better, 0, len(ascending) - 1)])
        gain = other < chi2 - 1e-6 * (1 + np.abs(chi2))
        if not gain.any():
            break
        theta = np.where(gain[:, None], again, theta)
        chi2 = np.where(gain, other, chi2)
    curve = np.empty_like(chi2)
    curve[order] = chi2
    return curve


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
