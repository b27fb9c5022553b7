"""Levenberg-Marquardt for many fits of one model at once: starts, resamples and profiles are rows of one array.

The answer depends neither on the scale of the objective nor on the units of the variables: damping is relative to the
curvature of each parameter, and so is the test for the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toydepth.fit.law.model import Model
from toydepth.fit.law.objective import Objective

_CHUNK_BYTES = 2**25  # of derivatives at a time: more leaves the cache, and memory
_LARGEST_STEP = 3.0  # in ln c, exponents, ln L0: none is ever that far off


@dataclass(frozen=True, eq=False)
class Problem:
    """What is made small: the objective of a model against log losses (n,)."""

    model: Model
    objective: Objective
    log_loss: np.ndarray

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Returns the residuals (..., n) of theta (..., p)."""
        fitted = self.model.log_loss(theta)
        return self.log_loss - fitted if self.objective.of_log else np.exp(self.log_loss) - np.exp(fitted)

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the residuals (..., n) and the derivatives (..., p, n) of what was fitted: minus their own."""
        fitted, jacobian = self.model.jacobian(theta)
        if self.objective.of_log:
            return self.log_loss - fitted, jacobian
        fitted = np.exp(fitted)
        jacobian *= fitted[..., None, :]
        return np.exp(self.log_loss) - fitted, jacobian

    def value(self, theta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Returns the objective (...) of theta (..., p) with weights (..., n) or (n,)."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value = self.objective.rho(self.residuals(theta), weights)
        return np.where(np.isfinite(value), value, np.inf)

    def take(self, rows: np.ndarray) -> Problem:
        """Returns the problem on some of the rows."""
        return Problem(self.model.take(rows), self.objective, self.log_loss[rows])


@dataclass(frozen=True, eq=False)
class Solutions:
    """Of many fits: theta (fits, p), value (fits,), converged (fits,)."""

    theta: np.ndarray
    value: np.ndarray
    converged: np.ndarray


def solve(
    problem: Problem,
    starts: np.ndarray,
    weights: np.ndarray,
    basis: np.ndarray | None = None,
    max_steps: int = 400,
    tolerance: float = 1e-9,
) -> Solutions:
    """Minimises the objective from each start.

    Args:
        problem: the model, the objective, the losses.
        starts: (fits, p).
        weights: of rows, (n,) for all fits or (fits, n).
        basis: (fits, p, q), the directions in which each fit may move from its start; None for all.
        max_steps: of the iteration; fits that have not converged by then say so.
        tolerance: a fit has converged when a step's expected gain is below tolerance^2 of the objective, or what
            it changes in any parameter is below tolerance.
    """
    rows = starts.shape[1] * problem.log_loss.size * 8
    at_once = max(_CHUNK_BYTES // rows, 1)
    parts = [slice(i, i + at_once) for i in range(0, len(starts), at_once)]
    found = [
        _solve(
            problem,
            starts[part].astype(float),
            weights if weights.ndim == 1 else weights[part],
            None if basis is None else basis[part],
            max_steps,
            tolerance,
        )
        for part in parts
    ]
    return Solutions(*(np.concatenate([getattr(f, name) for f in found]) for name in ("theta", "value", "converged")))


def _solve(
    problem: Problem,
    theta: np.ndarray,
    weights: np.ndarray,
    basis: np.ndarray | None,
    max_steps: int,
    tolerance: float,
) -> Solutions:
    fits, size = theta.shape
    value = problem.value(theta, weights)
    converged = np.zeros(fits, bool)
    active = np.isfinite(value)
    damping = np.full(fits, 1e-2)
    largest = np.zeros((fits, size if basis is None else basis.shape[2]))
    of = lambda which: weights if weights.ndim == 1 else weights[which]  # noqa: E731
    gradient = np.zeros_like(largest)
    curvature = np.zeros((*largest.shape, largest.shape[1]))
    fresh = active.copy()  # whether theta has moved since its derivatives were taken
    for _ in range(max_steps):
        live = np.nonzero(active)[0]
        if not live.size:
            break
        new = live[fresh[live]]
        if new.size:
            gradient[new], curvature[new] = _expand(problem, theta[new], of(new), None if basis is None else basis[new])
            fresh[new] = False
        diagonal = np.einsum("fqq->fq", curvature[live])
        largest[live] = np.maximum(0.5 * largest[live], diagonal)
        # What a parameter does not change at all still needs a positive number here.
        ridge = damping[live, None] * np.maximum(
            largest[live], 1e-14 * largest[live].max(axis=1, keepdims=True) + 1e-300
        )
        damped = curvature[live] + ridge[:, :, None] * np.eye(ridge.shape[1])
        step = _solve_all(damped, -gradient[live])
        gain = -(
            np.einsum("fq,fq->f", gradient[live], step) + 0.5 * np.einsum("fq,fqr,fr->f", step, curvature[live], step)
        )
        move = step if basis is None else np.einsum("fpq,fq->fp", basis[live], step)
        reach = np.abs(move).max(axis=1)
        shrink = np.minimum(1.0, _LARGEST_STEP / np.maximum(reach, 1e-300))
        trial = theta[live] + move * shrink[:, None]
        trial_value = problem.value(trial, of(live))
        better = trial_value < value[live]
        # Relative, so that the scale of the objective plays no part; Student's t is a log likelihood, of any sign.
        small = (gain <= tolerance**2 * _size_of(problem, value[live], of(live))) | (reach < tolerance)
        ratio = (value[live] - trial_value) / np.maximum(gain * shrink, 1e-300)
        moved = live[better]
        theta[moved], value[moved], fresh[moved] = trial[better], trial_value[better], True
        growth = np.where(better, np.where(ratio > 0.75, 0.2, np.where(ratio < 0.25, 2.0, 0.7)), 5.0)
        damping[live] = np.clip(damping[live] * growth, 1e-12, 1e16)
        done = small | (~better & (damping[live] > 1e12))
        converged[live[done]] = True
        active[live[done]] = False
    return Solutions(theta, value, converged)


def _expand(
    problem: Problem, theta: np.ndarray, weights: np.ndarray, basis: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (fits, q) and curvature (fits, q, q) of the objective."""
    residuals, jacobian = problem.residuals_and_jacobian(theta)
    # Without any noise Student's t has no most likely scale: infinities there end the search, and are no news.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        psi, kappa = problem.objective.derivatives(residuals, weights)
    psi, kappa = np.nan_to_num(psi, posinf=1e150, neginf=-1e150), np.nan_to_num(kappa, posinf=1e150)
    gradient = -np.matmul(jacobian, (weights * psi)[..., None])[..., 0]
    root = np.sqrt(weights * kappa)
    jacobian *= root[:, None, :]
    curvature = np.matmul(jacobian, np.swapaxes(jacobian, -1, -2))
    if basis is None:
        return gradient, curvature
    across = np.swapaxes(basis, -1, -2)
    return np.matmul(across, gradient[..., None])[..., 0], across @ curvature @ basis


def _solve_all(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Solves (fits, q, q) x = (fits, q), scaled to a unit diagonal; a singular one gets a step along its gradient."""
    scale = 1 / np.sqrt(np.einsum("fqq->fq", matrices))
    scaled = matrices * scale[:, :, None] * scale[:, None, :]
    right = (vectors * scale)[..., None]
    try:
        found = np.linalg.solve(scaled, right)
    except np.linalg.LinAlgError:
        found = np.linalg.solve(scaled + 1e-10 * np.eye(scaled.shape[1]), right)
    found = found[..., 0] * scale
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, vectors * scale**2)


def _size_of(problem: Problem, value: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if problem.objective.kind == "student":
        return np.broadcast_to(weights.sum(axis=-1), value.shape)
    return value
