"""Rank correlations, with or without controls, of many resamples at once; blocks of steps that keep their order."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

# A rank whose variance is but this part explained by nothing else is taken to be all explained.
_NOTHING = 1e-9


def rank_correlation(x: np.ndarray, y: np.ndarray, controls: np.ndarray | None = None) -> np.ndarray:
    """Returns Spearman's rho along the last axis, or the partial one: that of what the controls leave.

    What they leave are residuals of ranks about a line in the ranks of the controls.

    Args:
        x, y: (..., steps).
        controls: (controls, ..., steps); None for none.

    Returns:
        (...); NaN where x, y, or what the controls leave of them, is constant.

    Example:
        >>> x = np.array([1.0, 2.0, 3.0, 4.0])
        >>> float(rank_correlation(x, -(x**3)))
        -1.0

    Source: Spearman 1904; partial rank correlation as the correlation of residuals of ranks, e.g. Kendall 1942.
    """
    first, second = _centred_ranks(x), _centred_ranks(y)
    if controls is not None and len(controls):
        basis = np.moveaxis(_centred_ranks(controls), 0, -1)
        first, second = _left_over(first, basis), _left_over(second, basis)
    weight = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip((first * second).sum(-1) / np.where(weight > 0, weight, np.nan), -1, 1)


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, ties averaged, less their mean."""
    ranks = rankdata(values, axis=-1)
    return ranks - ranks.mean(axis=-1, keepdims=True)


def _left_over(ranks: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Residuals of ranks (..., steps) on basis (..., steps, controls); exactly 0 where nothing is left."""
    # Collinear and constant controls add nothing, which a pseudo-inverse sees to.
    gram = np.linalg.pinv(np.swapaxes(basis, -1, -2) @ basis, hermitian=True, rcond=1e-10)
    weights = gram @ np.swapaxes(basis, -1, -2) @ ranks[..., None]
    rest = ranks - (basis @ weights)[..., 0]
    gone = (rest**2).sum(-1) <= _NOTHING * (ranks**2).sum(-1)
    return np.where(gone[..., None], 0.0, rest)


def block_length(x: np.ndarray, y: np.ndarray) -> int:
    """Returns a length of blocks for the correlation of two series, 1 ... steps / 4.

    steps^(1/3), or more where both series are slow: (sqrt(6) rho / (1 - rho^2))^(2/3) steps^(1/3), the best for the
    variance of a mean of an AR(1) series; rho = product of both series' rank autocorrelations at one step, as the
    products of two such series have it.

    Source: Carlstein, Annals of Statistics 1986, for means; its use here is ours.
    """
    steps = len(x)
    rho = 1.0
    for series in (x, y):
        ranks = _centred_ranks(series)
        weight = float(ranks @ ranks)
        rho *= max(0.0, float(ranks[1:] @ ranks[:-1]) / weight) if weight > 0 else 0.0
    rho = min(rho, 0.99)
    slow = (np.sqrt(6) * rho / (1 - rho**2)) ** (2 / 3)
    return int(np.clip(np.ceil(max(1.0, slow) * steps ** (1 / 3)), 1, max(1, steps // 4)))


def draw_blocks(steps: int, length: int, num_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Returns places (draws, steps): overlapping blocks drawn with replacement, laid end to end, and cut to length.

    Source: Kunsch, Annals of Statistics 1989.
    """
    starts = generator.integers(0, steps - length + 1, size=(num_draws, -(-steps // length)))
    return (starts[:, :, None] + np.arange(length)).reshape(num_draws, -1)[:, :steps]
