"""The bootstrap of a law: rows, or whole clusters of them, drawn with replacement, and every resample fitted."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.solve import solve
from toydepth.intervals import Interval


def bootstrap(estimate: Estimate, num_draws: int, seed: int) -> np.ndarray:
    """Returns the natural parameters of resamples, (draws, p).

    Each is fitted from the estimate. A resample is a multiplicity of each row, or of each cluster where there are
    groups; the rows' own weights stay.
    """
    generator = np.random.default_rng(seed)
    groups = estimate.groups
    count = estimate.num_rows if groups is None else int(groups.max()) + 1
    matrix, shift = estimate.problem.model.to_natural()
    # In parts, so that a large table needs no array of draws x rows.
    at_once = max(2**22 // estimate.num_rows, 1)
    found = []
    for first in range(0, num_draws, at_once):
        draws = min(at_once, num_draws - first)
        times = generator.multinomial(count, np.full(count, 1 / count), size=draws).astype(float)
        weights = (times if groups is None else times[:, groups]) * estimate.weights
        starts = np.broadcast_to(estimate.problem.model.lift(estimate.theta), (draws, estimate.theta.size))
        found.append(solve(estimate.problem, starts, weights, max_steps=60, tolerance=1e-5).theta)
    return np.concatenate(found) @ matrix.T + shift


def percentile_intervals(estimate: Estimate, draws: np.ndarray, confidence: float) -> list[Interval]:
    """Returns (low, high) of each natural parameter: percentiles of the resamples (draws, p), widened for small tables.

    Residuals of a fit are smaller than errors, by sqrt((n - p) / n) on average, and so is the spread of resamples; and
    n is finite: distances from the estimate are multiplied by sqrt(n / (n - p)) t / z, with t of n - p degrees of
    freedom and n the number of groups where there are. At 200 rows and 7 parameters that is 1.03.

    Source: ours; the factor is that of a linear model. The coverage it gives is tested.
    """
    free, tail = estimate.interval_degrees, (1 + confidence) / 2
    factor = np.sqrt(estimate.num_independent / free) * stdtrit(free, tail) / ndtri(tail)
    ends = np.quantile(draws, [1 - tail, tail], axis=0)
    # A percentile on the wrong side of the estimate is not moved: widening would make it worse.
    moved = estimate.natural + (ends - estimate.natural) * factor
    low, high = np.minimum(moved[0], ends[0]), np.maximum(moved[1], ends[1])
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
