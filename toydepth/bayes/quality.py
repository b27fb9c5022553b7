"""What draws are worth: r_hat, effective sizes, how far the prior moves an interval, and the rules that judge them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

_LARGEST_R_HAT, _LEAST_ESS = 1.01, 400  # arXiv 1903.08008
_MOST_OF_PRIOR = 0.5  # posterior over prior standard deviation, above which the rows have said little
_MOST_MOVED = 0.1  # of an interval's width: what half the prior's scale may move its ends


def measure_quality(chains: np.ndarray) -> tuple[float, float]:
    """Returns (r_hat, effective size) of draws (chains, draws) of one number.

    r_hat of normal scores of the ranks, the worse of location and spread; the size of the bulk or of the two tails of
    5 %, whichever is smallest.

    Source: arXiv 1903.08008.
    """
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin  # pyright: ignore[reportMissingImports]

    half = chains.shape[1] // 2
    halves = np.concatenate([chains[:, :half], chains[:, -half:]])
    ranks = _normal_scores(chains)
    spread = _normal_scores(np.abs(chains - np.median(chains)))
    tails = [(halves <= end).astype(float) for end in np.quantile(chains, [0.05, 0.95])]
    with np.errstate(invalid="ignore", divide="ignore"):  # chains that stand still give NaN, which is judged bad
        r_hats = [float(split_gelman_rubin(part)) for part in (ranks, spread)]
        sizes = [float(effective_sample_size(part)) for part in (_normal_scores(halves), *tails)]
    return float(np.max(r_hats)), float(np.min(sizes))


def _normal_scores(draws: np.ndarray) -> np.ndarray:
    """Returns draws with each replaced by the normal quantile of its rank among all."""
    return ndtri((rankdata(draws).reshape(draws.shape) - 0.375) / (draws.size + 0.25))


def moved_ends(draws: np.ndarray, log_weights: np.ndarray, confidence: float) -> np.ndarray:
    """Returns how far weights move the ends of equal-tailed intervals, as a part of their width (columns,).

    Example:
        >>> draws = np.linspace(0, 1, 1001)[:, None]
        >>> moved_ends(draws, np.zeros(1001), 0.95).round(2), moved_ends(draws, -100 * draws[:, 0], 0.95).round(2)
        (array([0.]), array([0.99]))
    """
    weights = np.exp(log_weights - log_weights.max())
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    moved = np.empty(draws.shape[1])
    for i, column in enumerate(draws.T):
        order = np.argsort(column)
        ranked, heavy = column[order], weights[order]
        # The same rule with and without weights, so that weights that say nothing move nothing.
        ends = np.interp(tails, (np.arange(len(column)) + 0.5) / len(column), ranked)
        other = np.interp(tails, (np.cumsum(heavy) - heavy / 2) / heavy.sum(), ranked)
        moved[i] = np.abs(other - ends).max() / max(ends[1] - ends[0], 1e-300)
    return moved


def judge_draws(r_hat: Mapping[str, float], sizes: Mapping[str, float], divergences: int) -> str | None:
    """Returns None, or one line that says what is wrong with the draws.

    Example:
        >>> judge_draws({"c_m": 1.0}, {"c_m": 900.0}, 0)
        >>> judge_draws({"c_m": 1.03}, {"c_m": 90.0}, 2)
        'do not use: r_hat of c_m is 1.030 (1.01 at most), effective size of c_m is 90 (400 or more), 2 divergences'
    """
    # NaN counts as the worst.
    worst = max(r_hat, key=lambda name: np.nan_to_num(r_hat[name], nan=np.inf))
    least = min(sizes, key=lambda name: np.nan_to_num(sizes[name], nan=-np.inf))
    found = []
    if not r_hat[worst] <= _LARGEST_R_HAT:
        found.append(f"r_hat of {worst} is {r_hat[worst]:.3f} ({_LARGEST_R_HAT} at most)")
    if not sizes[least] >= _LEAST_ESS:
        found.append(f"effective size of {least} is {sizes[least]:.0f} ({_LEAST_ESS} or more)")
    if divergences:
        found.append(f"{divergences} divergence{'s' * (divergences > 1)}")
    return f"do not use: {', '.join(found)}" if found else None


def judge_prior(ratio: float, moved: float) -> str | None:
    """Returns None, or one line that says how the prior decides a parameter.

    Args:
        ratio: posterior over prior standard deviation.
        moved: how far half the prior's scale moves an end of the interval, as a part of its width.

    Example:
        >>> judge_prior(0.1, 0.02)
        >>> judge_prior(0.9, 0.02)
        'the prior decides: the posterior is 0.90 of its width'
        >>> judge_prior(0.1, 0.25)
        'the prior decides: half its scale moves an end by 25 % of the interval'
    """
    if not ratio <= _MOST_OF_PRIOR:
        return f"the prior decides: the posterior is {ratio:.2f} of its width"
    if not moved <= _MOST_MOVED:
        return f"the prior decides: half its scale moves an end by {100 * moved:.0f} % of the interval"
    return None
