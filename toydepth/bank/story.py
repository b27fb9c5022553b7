"""The story of a run so far: its evaluations and its diverged arms, in host memory, ready for JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toydepth.bank.arms import Arm
from toydepth.bank.optimise import LearningRates
from toydepth.config import TrainConfig


def evaluation_steps(steps: int, points: int) -> list[int]:
    """Returns step 0 and up to `points` steps evenly spaced in ln step from 1 to the last; early ones fall together.

    Example:
        >>> evaluation_steps(1000, 4)
        [0, 1, 10, 100, 1000]
    """
    spaced = np.geomspace(1, steps, points) if points > 1 else np.array([steps])
    return [0, *np.unique(np.round(spaced).astype(int)).tolist()]


@dataclass
class Story:
    """series: a list a quantity, an entry an evaluation ('step', 'samples': numbers; the others: lists over arms).

    diverged: {arm index: {last_finite_step, first_non_finite_step}}.
    """

    config: TrainConfig
    arms: list[Arm]
    series: dict[str, list[Any]] = field(default_factory=dict)
    diverged: dict[int, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rates = {depth: LearningRates(self.config, depth) for depth in self.config.student.depths}

    @property
    def last_step(self) -> int:
        """The step of the last evaluation, -1 before the first."""
        return self.series["step"][-1] if self.series.get("step") else -1

    def add(self, step: int, train_loss: np.ndarray, test: dict[str, np.ndarray]) -> None:
        """Adds an evaluation after `step` updates; numbers of diverged arms become NaN from there on."""
        dead = np.isin(np.arange(len(self.arms)), list(self.diverged))
        row = {"train_loss": train_loss, **test}
        row = {name: np.where(dead, np.nan, values) for name, values in row.items()}
        row |= self.rates_at(step)
        scalars = {"step": step, "samples": step * self.config.batch_size}
        for name, value in scalars.items():
            self.series.setdefault(name, []).append(value)
        for name, values in row.items():
            self.series.setdefault(name, []).append([float(v) for v in values])

    def rates_at(self, step: int) -> dict[str, np.ndarray]:
        """Returns tau, the sum of the learning rates of the first `step` updates, and that of the last; (arms,)."""
        tau, last = self._by_arm(lambda rates: rates.tau(step)), self._by_arm(lambda rates: rates.at(max(step - 1, 0)))
        return {"tau": tau, "learning_rate": last}

    def _by_arm(self, function: Callable[[LearningRates], float]) -> np.ndarray:
        values = {depth: function(rates) for depth, rates in self._rates.items()}
        return np.array([values[arm.depth] for arm in self.arms])

    def to_json(self) -> dict[str, Any]:
        """Returns the story as JSON-able values; float64 survives unchanged."""
        return {"series": self.series, "diverged": {str(arm): where for arm, where in self.diverged.items()}}

    def load(self, saved: dict[str, Any]) -> None:
        """Takes up a story saved by `to_json`."""
        self.series = saved["series"]
        self.diverged = {int(arm): where for arm, where in saved["diverged"].items()}
