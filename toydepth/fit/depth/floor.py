"""Power law plus a floor, L = c x^-alpha + L0, L0 >= 0: least squares in ln L, many problems at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toydepth.fit.depth.loglog import fit_lines

# Starts for L0, as fractions of the lowest loss; some above 1: with noise the best floor can lie above a loss.
_STARTS = (0.0, 0.3, 0.6, 0.85, 0.97, 1.0, 1.05)
_MAX_ITERATIONS = 400


@dataclass(frozen=True, eq=False)
class FloorFits:
    """Minima for each weighting: alpha, floor L0, sum_squares (weightings,), log_c (weightings, replicates).

    information (weightings, 2, 2): curvature of half the sum of squares in (alpha, L0 / scale), the log_c eliminated;
    its inverse times the residual variance is the covariance.
    """

    alpha: np.ndarray
    floor: np.ndarray
    log_c: np.ndarray
    sum_squares: np.ndarray
    information: np.ndarray


def fit_floor(log_x: np.ndarray, log_losses: np.ndarray, weights: np.ndarray) -> FloorFits:
    """Minimises sum_r w_r sum_d (ln L[r, d] - ln(c_r x_d^-alpha + L0))^2 over alpha, L0 >= 0 and every c_r.

    Levenberg-Marquardt from several floors for every weighting at once; each ln c_r is eliminated (its block of the
    normal equations is a number), so that a step solves a 2 x 2 system. ln L and ln x are centred first: the units
    of the loss and of the depth change c and L0 by their factor and nothing else.

    Args: log_x (depths,); log_losses (replicates, depths), NaN where there is none; weights (weightings, replicates),
        0 or more: ones for the fit itself, counts for a bootstrap draw, one 1 for a replicate alone.

    >>> x = np.array([3.0, 4.0, 6.0, 8.0, 12.0, 16.0])
    >>> fits = fit_floor(np.log(x), np.log(2 * x**-1.5 + 0.1)[None], np.ones((1, 1)))
    >>> round(float(fits.alpha[0]), 6), round(float(fits.floor[0]), 6)
    (1.5, 0.1)
    """
    mask = ~np.isnan(log_losses)
    y_mean, x_mean = float(log_losses[mask].mean()), float(log_x.mean())
    y, x = np.where(mask, log_losses - y_mean, 0.0), log_x - x_mean
    # A bank of draws starts from fewer floors: the full fit's many starts show the basins, draws sit near them.
    starts = _STARTS if len(weights) <= 200 else _STARTS[::3]
    tasks = [_start(x, y, mask, fraction) for fraction in starts]
    alpha = np.repeat([task[0] for task in tasks], len(weights))
    floor = np.repeat([task[1] for task in tasks], len(weights))
    log_c = np.repeat([task[2] for task in tasks], len(weights), axis=0)
    tiled = np.tile(weights.astype(float), (len(starts), 1))
    alpha, floor, log_c, cost = _minimise(x, y, mask, tiled, alpha, floor, log_c)
    best = cost.reshape(len(starts), -1).argmin(axis=0) * len(weights) + np.arange(len(weights))
    alpha, floor, log_c, cost = alpha[best], floor[best], log_c[best], cost[best]
    information = _normal(x, y, mask, weights.astype(float), alpha, floor, log_c, 0.0)[0]
    return FloorFits(alpha, floor * np.exp(y_mean), log_c + alpha[:, None] * x_mean + y_mean, cost, information)


def _start(x: np.ndarray, y: np.ndarray, mask: np.ndarray, fraction: float) -> tuple[float, float, np.ndarray]:
    losses = np.exp(y)
    floor = fraction * float(losses[mask].min())
    above = np.where(mask, np.log(np.maximum(losses - floor, 0.02 * losses)), np.nan)
    lines = fit_lines(x, above)
    return -lines.slope, floor, lines.intercept


def _cost(x, y, mask, weights, alpha, floor, log_c):
    power = np.exp(np.clip(log_c[:, :, None] - alpha[:, None, None] * x, -600, 600))
    residual = (y - np.log(power + floor[:, None, None])) * mask
    return (weights * (residual**2).sum(axis=2)).sum(axis=1)


def _normal(x, y, mask, weights, alpha, floor, log_c, damping):
    """Normal equations with the log_c eliminated: matrix (tasks, 2, 2), right side, and what restores log_c."""
    power = np.exp(np.clip(log_c[:, :, None] - alpha[:, None, None] * x, -600, 600))
    model = power + floor[:, None, None]
    weight = weights[:, :, None] * mask
    residual = y - np.log(model)
    by_c = power / model
    columns = (-x * by_c, 1 / model)
    grow = 1 + np.asarray(damping)
    c_c = (weight * by_c**2).sum(axis=2)
    # A replicate that was not drawn has no equation for its c: any positive number leaves it where it is.
    c_c = np.where(c_c > 0, c_c * grow[..., None], 1.0)
    c_r = (weight * by_c * residual).sum(axis=2)
    c_k = [(weight * by_c * column).sum(axis=2) for column in columns]
    matrix, right = np.empty((len(alpha), 2, 2)), np.empty((len(alpha), 2))
    for i in range(2):
        right[:, i] = (weight * columns[i] * residual).sum(axis=(1, 2)) - (c_k[i] * c_r / c_c).sum(axis=1)
        for j in range(2):
            direct = (weight * columns[i] * columns[j]).sum(axis=(1, 2)) * (grow if i == j else 1.0)
            matrix[:, i, j] = direct - (c_k[i] * c_k[j] / c_c).sum(axis=1)
    return matrix, right, (c_r, c_k, c_c)


def _minimise(x, y, mask, weights, alpha, floor, log_c):
    alpha, floor, log_c = alpha.astype(float), floor.astype(float), log_c.astype(float)
    cost = _cost(x, y, mask, weights, alpha, floor, log_c)
    damping = np.full(len(alpha), 1e-3)
    live, quiet = np.arange(len(alpha)), np.zeros(len(alpha), dtype=int)
    for _ in range(_MAX_ITERATIONS):
        a, s, k, w = alpha[live], floor[live], log_c[live], weights[live]
        matrix, right, (c_r, c_k, c_c) = _normal(x, y, mask, w, a, s, k, damping[live])
        tiny = 1e-300
        det = matrix[:, 0, 0] * matrix[:, 1, 1] - matrix[:, 0, 1] ** 2
        ds = (matrix[:, 0, 0] * right[:, 1] - matrix[:, 0, 1] * right[:, 0]) / np.maximum(det, tiny)
        # A floor below zero is not allowed: stop at zero, and let alpha and c answer to that shorter step.
        ds = np.clip(np.where(det > tiny, ds, 0.0), -s, 1e3)
        da = np.clip((right[:, 0] - matrix[:, 0, 1] * ds) / np.maximum(matrix[:, 0, 0], tiny), -5, 5)
        dk = (c_r - c_k[0] * da[:, None] - c_k[1] * ds[:, None]) / c_c
        dk = np.where(w > 0, np.clip(dk, -20, 20), 0.0)
        new = _cost(x, y, mask, w, a + da, s + ds, k + dk)
        better = new <= cost[live]
        moved = np.abs(da) + np.abs(ds) / np.maximum(s, 1e-12) > 1e-10
        took = live[better]
        gain = cost[took] - new[better] > 1e-15 * cost[took]
        quiet[took] = np.where(gain & moved[better], 0, quiet[took] + 1)
        alpha[took], floor[took], log_c[took], cost[took] = (
            (a + da)[better],
            (s + ds)[better],
            (k + dk)[better],
            new[better],
        )
        damping[live] = np.where(better, np.maximum(damping[live] / 5, 1e-12), damping[live] * 4)
        live = live[(quiet[live] < 3) & (damping[live] < 1e12)]
        if not live.size:
            break
    return alpha, floor, log_c, cost
