"""The width and depth terms against m / ell at a fixed N = 12 m^2 ell: a valley, and where it is lowest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.uses.cost import SIZE_FACTOR
from toydepth.fit.law.uses.draws import Laws

_FAR = np.log(1e6)  # a best shape this factor away from the table's shapes is none
_GRID = 161  # shapes at which the loss is looked at first; one valley between two of them is then found exactly
_HALVINGS = 48


class Valley:
    """The width and depth terms of many laws against s = ln(m / ell), at a fixed N."""

    def __init__(self, fit: LawFit, laws: Laws) -> None:
        self.laws, self.places = laws, [fit.law.variables.index(name) for name in ("m", "ell")]
        self.offsets = [fit.offsets.get(name, 0.0) for name in ("m", "ell")]
        known = fit.rows.unshifted(fit.offsets)
        self.ratios = known["m"] / known["ell"]

    def terms(self, s: np.ndarray, log_size: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns (T, -d ln T / d ln x) of width and of depth, each of the shape of s (r, ...)."""
        n = log_size - np.log(SIZE_FACTOR)
        found = []
        for k, offset, log_x in zip(self.places, self.offsets, ((n + s) / 3, (n - 2 * s) / 3), strict=True):
            x = np.exp(log_x)
            alpha = self.laws.alpha[:, k].reshape(-1, *(1,) * (s.ndim - 1))
            found.append((np.exp(self.laws.log_terms(k, x - offset)), alpha * x / (x - offset)))
        return found

    def total(self, s: np.ndarray, log_size: float) -> np.ndarray:
        """Returns T_m + T_ell."""
        return sum(term for term, _ in self.terms(s, log_size))  # pyright: ignore[reportReturnType]

    def slope_in_size(self, s: np.ndarray, log_size: float) -> np.ndarray:
        """Returns d ln (T_m + T_ell) / d ln N at the best shape s, where moving along s changes nothing."""
        (wide, of_wide), (deep, of_deep) = self.terms(s, log_size)
        return -(wide * of_wide + deep * of_deep) / (3 * (wide + deep))

    def ends(self, log_size: float) -> tuple[float, float]:
        """Returns the ends of s: where m or ell comes down to its offset, or a factor 1e6 beyond the table's shapes."""
        n = log_size - np.log(SIZE_FACTOR)
        low, high = np.log(self.ratios.min()) - _FAR, np.log(self.ratios.max()) + _FAR
        wide, deep = self.offsets
        low = max(low, 3 * np.log(wide) - n + 1e-9) if wide > 0 else low
        high = min(high, (n - 3 * np.log(deep)) / 2 - 1e-9) if deep > 0 else high
        return float(low), float(high)

    def best(self, log_size: float) -> np.ndarray:
        """Returns the best s (r,): -inf where deeper, +inf where wider is always better, NaN where nothing is."""
        low, high = self.ends(log_size)
        if low >= high:
            return np.full(len(self.laws.floor), np.nan)
        grid = np.linspace(low, high, _GRID)
        with np.errstate(all="ignore"):
            everywhere = self.total(np.broadcast_to(grid, (len(self.laws.floor), _GRID)), log_size)
            lowest = np.argmin(np.nan_to_num(everywhere, nan=np.inf), axis=1)
            left, right = grid[np.maximum(lowest - 1, 0)], grid[np.minimum(lowest + 1, _GRID - 1)]
            s = halve(lambda x: self._falls(x, log_size), left, right)
        s = np.where(lowest == 0, -np.inf, np.where(lowest == _GRID - 1, np.inf, s))
        wide, deep = (self.laws.alpha[:, k] > 0 for k in self.places)
        return np.where(wide & deep, s, np.where(wide, np.inf, np.where(deep, -np.inf, np.nan)))

    def _falls(self, s: np.ndarray, log_size: float) -> np.ndarray:
        (wide, of_wide), (deep, of_deep) = self.terms(s, log_size)
        return wide * of_wide > 2 * deep * of_deep

    def tolerable(self, s: np.ndarray, log_size: float, more: np.ndarray) -> list[np.ndarray]:
        """Returns the lowest and highest s (r,) where the terms are at most `more` (r,) above those at the best s."""
        low, high = self.ends(log_size)
        found = []
        with np.errstate(all="ignore"):
            level = self.total(s, log_size) + more
            for sign, end in ((-1, low), (1, high)):
                inside = lambda x: self.total(x, log_size) <= level  # noqa: E731
                edge = np.full_like(s, end)
                crossed = halve(inside, s, edge)
                found.append(np.where(np.isfinite(s), np.where(inside(edge), sign * np.inf, crossed), s))
        return found


def halve(holds: Callable[[np.ndarray], np.ndarray], first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Returns where a condition ceases to hold between first, where it does, and last, where it does not."""
    for _ in range(_HALVINGS):
        middle = (first + last) / 2
        yes = holds(middle)
        first, last = np.where(yes, middle, first), np.where(yes, last, middle)
    return (first + last) / 2
