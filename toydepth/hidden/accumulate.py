"""Statistics of the trajectories of many tokens, in the memory of one batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.hidden.histogram import BINS, Histogram
from toydepth.hidden.moments import Moments
from toydepth.hidden.sketch import Sketch
from toydepth.hidden.trajectory import QUANTITIES, Trajectory

SHARES = (0.05, 0.5, 0.95)
_COUNTS = ("num_tokens", "num_zero", "num_not_finite", "num_zero_updates")


class Accumulator:
    """Moments, quantiles and histograms of every quantity and layer over all tokens added, however they are cut.

    Args:
        depth: blocks of the network.
        allow_non_finite: count states that are not finite and go on, rather than fail.

    Example:
        >>> from toydepth.hidden.trajectory import measure_states
        >>> stream = np.array([[[1.0, 0.0]], [[1.0, 1.0]], [[0.0, 2.0]]])
        >>> table = Accumulator(2).add(measure_states(stream)).table()
        >>> table[["layer", "theta_states", "progress", "tokens"]].round(4).to_numpy().tolist()
        [[0.0, 0.7854, 0.0, 1.0], [1.0, 0.7854, 0.4, 1.0], [2.0, nan, 1.0, 1.0]]
    """

    def __init__(self, depth: int, allow_non_finite: bool = False):
        self.depth = depth
        self.allow_non_finite = allow_non_finite
        self.num_tokens = 0
        self.num_zero = np.zeros(depth + 1, np.int64)
        self.num_not_finite = np.zeros(depth + 1, np.int64)
        self.num_zero_updates = np.zeros(depth, np.int64)
        self.moments = {name: Moments(self._layers(name)) for name in QUANTITIES}
        self.sketches = {name: Sketch(self._layers(name)) for name in QUANTITIES}
        self.histograms = {name: Histogram(self._layers(name), BINS[name]) for name in QUANTITIES}

    def _layers(self, name: str) -> int:
        return self.depth + {"theta_states": 0, "theta_updates": -1, "update_norm": 0}.get(name, 1)

    def add(self, part: Trajectory) -> Accumulator:
        """Adds the tokens of a batch; those that padding or a mask excludes must be gone already. Returns itself.

        Raises:
            InputError: for states that are not finite, unless allowed; nothing of the batch is added then.
        """
        self.check(part)
        self.num_tokens += part.norm.shape[1]
        self.num_zero += part.num_zero
        self.num_not_finite += part.num_not_finite
        self.num_zero_updates += (part.update_norm == 0).sum(axis=1)
        for name in QUANTITIES:
            values = getattr(part, name)
            self.moments[name].add(values)
            self.sketches[name].add(values)
            self.histograms[name].add(values)
        return self

    def check(self, part: Trajectory) -> None:
        """Raises InputError for states that are not finite, unless allowed."""
        bad = part.num_not_finite
        if bad.any() and not self.allow_non_finite:
            layer = int(np.argmax(bad > 0))
            advice = "Load the model in a wider type (float32), or allow them: they are counted and left out."
            got = f"{int(bad[layer])} tokens with NaN or inf after block {layer}"
            raise InputError(f"hidden states must be finite, got {got}. {advice}")

    def merge(self, other: Accumulator) -> Accumulator:
        """Adds what another has seen. Returns itself."""
        self.num_tokens += other.num_tokens
        self.num_zero = self.num_zero + other.num_zero
        self.num_not_finite = self.num_not_finite + other.num_not_finite
        self.num_zero_updates = self.num_zero_updates + other.num_zero_updates
        for name in QUANTITIES:
            self.moments[name].merge(other.moments[name])
            self.sketches[name].merge(other.sketches[name])
            self.histograms[name].merge(other.histograms[name])
        return self

    def table(self) -> pd.DataFrame:
        """Returns a row a layer 0 ... depth.

        Columns: layer; relative_depth, layer / depth; of each quantity its mean (by its name), `_std`, `_error` (of the
        mean, tokens taken as independent), `_q05`, `_q50`, `_q95` (to half a per cent), `_tokens` (that have it);
        tokens, num_zero and num_not_finite (states), num_zero_updates (of the step that leaves). A quantity of steps
        stands in the row of the state that it leaves, one of pairs of updates in that between them; where there is
        none, NaN.
        """
        layers = self.depth + 1
        columns: dict[str, Any] = {"layer": np.arange(layers), "relative_depth": np.arange(layers) / max(self.depth, 1)}
        for name in QUANTITIES:
            first = 1 if name == "theta_updates" else 0

            def padded(values: np.ndarray, first: int = first) -> np.ndarray:
                full = np.full(layers, np.nan)
                full[first : first + len(values)] = values
                return full

            moments = self.moments[name]
            columns[name] = padded(np.where(moments.count > 0, moments.mean, np.nan))
            columns[f"{name}_std"] = padded(np.sqrt(moments.variance))
            columns[f"{name}_error"] = padded(moments.standard_error)
            for share in SHARES:
                columns[f"{name}_q{100 * share:02.0f}"] = padded(self.sketches[name].quantile(share))
            counts = np.zeros(layers, np.int64)
            counts[first : first + len(moments.count)] = moments.count
            columns[f"{name}_tokens"] = counts
        columns["tokens"] = np.full(layers, self.num_tokens)
        columns["num_zero"], columns["num_not_finite"] = self.num_zero, self.num_not_finite
        columns["num_zero_updates"] = np.append(self.num_zero_updates, 0)
        return pd.DataFrame(columns)

    def histogram_table(self) -> pd.DataFrame:
        """Returns a row a quantity, layer and bin that holds a value: quantity, layer, left, right, count.

        Layers are those of the rows of `table`. Bins: angles 2 degrees, norms a quarter of an octave, progress 0.025.
        """
        tables = [
            counted.table().assign(layer=lambda rows, first=name == "theta_updates": rows["layer"] + first)
            for name, counted in self.histograms.items()
        ]
        joined = pd.concat(tables, keys=self.histograms, names=["quantity"])
        return joined.reset_index(level=0).reset_index(drop=True)

    def state(self) -> dict[str, Any]:
        """Returns what `restore` needs: numbers and arrays."""
        state: dict[str, Any] = {"depth": self.depth, "allow_non_finite": self.allow_non_finite}
        state |= {name: getattr(self, name) for name in _COUNTS}
        for name in QUANTITIES:
            state[name] = {"moments": self.moments[name].state(), "sketch": self.sketches[name].state()}
            state[name]["histogram"] = self.histograms[name].state()
        return state

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Accumulator:
        """Returns the accumulator that `state` was taken of; it goes on as if it had never stopped."""
        restored = cls(int(state["depth"]), bool(state["allow_non_finite"]))
        restored.num_tokens = int(state["num_tokens"])
        for name in _COUNTS[1:]:
            setattr(restored, name, np.array(state[name]))
        for name in QUANTITIES:
            restored.moments[name] = Moments.restore(state[name]["moments"])
            restored.sketches[name] = Sketch.restore(state[name]["sketch"])
            restored.histograms[name] = Histogram.restore(state[name]["histogram"], BINS[name])
        return restored
