"""Exact means and variances, a layer at a time, of a stream of tokens: constant memory, parts that can be added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class Moments:
    """Count, mean, variance, least and largest of each layer.

    Parts are added up by their means and sums of squares about them, in float64: the result depends on how the stream
    was cut to rounding alone.

    Args:
        layers: how many.

    Example:
        >>> both = Moments(1).add(np.array([[1.0, 2.0]])).merge(Moments(1).add(np.array([[6.0, np.nan]])))
        >>> both.count.tolist(), both.mean.tolist(), both.variance.tolist()
        ([3], [3.0], [7.0])

    Source: Chan, Golub, LeVeque, The American Statistician 1983.
    """

    def __init__(self, layers: int):
        self.count = np.zeros(layers, np.int64)
        self.mean = np.zeros(layers)
        self.squares = np.zeros(layers)
        self.least = np.full(layers, np.inf)
        self.largest = np.full(layers, -np.inf)

    def add(self, values: np.ndarray) -> Moments:
        """Adds values (layers, tokens); NaN is no value. Returns itself."""
        known = np.isfinite(values)
        part = Moments(len(self.count))
        part.count = known.sum(axis=1)
        filled = np.where(known, values, 0.0)
        part.mean = filled.sum(axis=1) / np.maximum(part.count, 1)
        part.squares = (np.where(known, values - part.mean[:, None], 0.0) ** 2).sum(axis=1)
        part.least = np.where(known, values, np.inf).min(axis=1, initial=np.inf)
        part.largest = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
        return self.merge(part)

    def merge(self, other: Moments) -> Moments:
        """Adds what another has seen. Returns itself."""
        total = self.count + other.count
        share = other.count / np.maximum(total, 1)
        apart = other.mean - self.mean
        self.squares = self.squares + other.squares + apart**2 * self.count * share
        self.mean = self.mean + apart * share
        self.count = total
        self.least, self.largest = np.minimum(self.least, other.least), np.maximum(self.largest, other.largest)
        return self

    @property
    def variance(self) -> np.ndarray:
        """Of each layer, with n - 1; NaN below two values."""
        return np.where(self.count > 1, self.squares / np.maximum(self.count - 1, 1), np.nan)

    @property
    def standard_error(self) -> np.ndarray:
        """Of each mean, tokens taken as independent."""
        return np.sqrt(self.variance / np.maximum(self.count, 1))

    def state(self) -> dict[str, np.ndarray]:
        """Returns what `restore` needs."""
        return {name: getattr(self, name) for name in ("count", "mean", "squares", "least", "largest")}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Moments:
        """Returns the moments that `state` was taken of."""
        restored = cls(len(state["count"]))
        for name, value in state.items():
            setattr(restored, name, np.array(value))
        return restored
