"""The bootstrap of a law: rows, or whole clusters of them, drawn with replacement, and every resample fitted."""

from __future__ import annotations

import numpy as np

from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.solve import solve


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
