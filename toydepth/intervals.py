"""Student intervals: of any estimate, of a mean of replicates, of a sum of group means with errors of their own."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtr, stdtrit

Interval = tuple[float, float]


def t_interval(centre: float, error: float | None, degrees: float, confidence: float) -> Interval | None:
    """Returns centre -+ t * error, t the Student quantile; None without a finite error or a degree of freedom.

    >>> low, high = t_interval(1.0, 0.1, 2, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.57, 1.43)
    """
    if error is None or not degrees > 0 or not math.isfinite(error):
        return None
    reach = float(stdtrit(degrees, 0.5 + confidence / 2)) * error
    return centre - reach, centre + reach


def mean_interval(values: np.ndarray, confidence: float) -> Interval | None:
    """Returns the t interval of the mean of independent values (replicates,); None for fewer than two.

    >>> mean_interval(np.array([1.0, 1.0, 1.0]), 0.95)
    (1.0, 1.0)
    """
    if len(values) < 2:
        return None
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return t_interval(float(values.mean()), error, len(values) - 1, confidence)


def t_p_value(estimate: float, error: float, degrees: float) -> float | None:
    """Returns the two-sided p of 0; None without an error above 0 or a degree of freedom.

    >>> round(t_p_value(4.303, 1.0, 2), 3)
    0.05
    """
    if not (degrees > 0 and error > 0 and math.isfinite(error)):
        return None
    return 2 * float(stdtr(degrees, -abs(estimate) / error))


def contrast_error(weights: np.ndarray, variances: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Returns the standard error of sum_k weights_k mean_k, and its degrees of freedom; NaN for a group of one value.

    Groups are independent and may differ in variance: error^2 = sum_k v_k, v_k = weights_k^2 variances_k / counts_k;
    degrees = (sum v_k)^2 / sum(v_k^2 / (counts_k - 1)).

    Args:
        weights, variances, counts: (groups,); variances with n - 1.

    Source: Welch, Biometrika 1947; Satterthwaite, Biometrics Bulletin 1946.
    """
    if counts.min() < 2:
        return math.nan, math.nan
    parts = weights**2 * variances / counts
    if not parts.sum() > 0:
        return math.nan, math.nan
    return math.sqrt(parts.sum()), float(parts.sum() ** 2 / (parts**2 / (counts - 1)).sum())
