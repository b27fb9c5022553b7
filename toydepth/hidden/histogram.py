"""Exact counts of values in fixed bins, a layer at a time: the shape of a distribution, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Bins:
    """Bins of one width from `low` on: linear in the value, or in its log2.

    Attributes:
        low: the first edge, or its log2. width: of a bin, in the same. count: of bins. log: whether in log2.
    """

    low: float
    width: float
    count: int
    log: bool = False

    @property
    def edges(self) -> np.ndarray:
        """(count + 1,), in the unit of the values."""
        edges = self.low + self.width * np.arange(self.count + 1)
        return 2.0**edges if self.log else edges


_ANGLES = Bins(0.0, np.pi / 90, 90)  # 2 degrees
_NORMS = Bins(-20.0, 0.25, 240, log=True)  # quarters of octaves, 1e-6 ... 1e12
_PROGRESS = Bins(-1.0, 0.025, 120)
BINS = {
    "theta_states": _ANGLES,
    "theta_updates": _ANGLES,
    "theta_final": _ANGLES,
    "norm": _NORMS,
    "update_norm": _NORMS,
    "progress": _PROGRESS,
}


class Histogram:
    """Counts of each layer; a bin holds its left edge, and what lies outside of all is counted apart.

    Args:
        layers: how many.
        bins: where the edges are.

    Example:
        >>> counted = Histogram(1, Bins(0.0, 1.0, 3)).add(np.array([[0.5, 2.0, 2.9, 7.0, np.nan, -1.0]]))
        >>> counted.counts.tolist()
        [[1, 1, 0, 2, 1]]
    """

    def __init__(self, layers: int, bins: Bins):
        self.bins = bins
        self.counts = np.zeros((layers, bins.count + 2), np.int64)  # below, the bins, above

    def add(self, values: np.ndarray) -> Histogram:
        """Adds values (layers, tokens); NaN is no value. Returns itself."""
        known = np.isfinite(values)
        place = np.where(known, values, 1.0)
        if self.bins.log:
            place = np.log2(np.maximum(place, np.finfo(float).tiny))
        place = np.floor((place - self.bins.low) / self.bins.width)
        # pi itself, an angle that occurs, is in the last bin and not above it, whatever rounding says.
        last = self.bins.edges[-1]
        place = np.where(known & (np.abs(values - last) <= 1e-12 * last), self.bins.count - 1, place)
        place = 1 + np.clip(place, -1, self.bins.count).astype(np.int64)
        flat = place + self.counts.shape[1] * np.arange(len(self.counts))[:, None]
        self.counts += np.bincount(flat[known], minlength=self.counts.size).reshape(self.counts.shape)
        return self

    def merge(self, other: Histogram) -> Histogram:
        """Adds what another has seen. Returns itself."""
        self.counts = self.counts + other.counts
        return self

    def table(self) -> pd.DataFrame:
        """Returns a row a layer and bin that holds a value: layer (from 0), left, right (edges), count."""
        layers, places = np.nonzero(self.counts)
        edges = np.concatenate([[-np.inf], self.bins.edges, [np.inf]])
        columns: dict[str, Any] = {"layer": layers, "left": edges[places], "right": edges[places + 1]}
        return pd.DataFrame(columns | {"count": self.counts[layers, places]})

    def state(self) -> dict[str, np.ndarray]:
        """Returns what `restore` needs besides the bins."""
        return {"counts": self.counts}

    @classmethod
    def restore(cls, state: Mapping[str, Any], bins: Bins) -> Histogram:
        """Returns the histogram that `state` was taken of."""
        restored = cls(len(state["counts"]), bins)
        restored.counts = np.array(state["counts"])
        return restored
