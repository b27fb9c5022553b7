"""Where fits begin: spread over what a law can be, by design rather than by chance."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from toydepth.fit.law.model import Model

_EXPONENTS = (0.05, 3.0)


def spread_starts(model: Model, log_loss: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Returns starts (count, p): a scrambled Sobol sequence over exponents and over how the loss splits into terms.

    Exponents lie in 0.05 ... 3, evenly in their logarithm. At the geometric mean of all variables the terms and L0
    add up to the typical loss; L0 is at most the lowest loss. The first start is the plain guess: exponents 0.5, equal
    parts.
    """
    free, terms = model.mixing.shape[1], model.num_terms
    with_floor = model.law.irreducible_loss is None
    dimensions = free + terms + with_floor
    sampler = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed))
    draws = sampler.random_base2(int(np.ceil(np.log2(max(count, 2)))))[:count]
    draws[0] = 0.5
    low, high = np.log(_EXPONENTS)
    exponents = np.exp(low + (high - low) * draws[:, :free])
    exponents[0] = 0.5
    typical, lowest = np.exp(np.median(log_loss)), np.exp(log_loss.min())
    floor = draws[:, -1] * lowest if with_floor else np.full(count, float(model.law.irreducible_loss or 0.0))
    # Parts of what is left: shares of exponential draws are even over all splits.
    parts = -np.log1p(-np.clip(draws[:, free : free + terms], 1e-3, 1 - 1e-3))
    parts /= parts.sum(axis=1, keepdims=True)
    left = np.maximum(typical - floor, 0.05 * typical)
    columns = [np.log(parts * left[:, None]), exponents]
    if with_floor:
        columns.append(np.log(np.maximum(floor, 1e-3 * lowest))[:, None])
    return np.concatenate(columns, axis=1)
