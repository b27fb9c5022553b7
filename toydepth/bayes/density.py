"""The density that is sampled: likelihood times prior of a fit, and the coordinates in which NUTS moves."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from toydepth.fit.checks import refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.starts import spread_starts

_USUAL_NOISE = 0.01  # of a loss, as a part of it: where the prior of sigma has its middle


class Shape(NamedTuple):
    """What a compiled program depends on besides the shapes of arrays."""

    kind: str
    degrees: float
    free_floor: bool
    num_groups: int


class Data(NamedTuple):
    """What the density is of: rows (n), the model (K terms, F exponents), where z is 0, and the prior."""

    log_x: Any  # (K, n)
    seen: Any  # (n,): ln L, or L
    weights: Any  # (n,)
    groups: Any  # (n,) integers
    mixing: Any  # (K, F)
    fixed: Any  # (K,)
    log_floor: Any  # (): of an L0 that is fixed
    centre: Any  # (p,)
    root: Any  # (p, p): root @ root.T is the covariance of theta
    log_sigma: Any  # ()
    sigma_step: Any  # (): about the standard error of ln sigma
    prior_mean: Any  # (p,)
    prior_log_sigma: Any  # ()
    prior_scale: Any  # ()
    group_scale: Any  # ()


def prepare(fit: LawFit, prior_scale: float) -> tuple[Shape, Data]:
    """Returns what the density of a fit is made of; raises InputError for a fit that has none."""
    estimate = fit.estimate
    model, objective, log_loss = estimate.problem.model, estimate.problem.objective, estimate.problem.log_loss
    if objective.kind == "huber":
        advice = "Huber's loss is no likelihood, and its intervals would be too narrow: fit with student."
        raise refuse("objective", "log, linear or student for a posterior", "huber", advice)
    count = 0 if estimate.groups is None else len(np.unique(estimate.groups))
    if count and objective.kind == "student":
        advice = "Fit with log or linear, or without groups."
        raise refuse("objective", "log or linear for a posterior with groups", "student", advice)
    if 0 < count < 3:
        raise refuse("groups", "3 or more for a posterior", count, "How they differ is not known from fewer.")
    floor = fit.law.irreducible_loss
    typical = 1.0 if objective.of_log else float(np.exp(np.median(log_loss)))
    noise = float(np.sqrt(np.average(estimate.residuals**2, weights=estimate.weights)))
    if noise < 1e-10 * typical:
        raise refuse("the table", "of losses with noise for a posterior", "none", "The fit's values are the answer.")
    if objective.kind == "student":
        noise = float(objective.scale(estimate.residuals, estimate.weights))
    data = Data(
        log_x=model.log_x,
        seen=log_loss if objective.of_log else np.exp(log_loss),
        weights=estimate.weights,
        groups=np.zeros(len(log_loss), int)
        if estimate.groups is None
        else np.unique(estimate.groups, return_inverse=True)[1],
        mixing=model.mixing,
        fixed=model.fixed,
        log_floor=np.log(floor) if floor else -np.inf,
        # What has vanished at the minimum would start many prior standard deviations away.
        centre=model.lift(estimate.theta),
        root=_square_root(estimate.ridge),
        log_sigma=np.log(noise),
        sigma_step=1 / np.sqrt(2 * max(estimate.degrees, 1)),
        # The first start is the plain guess.
        prior_mean=spread_starts(model, log_loss, 2, 0)[0],
        prior_log_sigma=np.log(_USUAL_NOISE * typical),
        prior_scale=prior_scale,
        group_scale=typical,
    )
    return Shape(objective.kind, float(objective.degrees), floor is None, count), data


def straight(theta: Any, data: Data) -> Any:
    """Returns coordinates w (p,) of theta in which what the rows determine is nearly linear.

    With b the logs of the terms at the middle of the table (ln L0 the last of them where it is free), alpha theirs:
    w = (b_k - b_last + ln sqrt(alpha_k^2 + 0.1^2), free exponents, ln sum_k exp b_k). The loss at the middle of the
    table, and its slopes, are known far better than what they consist of; in theta that is a thin, curved ridge, on
    which NUTS breaks down. The determinant is 1 or -1 everywhere, so densities are the same.
    """
    logs, free, alpha = _parts(theta, data)
    parts = logs[:-1] - logs[-1] + _log_slope(alpha[: len(logs) - 1])
    return jnp.concatenate([parts, free, jax.nn.logsumexp(logs)[None]])


def from_straight(w: Any, data: Data) -> Any:
    """Returns theta (p,): the inverse of `straight`."""
    terms, count = data.mixing.shape
    others = len(w) - count - 1
    free = w[others : others + count]
    parts = w[:others] - _log_slope((data.mixing @ free + data.fixed)[:others])
    parts = jnp.append(parts, 0.0)
    logs = w[-1] - jax.nn.logsumexp(parts) + parts
    return jnp.concatenate([logs[:terms], free, logs[terms:]])


def unpack(x: Any, data: Data) -> tuple[Any, Any, Any]:
    """Returns (theta, ln sigma, ln group_std) of what NUTS moves in, x (p + 1,), or (p + 2,) with groups."""
    size = len(data.centre)
    root = jax.jacobian(straight)(data.centre, data) @ data.root
    theta = from_straight(straight(data.centre, data) + root @ x[:size], data)
    return theta, data.log_sigma + data.sigma_step * x[size], data.log_sigma + x[-1]


def log_density(x: Any, data: Data, shape: Shape) -> Any:
    """Returns ln of likelihood times prior, up to a constant, at x (p + 1,), or (p + 2,) with groups."""
    theta, log_sigma, log_group_std = unpack(x, data)
    logs, _, alpha = _parts(theta, data)
    terms = len(alpha)
    log_floor = logs[-1] if shape.free_floor else data.log_floor
    log_terms = logs[:terms, None] - alpha[:, None] * data.log_x
    log_loss = jnp.logaddexp(jax.nn.logsumexp(log_terms, axis=0), log_floor)
    ratio = (data.seen - (jnp.exp(log_loss) if shape.kind == "linear" else log_loss)) / jnp.exp(log_sigma)
    if shape.kind == "student":
        cost = (shape.degrees + 1) / 2 * jnp.log1p(ratio**2 / shape.degrees)
    else:
        cost = ratio**2 / 2
    value = -jnp.sum(data.weights * (cost + log_sigma))
    value -= jnp.sum((theta - data.prior_mean) ** 2) / (2 * data.prior_scale**2)
    value -= (log_sigma - data.prior_log_sigma) ** 2 / (2 * data.prior_scale**2)
    if shape.num_groups:
        among = partial(jax.ops.segment_sum, segment_ids=data.groups, num_segments=shape.num_groups)
        spread = jnp.exp(2 * (log_group_std - log_sigma))
        shrink = 1 + spread * among(data.weights)
        value += jnp.sum(spread * among(data.weights * ratio) ** 2 / shrink - jnp.log(shrink)) / 2
        # In ln group_std: the density of group_std times group_std.
        value += log_group_std - jnp.exp(2 * log_group_std) / (2 * data.group_scale**2)
    return value


def _parts(theta: Any, data: Data) -> tuple[Any, Any, Any]:
    """Returns the logs of the terms, and ln L0 where it is free; the free exponents; the exponents of all terms."""
    terms, count = data.mixing.shape
    free = theta[terms : terms + count]
    return jnp.concatenate([theta[:terms], theta[terms + count :]]), free, data.mixing @ free + data.fixed


def _log_slope(alpha: Any) -> Any:
    return jnp.log(alpha**2 + 0.01) / 2


def _square_root(matrix: np.ndarray) -> np.ndarray:
    """R with R R^T a covariance; not Cholesky's, which rounding can break."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 1e-18 * values.max()))
