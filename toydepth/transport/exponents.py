"""Finite-size exponents at one step of a training: how size and duration of cascades grow with the number of nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from toydepth.errors import InputError
from toydepth.intervals import Interval, contrast_error, t_interval, t_p_value
from toydepth.transport.checks import check_confidence, check_word

Replicates = Literal["shared", "independent"]
REPLICATES = ("shared", "independent")
# Below this p of the quadratic term, one slope is not enough.
CURVED_BELOW = 0.05


@dataclass(frozen=True)
class Slope:
    """A line through the means of one channel over ln N.

    Attributes:
        slope, standard_error, interval, degrees: degrees of freedom of the error; error and interval are None where
            the data have none to give.
        level, level_interval: height of the line at the mean of ln N over sizes, that is the mean of their means.
        r_squared: of the means of each size; None where these are all equal. The stepwise compressibility.
        curvature: second derivative, d^2 y / d(ln N)^2.
        curvature_p: of no curvature; None where it cannot be tested (`shared` needs four sizes).
    """

    slope: float
    standard_error: float | None
    interval: Interval | None
    degrees: float
    r_squared: float | None
    curvature: float
    curvature_p: float | None
    level: float
    level_interval: Interval | None

    @property
    def is_curved(self) -> bool | None:
        """One slope is not enough (p < 0.05); None: cannot be told."""
        return None if self.curvature_p is None else self.curvature_p < CURVED_BELOW


@dataclass(frozen=True)
class Exponents:
    """D of ln s, z of ln n, beta = D - z of ln(s / n), delta = beta - 1 of ln v_rel, each with an error of its own.

    Attributes:
        num_sizes, num_cascades: distinct N; cascades in the fit.
        num_capped, capped_sizes: cascades that reached the cap, whose s and n are lower bounds; their N.
        closure_error: largest of |beta - (D - z)| and |delta - (beta - 1)|; rounding alone.
        replicates: what their error was taken from.
    """

    D: Slope
    z: Slope
    beta: Slope
    delta: Slope
    num_sizes: int
    num_cascades: int
    num_capped: int
    capped_sizes: tuple[int, ...]
    closure_error: float
    replicates: Replicates


def fit_exponents(
    num_nodes: np.ndarray,
    size: np.ndarray,
    duration: np.ndarray,
    capped: np.ndarray | None = None,
    *,
    replicates: Replicates = "shared",
    confidence: float = 0.95,
) -> Exponents:
    """Fits least-squares lines of ln s, ln n, ln(s / n), ln v_rel on ln N, v_rel = s / (N n).

    Each channel is averaged over the replicates (graph seeds) of a size first, and every size weighs the same. The
    error of a slope then has two possible sources, and the choice says what replicates share:

    - `shared`: replicates of one size are one field on several graphs, so whatever is peculiar to that field is in all
      of them and no number of graphs averages it out. The error is the scatter of the means about the line, with
      num_sizes - 2 degrees of freedom. It holds in the other case too, and is the default.
    - `independent`: replicates of one size share nothing but the size, as null fields drawn anew for each graph. The
      error is that of a sum of group means, each with its own variance (Welch), for s and n scatter more at small N.
      Misfit is not in it: see is_curved.

    Args:
        num_nodes, size, duration: (cascades,), one row a cascade, all above 0.
        capped: (cascades,) of bool; None for none.
        replicates: "shared" or "independent".
        confidence: of the intervals.

    Raises:
        InputError: for fewer than 3 distinct sizes; for a cascade without activity; for unequal lengths; for
            `independent` with a size of one cascade.

    Example:
        >>> nodes = np.array([100, 400, 1600, 6400])
        >>> fit = fit_exponents(nodes, 0.2 * nodes, 2 * nodes**0.25)
        >>> round(fit.D.slope, 6), round(fit.z.slope, 6), round(fit.delta.slope, 6)
        (1.0, 0.25, -0.25)

    Source: arXiv 2605.02968; errors, replicates and the test for curvature are ours.
    """
    check_confidence(confidence)
    check_word("replicates", replicates, REPLICATES)
    nodes, s, n = (np.asarray(column, float) for column in (num_nodes, size, duration))
    hit = np.zeros(len(nodes), bool) if capped is None else np.asarray(capped, bool)
    if not nodes.shape == s.shape == n.shape == hit.shape or nodes.ndim != 1:
        got = f"{nodes.shape}, {s.shape}, {n.shape}, {hit.shape}"
        raise InputError(f"num_nodes, size, duration and capped must be of one length, got {got}. A row is a cascade.")
    for name, column in (("num_nodes", nodes), ("size", s), ("duration", n)):
        if not (np.isfinite(column) & (column > 0)).all():
            got = column[~(np.isfinite(column) & (column > 0))][0]
            raise InputError(f"{name} must be above 0, got {got:g}. Leave out fields without a cascade.")
    sizes, group, counts = np.unique(nodes, return_inverse=True, return_counts=True)
    if len(sizes) < 3:
        raise InputError(f"num_nodes must have 3 distinct sizes or more, got {len(sizes)}. Measure more models.")
    if replicates == "independent" and counts.min() < 2:
        got = f"one at N = {sizes[counts < 2][0]:g}"
        raise InputError(f"replicates must be two or more of each size, got {got}. Add graph seeds, or say shared.")
    channels = {"D": np.log(s), "z": np.log(n), "beta": np.log(s / n), "delta": np.log(s / (nodes * n))}
    lines = {
        name: _line(np.log(sizes), *_groups(y, group, counts), counts, replicates, confidence)
        for name, y in channels.items()
    }
    beta, delta = lines["beta"].slope, lines["delta"].slope
    closure = max(abs(beta - (lines["D"].slope - lines["z"].slope)), abs(delta - (beta - 1)))
    return Exponents(
        **lines,
        num_sizes=len(sizes),
        num_cascades=len(nodes),
        num_capped=int(hit.sum()),
        capped_sizes=tuple(int(size) for size in np.unique(nodes[hit])),
        closure_error=closure,
        replicates=replicates,
    )


def _groups(y: np.ndarray, group: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances (n - 1) of each size."""
    means = np.bincount(group, y) / counts
    squares = np.bincount(group, (y - means[group]) ** 2)
    return means, squares / np.maximum(counts - 1, 1)


def _line(
    x: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
    counts: np.ndarray,
    replicates: Replicates,
    confidence: float,
) -> Slope:
    """Slope and curvature are weighted sums of the means; so both errors come about in the same way."""
    centred = x - x.mean()
    spread = float(centred @ centred)
    line = centred / spread
    design = np.stack([np.ones_like(x), centred, centred**2], axis=1)
    parabola = np.linalg.pinv(design)
    slope, curvature = float(line @ means), float(parabola[2] @ means)
    residuals = means - means.mean() - slope * centred
    if replicates == "independent":
        error, degrees = contrast_error(line, variances, counts)
        height, height_degrees = contrast_error(np.full_like(x, 1 / len(x)), variances, counts)
        bend, bend_degrees = contrast_error(parabola[2], variances, counts)
    else:
        degrees, bend_degrees = len(x) - 2, len(x) - 3
        error = math.sqrt(float(residuals @ residuals) / degrees / spread)
        height, height_degrees = math.sqrt(float(residuals @ residuals) / degrees / len(x)), degrees
        rest = means - design @ (parabola @ means)
        bend = math.sqrt(float(rest @ rest) * float(parabola[2] @ parabola[2]) / max(bend_degrees, 1))
    total = float(np.sum((means - means.mean()) ** 2))
    return Slope(
        slope=slope,
        standard_error=error if math.isfinite(error) else None,
        interval=t_interval(slope, error, degrees, confidence),
        degrees=degrees,
        r_squared=1 - float(residuals @ residuals) / total if total > 0 else None,
        curvature=2 * curvature,
        curvature_p=t_p_value(curvature, bend, bend_degrees),
        level=float(means.mean()),
        level_interval=t_interval(float(means.mean()), height, height_degrees, confidence),
    )
