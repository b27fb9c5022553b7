"""What a fit makes small: a sum over rows of a function of the residual."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from toydepth.errors import did_you_mean
from toydepth.fit.checks import is_number, refuse

OBJECTIVES = ("log", "linear", "huber", "student")


@dataclass(frozen=True)
class Objective:
    """sum_i w_i rho(r_i).

    Args:
        kind: *log*, rho = r^2 with r = ln L - ln L_fit; *linear*, rho = r^2 with r = L - L_fit; *huber*, of ln L,
            rho = r^2 / 2 up to delta, then delta (|r| - delta / 2); *student*, of ln L, the negative log likelihood of
            Student's t, whose scale s is fitted as well:
            rho = ln s + (nu + 1) / 2 ln(1 + r^2 / (nu s^2)).
        delta: of huber.
        degrees: nu of student.

    Raises:
        InputError: for an unknown kind, or a delta or nu that is not positive.

    Source: huber, arXiv 2203.15556 with delta 1e-3; student, Lange, Little, Taylor 1989.
    """

    kind: str = "log"
    delta: float = 1e-3
    degrees: float = 4.0

    def __post_init__(self) -> None:
        if self.kind not in OBJECTIVES:
            hint = did_you_mean(str(self.kind), OBJECTIVES).strip()
            raise refuse("objective", f"one of {', '.join(OBJECTIVES)}", self.kind, hint or "Give one of them.")
        for name, value in (("delta", self.delta), ("degrees", self.degrees)):
            if not is_number(value) or not (math.isfinite(value) and value > 0):
                raise refuse(name, "a positive number", value, "Leave it out for the default.")

    @property
    def in_words(self) -> str:
        """For reports.

        Example:
            >>> Objective("huber").in_words
            'Huber loss of ln L, delta 0.001'
        """
        return {
            "log": "squared residual of ln L",
            "linear": "squared residual of L",
            "huber": f"Huber loss of ln L, delta {self.delta:g}",
            "student": f"Student t of ln L, {self.degrees:g} degrees of freedom",
        }[self.kind]

    @property
    def of_log(self) -> bool:
        """Whether residuals are of ln L."""
        return self.kind != "linear"

    def rho(self, residuals: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Returns the objective (...) of residuals (..., n)."""
        if self.kind in ("log", "linear"):
            return np.einsum("...n,...n,...n->...", weights, residuals, residuals)
        if self.kind == "huber":
            size = np.abs(residuals)
            inside = np.minimum(size, self.delta)
            return (weights * (inside * (size - inside / 2))).sum(axis=-1)
        scale = self.scale(residuals, weights)
        ratio = (residuals / scale[..., None]) ** 2 / self.degrees
        return (weights * ((self.degrees + 1) / 2 * np.log1p(ratio) + np.log(scale)[..., None])).sum(axis=-1)

    def derivatives(self, residuals: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (psi, kappa), each (..., n): d rho / d r, and a positive curvature above that of rho."""
        if self.kind in ("log", "linear"):
            return 2 * residuals, np.full_like(residuals, 2.0)
        if self.kind == "huber":
            size = np.abs(residuals)
            kappa = np.minimum(1.0, self.delta / np.maximum(size, self.delta))
            return residuals * kappa, kappa
        variance = self.degrees * self.scale(residuals, weights)[..., None] ** 2
        kappa = (self.degrees + 1) / (variance + residuals**2)
        return residuals * kappa, kappa

    def scale(self, residuals: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Returns the most likely scale s (...) of Student's t for residuals (..., n)."""
        squares = residuals**2
        total = weights.sum(axis=-1)
        variance = np.maximum(1.5 * (weights * squares).sum(axis=-1) / total, np.finfo(float).tiny)
        # The fixed point of the likelihood equation, in ln s with Newton's steps: 8 give every digit.
        degrees = self.degrees
        for _ in range(30):
            ratio = squares / (degrees * variance[..., None])
            pull = weights * ratio / (1 + ratio)
            value = (degrees + 1) * pull.sum(axis=-1) - total
            slope = -(degrees + 1) * (pull / (1 + ratio)).sum(axis=-1)
            step = np.clip(np.divide(-value, slope, out=np.zeros_like(value), where=slope < 0), -2, 2)
            variance = np.maximum(variance * np.exp(step), np.finfo(float).tiny)
            if np.all(np.abs(step) < 1e-13):
                break
        return np.sqrt(variance)

    def mean_curvature(self, residuals: np.ndarray, weights: np.ndarray) -> float:
        """Returns the mean of rho'' over rows (n,), as an M estimator's covariance needs it.

        Of huber it is the share of residuals within delta; where few are, that share is noise, so it is taken from
        a smooth density of the residuals (a normal kernel of Silverman's width).
        """
        if self.kind in ("log", "linear"):
            return 2.0
        if self.kind == "huber":
            quartiles = np.quantile(residuals, [0.25, 0.75])
            spread = min(float(residuals.std()), float(quartiles[1] - quartiles[0]) / 1.349)
            width = max(0.9 * spread * len(residuals) ** -0.2, 1e-300)
            inside = ndtr((self.delta - residuals) / width) - ndtr((-self.delta - residuals) / width)
            return float(np.average(inside, weights=weights))
        variance = self.degrees * float(self.scale(residuals, weights)) ** 2
        curvature = (self.degrees + 1) * (variance - residuals**2) / (variance + residuals**2) ** 2
        return float(np.average(curvature, weights=weights))
