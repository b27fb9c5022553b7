"""Straight lines in ln L against ln depth: one slope for all replicates, an intercept for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr


@dataclass(frozen=True, eq=False)
class Lines:
    """Least squares of y[r, d] = intercept[r] + slope * x[d] over the entries that are not NaN.

    sxx, sxy (replicates,): sums of squares about each replicate's own means, so that any weighting of replicates has
    slope (w @ sxy) / (w @ sxx). sum_squares: of the residuals. degrees: points - replicates - 1.
    """

    slope: float
    intercept: np.ndarray
    sxx: np.ndarray
    sxy: np.ndarray
    sum_squares: float
    degrees: int
    slope_error: float | None


def fit_lines(x: np.ndarray, y: np.ndarray) -> Lines:
    """Fits lines of a common slope: slope = sum_r sxy_r / sum_r sxx_r.

    Args: x (points,); y (replicates, points), NaN where there is none, at least 2 points a replicate.
    Returns: slope, intercepts (replicates,), standard error of the slope (None with no residual degree of freedom).

    >>> lines = fit_lines(np.array([0.0, 1.0, 2.0]), np.array([[1.0, 3.0, 5.0], [0.0, 2.0, 4.0]]))
    >>> lines.slope, lines.intercept.tolist(), lines.degrees
    (2.0, [1.0, 0.0], 3)
    """
    mask = ~np.isnan(y)
    values = np.where(mask, y, 0.0)
    counts = mask.sum(axis=1)
    x_mean, y_mean = mask @ x / counts, values.sum(axis=1) / counts
    dx, dy = (x - x_mean[:, None]) * mask, (values - y_mean[:, None]) * mask
    sxx, sxy = (dx**2).sum(axis=1), (dx * dy).sum(axis=1)
    slope = float(sxy.sum() / sxx.sum())
    sum_squares = float(((dy - slope * dx) ** 2).sum())
    degrees = int(counts.sum()) - len(y) - 1
    error = float(np.sqrt(sum_squares / degrees / sxx.sum())) if degrees > 0 else None
    return Lines(slope, y_mean - slope * x_mean, sxx, sxy, sum_squares, degrees, error)


def find_curvature(x: np.ndarray, y: np.ndarray, confidence: float) -> tuple[float, float] | None:
    """Tests a common quadratic term in x; returns the local slope at both ends where it is significant.

    The term is x^2 made orthogonal to intercepts and slope (Frisch, Waugh and Lovell), so one t test on
    points - replicates - 2 degrees of freedom decides. A bend of less than 0.01 in slope is rounding, never reported.

    Args: x (points,); y (replicates, points), NaN where there is none; confidence of the test.
    Returns: (slope at lowest x, slope at highest x), or None.

    >>> x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> find_curvature(x, (x**2 + [0.01, -0.01, 0.0, 0.01, -0.01])[None], 0.95) is not None
    True
    >>> find_curvature(x, (2 * x + [0.01, -0.01, 0.0, 0.01, -0.01])[None], 0.95) is None
    True
    """
    lines = fit_lines(x, y)
    if lines.degrees < 2:
        return None
    centre = float(x.mean())
    mask = ~np.isnan(y)
    square = np.where(mask, (x - centre) ** 2, np.nan)
    residual = np.where(mask, y - lines.intercept[:, None] - lines.slope * x, 0.0)
    inner = fit_lines(x, square)
    rest = np.where(mask, square - inner.intercept[:, None] - inner.slope * x, 0.0)
    bend = float((rest * residual).sum() / (rest**2).sum())
    degrees = lines.degrees - 1
    left = max(lines.sum_squares - bend**2 * float((rest**2).sum()), 0.0)
    error = np.sqrt(left / degrees / float((rest**2).sum()))
    linear = lines.slope - bend * inner.slope
    ends = (linear + 2 * bend * (x.min() - centre), linear + 2 * bend * (x.max() - centre))
    significant = error == 0 or 2 * stdtr(degrees, -abs(bend) / error) < 1 - confidence
    return (float(ends[0]), float(ends[1])) if significant and abs(ends[1] - ends[0]) >= 0.01 else None
