"""Quantiles of a stream in constant memory, to a stated relative accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_GAMMA = 1.01  # of neighbouring edges: a quantile is off by half a per cent at most
_LEAST, _LARGEST = 1e-9, 1e9


class Sketch:
    """Counts of values in bins whose edges grow by 1 %, a row a layer; values beyond 1e-9 ... 1e9 go to the end bins.

    Negative values (of progress) have bins of their own; zero is one.

    Args:
        layers: how many.

    Example:
        >>> sketch = Sketch(1).add(np.arange(1.0, 1001.0)[None])
        >>> bool(abs(sketch.quantile(0.5)[0] / 500 - 1) < 0.01)
        True

    Source: the idea, Masson, Rim, Lee, DDSketch, VLDB 2019 (arXiv 1908.10693).
    """

    def __init__(self, layers: int):
        self._edges = np.log(_LEAST) + np.log(_GAMMA) * np.arange(int(np.log(_LARGEST / _LEAST) / np.log(_GAMMA)) + 2)
        self.counts = np.zeros((layers, 2 * len(self._edges) + 1), np.int64)

    def add(self, values: np.ndarray) -> Sketch:
        """Adds values (layers, tokens); NaN is no value. Returns itself."""
        half = len(self._edges)
        known = np.isfinite(values)
        size = np.log(np.clip(np.abs(np.where(known, values, 1.0)), _LEAST, _LARGEST))
        place = 1 + np.rint((size - self._edges[0]) / np.log(_GAMMA)).astype(np.int64)
        place = half + np.where(values == 0, 0, np.sign(np.where(known, values, 1.0)).astype(np.int64) * place)
        flat = place + self.counts.shape[1] * np.arange(len(self.counts))[:, None]
        self.counts += np.bincount(flat[known], minlength=self.counts.size).reshape(self.counts.shape)
        return self

    def merge(self, other: Sketch) -> Sketch:
        """Adds what another has seen. Returns itself."""
        self.counts = self.counts + other.counts
        return self

    def quantile(self, share: float) -> np.ndarray:
        """Returns the value (layers,) below which that share of a layer's values lies; NaN where there is none."""
        total = self.counts.sum(axis=1)
        reached = np.cumsum(self.counts, axis=1) >= np.maximum(np.ceil(share * total), 1)[:, None]
        place = reached.argmax(axis=1)
        half = len(self._edges)
        steps = np.abs(place - half)
        size = np.where(steps == 0, 0.0, np.exp(self._edges[np.maximum(steps - 1, 0)]))
        return np.where(total > 0, np.sign(place - half) * size, np.nan)

    def state(self) -> dict[str, np.ndarray]:
        """Returns what `restore` needs."""
        return {"counts": self.counts}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Sketch:
        """Returns the sketch that `state` was taken of."""
        restored = cls(len(state["counts"]))
        restored.counts = np.array(state["counts"])
        return restored
