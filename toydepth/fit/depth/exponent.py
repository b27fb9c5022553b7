"""The depth exponent: how fast the loss falls with depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from toydepth.fit.bootstrap import bootstrap_error, draw_counts
from toydepth.fit.checks import check_fit_options, whole
from toydepth.fit.depth.depth_fit import DepthFit
from toydepth.fit.depth.floor import fit_floor
from toydepth.fit.depth.loglog import Lines, find_curvature, fit_lines
from toydepth.fit.depth.points import Points, choose_points, count_reasons
from toydepth.intervals import t_interval


@dataclass(frozen=True, eq=False)
class _Estimate:
    """What the two models, with and without a floor, have in common."""

    alpha: float
    by_replicate: np.ndarray
    log_c: float
    floor: float | None
    sum_squares: float
    degrees: int
    error: float | None
    bootstrap: float | None
    caveats: tuple[str, ...] = ()


def fit_depth_exponent(
    losses: ArrayLike,
    depths: ArrayLike,
    *,
    floor: bool = False,
    offset: float = 0.0,
    window: tuple[float, float] | None = None,
    noise_floor: ArrayLike | None = None,
    noise_factor: float = 10.0,
    confidence: float = 0.95,
    num_bootstrap: int = 2000,
    seed: int = 0,
) -> DepthFit:
    """Fits L = c (ell - offset)^-alpha, with `floor` + L0, by least squares in ln L.

    With replicates r, ln L[r, ell] = ln c_r - alpha ln(ell - offset): one alpha (and L0), a c for each replicate.
    Teachers differ several-fold in c and little in alpha, so alpha is a slope within replicates.

    Two intervals are given. `covariance`: alpha +- t * standard error, t on the residual degrees of freedom; it knows
    only the scatter about the fit. `replicates`, the headline where there are two or more: replicates are drawn with
    replacement and refitted, and alpha +- t_(n-1) * sqrt(n / (n-1)) * (standard deviation of the draws). Percentiles of
    those draws would be too narrow at the usual n = 3 (about 75 % instead of 95 %): a draw's variance is (n-1)/n of the
    true one, and a standard error from n values calls for the Student t with n - 1 degrees of freedom (4.3 at n = 3,
    not 1.96).

    Args:
        losses: shape (depths,) or (replicates, depths), nats or mean squares; NaN where a point is missing or diverged.
        depths: distinct, > 0, any order. Depth 0 is left out: it has no power law.
        floor: fit an irreducible loss L0 >= 0, shared by the replicates.
        offset: depths at which the law would diverge; (ell - offset) is fitted.
        window: (lowest, highest) depth, both included.
        noise_floor: mean |noise| of the loss; one number, one a depth, or one a loss; NaN where unknown.
        noise_factor: losses up to this many noise floors are left out.
        confidence: of all intervals, in (0, 1).
        num_bootstrap: draws of replicates. seed: of these draws.

    Returns:
        DepthFit: alpha with its intervals, c, local slopes, what was left out, caveats.

    Raises:
        InputError: for unusable input, or fewer than 3 (with a floor 4) depths after exclusions.

    Example:
        >>> fit = fit_depth_exponent([[4.0, 2.0, 1.0], [8.0, 4.0, 2.0]], [6, 12, 24])
        >>> round(fit.alpha, 6), fit.interval_source, fit.num_replicates
        (1.0, 'replicates', 2)
        >>> round(float(fit.predict(48)), 6)
        0.707107

    Source: docs/notation.md, after Liu et al., arXiv 2602.05970, who fit by eye or by least squares without
    intervals; the intervals, the window and the noise floor are ours.
    """
    check_fit_options(
        offset=offset,
        window=window,
        noise_factor=noise_factor,
        confidence=confidence,
        num_bootstrap=num_bootstrap,
        seed=seed,
    )
    points = choose_points(
        losses, depths, floor=floor, offset=offset, window=window, noise_floor=noise_floor, noise_factor=noise_factor
    )
    log_x = np.log(points.depths - offset)
    lines = fit_lines(log_x, points.log_losses)
    draws = draw_counts(len(points.replicates), num_bootstrap, seed) if len(points.replicates) > 1 else None
    found = _with_floor(log_x, points, lines, draws) if floor else _without_floor(lines, draws)

    count = len(points.replicates)
    intervals = {
        "covariance": t_interval(found.alpha, found.error, found.degrees, confidence),
        "replicates": t_interval(found.alpha, found.bootstrap, count - 1, confidence),
    }
    source = "replicates" if count > 1 else "covariance"
    low, high = intervals[source] or (None, None)
    names = tuple(whole(d) for d in points.depths)
    return DepthFit(
        alpha=found.alpha,
        low=low,
        high=high,
        interval_source=source,
        intervals=intervals,
        standard_errors={"covariance": found.error, "replicates": found.bootstrap},
        c=float(np.exp(found.log_c)),
        irreducible_loss=found.floor,
        offset=float(offset),
        window=(names[0], names[-1]),
        confidence=float(confidence),
        depths=names,
        num_replicates=count,
        replicates=points.replicates,
        alpha_by_replicate=found.by_replicate,
        losses=np.exp(points.log_losses),
        residual_std=float(np.sqrt(found.sum_squares / found.degrees)) if found.degrees > 0 else None,
        left_out=points.left_out,
        caveats=found.caveats + _caveats(log_x, points, floor, confidence),
    )


def _without_floor(lines: Lines, draws: np.ndarray | None) -> _Estimate:
    # Every weighting of the replicates has its slope in closed form: no refit in the bootstrap.
    error = None if draws is None else bootstrap_error(-(draws @ lines.sxy) / (draws @ lines.sxx), len(lines.sxx))
    return _Estimate(
        alpha=-lines.slope,
        by_replicate=-lines.sxy / lines.sxx,
        log_c=float(lines.intercept.mean()),
        floor=None,
        sum_squares=lines.sum_squares,
        degrees=lines.degrees,
        error=lines.slope_error,
        bootstrap=error,
    )


def _with_floor(log_x: np.ndarray, points: Points, lines: Lines, draws: np.ndarray | None) -> _Estimate:
    count = len(points.replicates)
    all_and_each = fit_floor(log_x, points.log_losses, np.vstack([np.ones(count), np.eye(count)]))
    alpha, level, cost = float(all_and_each.alpha[0]), float(all_and_each.floor[0]), float(all_and_each.sum_squares[0])
    error_draws = None
    if draws is not None:
        # Few replicates have few distinct draws (10 for three): fit each of them once.
        distinct, times = np.unique(draws, axis=0, return_counts=True)
        error_draws = bootstrap_error(fit_floor(log_x, points.log_losses, distinct).alpha, count, times)
    gain = lines.sum_squares - cost
    if level == 0 or gain <= max(1e-9 * lines.sum_squares, 1e-22 * points.log_losses.size):
        plain_fit = _without_floor(lines, None)
        note = "irreducible_loss ends at its bound 0: the data show no floor, and alpha is that of the fit without one"
        return _Estimate(
            plain_fit.alpha, all_and_each.alpha[1:], plain_fit.log_c, 0.0, lines.sum_squares, lines.degrees,
            lines.slope_error, error_draws, (note,),
        )  # fmt: skip
    (aa, ab), (_, bb) = all_and_each.information[0]
    degrees = lines.degrees - 1
    log_c = float(all_and_each.log_c[0].mean())
    # What is left of the data's say on alpha once L0 and c are free: ln L must answer to alpha by more than a float32
    # loss is good for, or the number is where the search stopped, and a small residual would make it look certain.
    known = aa - ab**2 / bb if aa > 0 and bb > 0 else 0.0
    if not (known > 1e-10 and known > 1e-9 * aa):
        note = "alpha is not identified: the data cannot tell alpha and irreducible_loss apart"
        nan = float("nan")
        return _Estimate(nan, np.full(count, nan), nan, nan, cost, degrees, None, None, (note,))
    error = float(np.sqrt(cost / degrees / known)) if degrees > 0 else None
    return _Estimate(alpha, all_and_each.alpha[1:], log_c, level, cost, degrees, error, error_draws)


def _caveats(log_x: np.ndarray, points: Points, floor: bool, confidence: float) -> tuple[str, ...]:
    caveats = []
    # A floor is itself a bend: the test would find the floor again.
    bend = None if floor else find_curvature(log_x, points.log_losses, confidence)
    if bend:
        first, last = (f"{-slope:.2f}" for slope in bend)
        caveats.append(f"local slope changes from {first} to {last}: one exponent does not describe this window")
    if len(points.replicates) == 1:
        caveats.append(
            "single replicate: interval from the fit's covariance only, which does not contain "
            "the spread between teachers"
        )
    if points.left_out:
        caveats.append(count_reasons(points.left_out))
    return tuple(caveats)
