"""Draws of a fitted law, and how a number that follows from it gets its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toydepth.fit.checks import check_count
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.resample import bootstrap
from toydepth.fit.law.text import interval_text, significant

_CURVED = 1.2  # how far off a parabola the objective may be at normal draws
_RESAMPLES = 600
_RESAMPLED_ROWS = 1e6  # rows times resamples, at most: half a second


@dataclass(frozen=True)
class Quantity:
    """A number that follows from a fit.

    Attributes:
        value: at the fit's minimum; None where there is none, with the reason.
        low, high: percentiles over the draws; None where that tail has no number.
        median: of the draws. lost: the share of draws in which it does not exist.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    median: float | None = None
    lost: float = 0.0
    reason: str | None = None

    def text(self) -> str:
        """Returns `59.6 [52.1, 68.9]`, or `?`."""
        if self.value is None:
            return "?"
        error = None if self.low is None or self.high is None else (self.high - self.low) / 4
        if error is not None and error <= 1e-5 * abs(self.value):
            return significant(self.value)  # it follows from fixed exponents alone
        return f"{significant(self.value, error)} {interval_text((self.low, self.high), error)}"


def summarise(values: np.ndarray, confidence: float, reason: str) -> Quantity:
    """Returns the quantity of values (1 + draws,), at the minimum and in draws.

    +inf and -inf stand for "beyond any number" on that side, NaN for none at all, which counts in both tails.

    Args:
        values: the first at the fit's minimum.
        confidence: of the interval.
        reason: given where the first is no number.
    """
    draws = values[1:]
    lost = float(np.mean(~np.isfinite(draws))) if draws.size else 0.0
    if not np.isfinite(values[0]):
        return Quantity(None, lost=lost, reason=reason)
    if not draws.size:
        return Quantity(float(values[0]))
    none = np.isnan(draws)
    # Never between a number and infinity: the next draw outwards.
    low = np.quantile(np.where(none, -np.inf, draws), (1 - confidence) / 2, method="lower")
    high = np.quantile(np.where(none, np.inf, draws), (1 + confidence) / 2, method="higher")
    middle = np.quantile(draws[~none], 0.5, method="nearest") if lost < 0.5 else np.nan
    low, high, middle = (float(x) if np.isfinite(x) else None for x in (low, high, middle))
    return Quantity(float(values[0]), low, high, middle, lost)


@dataclass(frozen=True, eq=False)
class Laws:
    """Many laws of one form: log_c (r, K), alpha (r, K), floor (r,), which is L0; origin: where the draws are from."""

    log_c: np.ndarray
    alpha: np.ndarray
    floor: np.ndarray
    origin: str = ""

    def log_terms(self, k: int, shifted: np.ndarray) -> np.ndarray:
        """Returns ln T_k (r, ...) at x_k less its offset, of shape (r, ...)."""
        ahead = (slice(None), *(None,) * (np.ndim(shifted) - 1))
        return self.log_c[:, k][ahead] - self.alpha[:, k][ahead] * np.log(shifted)


def laws_of(fit: LawFit, natural: np.ndarray, origin: str = "") -> Laws:
    """Returns the laws with parameters (ln c, free exponents, ln L0), (r, p)."""
    return Laws(*fit.estimate.problem.model.split(natural), origin)


def draw_laws(fit: LawFit, seed: int, count: int = 1000) -> Laws:
    """Returns the law at the minimum, then draws of it, (1 + draws) in all.

    Those of the fit's bootstrap; without one, normal draws, as long as the objective is a parabola as far out as they
    reach. With free exponents it is often a bent valley, which normal draws leave: most losses at the draws are then
    above that of the fit, and intervals are wrong; a bootstrap is used instead. Normal draws are stretched by
    sqrt(degrees / chi^2) to those of Student's t, so that a parameter's percentiles are the ends of its covariance
    interval.
    """
    check_count("seed", seed, 0)
    e = fit.estimate
    origin = "the fit's bootstrap"
    with np.errstate(all="ignore"):
        draws = normal_draws(e, count, seed) if fit.draws is None else fit.draws
        if fit.draws is None and _leaves_valley(fit, draws[:200]):
            draws = bootstrap(e, int(np.clip(_RESAMPLED_ROWS / e.num_rows, 200, _RESAMPLES)), seed)
            origin = "a bootstrap, since the objective is no parabola at normal draws"
        elif fit.draws is None:
            chi2 = np.random.default_rng([seed, 1]).chisquare(max(e.interval_degrees, 1), size=len(draws))
            draws = e.natural + (draws - e.natural) * np.sqrt(e.interval_degrees / chi2)[:, None]
            origin = "draws of Student's t with the fit's covariance"
        return laws_of(fit, np.concatenate([e.natural[None], draws]), f"{len(draws)}: {origin}")


def normal_draws(estimate: Estimate, count: int, seed: int) -> np.ndarray:
    """Returns draws (count, p) of (ln c, free exponents, ln L0)."""
    # By eigenvectors: a variance that is all but infinite makes the others' rounding look negative.
    values, vectors = np.linalg.eigh(estimate.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    return estimate.natural + np.random.default_rng(seed).normal(size=(count, len(values))) @ root.T


def _leaves_valley(fit: LawFit, draws: np.ndarray) -> bool:
    """Whether a fifth of the draws fit worse, or better, by more than a fifth than a parabola would have it."""
    e = fit.estimate
    if fit.unidentified:
        return True  # along what is not identified there is no parabola
    matrix, _ = e.problem.model.to_natural()
    moves = np.linalg.solve(matrix, (draws - e.natural).T).T
    worse = lambda scale: np.asarray(e.delta_chi2(e.problem.value(e.theta + scale * moves, e.weights)))  # noqa: E731
    parabola = (worse(0.02) + worse(-0.02)) / (2 * 0.02**2)
    ratio = worse(1.0) / np.maximum(parabola, 1e-300)
    return bool(np.mean((ratio > _CURVED) | (ratio < 1 / _CURVED)) > 0.2)


def why_unknown(fit: LawFit, names: Sequence[str]) -> str | None:
    """Returns why something that depends on these parameters has no number; None if all are identified."""
    for name in names:
        if reason := fit.parameters[name].reason:
            return f"{name} is not identified: {reason}"
    return None
