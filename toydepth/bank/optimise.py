"""Learning rates by depth, schedules over training, and optimisers by their optax name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax import contrib

from toydepth.config import TrainConfig
from toydepth.errors import InputError, did_you_mean


def schedule_shape(name: str, steps: int, decay_fraction: float, final_fraction: float) -> optax.Schedule:
    """Returns the learning rate at an update, relative to its peak, for updates 0 ... steps - 1.

    constant: 1. Otherwise 1 until the last decay_fraction of the steps, then a straight line (stable_then_linear) or
    half a cosine (cosine) to final_fraction, which the last update has. Meaningful for any steps >= 1.

    Example:
        >>> shape = schedule_shape("stable_then_linear", 11, 0.5, 0.1)
        >>> [round(float(shape(s)), 2) for s in (0, 5, 10)]
        [1.0, 1.0, 0.1]
    """
    if name == "constant" or decay_fraction == 0 or steps == 1:
        return optax.constant_schedule(1.0)
    length = max(1, round(decay_fraction * (steps - 1)))
    start = steps - 1 - length
    if name == "stable_then_linear":
        return optax.linear_schedule(1.0, final_fraction, length, start)
    decay = optax.cosine_decay_schedule(1.0, length, final_fraction)
    return optax.join_schedules([optax.constant_schedule(1.0), decay], [start])


def make_schedule(config: TrainConfig, depth: int) -> optax.Schedule:
    """Returns the learning rate of a depth at an update."""
    schedule = config.schedule
    shape = schedule_shape(schedule.name, config.steps, schedule.decay_fraction, schedule.final_fraction)
    peak = config.peak_learning_rate(depth)
    return lambda step: peak * shape(step)


class LearningRates:
    """The learning rate of every update of a depth, and tau, its running sum; memory does not grow with the steps.

    Taken in blocks that begin at multiples of their length: tau is the same bits whatever was asked for before.

    Example:
        >>> from toydepth.config import ScheduleConfig
        >>> rates = LearningRates(TrainConfig(steps=10, learning_rate=0.5, schedule=ScheduleConfig("constant")), 4)
        >>> rates.at(0), rates.tau(10)
        (0.25, 2.5)
    """

    _length = 2**14

    def __init__(self, config: TrainConfig, depth: int):
        self._schedule = make_schedule(config, depth)
        self._block: tuple[int, np.ndarray] = (-1, np.empty(0))
        self._sums = [0.0]

    def at(self, update: int) -> float:
        """Returns the learning rate of an update, 0 ... steps - 1."""
        block, place = divmod(update, self._length)
        return float(self._rates(block)[place])

    def tau(self, step: int) -> float:
        """Returns the sum of the learning rates of the first `step` updates."""
        block, place = divmod(step, self._length)
        while len(self._sums) <= block:
            self._sums.append(self._sums[-1] + float(self._rates(len(self._sums) - 1).sum()))
        return self._sums[block] + (float(self._rates(block)[:place].sum()) if place else 0.0)

    def _rates(self, block: int) -> np.ndarray:
        if self._block[0] != block:
            updates = jnp.asarray(block * self._length + np.arange(self._length), jnp.int32)
            rates = jnp.broadcast_to(self._schedule(updates), updates.shape)
            self._block = (block, np.asarray(rates, float))
        return self._block[1]


def optimizer_names() -> list[str]:
    """Returns the names that optimizer.name accepts: functions of optax and optax.contrib with a learning rate."""
    return sorted({name for module in (optax, contrib) for name in dir(module) if _is_optimizer(module, name)})


def make_optimizer(config: TrainConfig, depth: int) -> optax.GradientTransformation:
    """Builds the optimiser of one depth.

    Raises:
        InputError: for a name optax does not have, or options its function does not take.
    """
    name, options = config.optimizer.name, dict(config.optimizer.options)
    known = optimizer_names()
    if name not in known:
        raise InputError(f"optimizer.name must be an optax optimiser, got {name}.{did_you_mean(name, known)}")
    make: Callable[..., Any] = getattr(optax, name, None) or getattr(contrib, name)
    accepted = [p for p in inspect.signature(make).parameters if p != "learning_rate"]
    for option in options:
        if option not in accepted:
            hint = did_you_mean(option, accepted) or f" It takes {', '.join(accepted)}."
            raise InputError(f"optimizer.options must be arguments of {name}, got {option}.{hint}")
    if name == "muon":
        options.setdefault("muon_weight_dimension_numbers", _matrices)
    given = dict(config.optimizer.options)
    try:
        optimizer = make(make_schedule(config, depth), **options)
    except (TypeError, ValueError) as error:
        raise InputError(f"optimizer.options must suit {name}, got {given}. optax says: {_line(error)}") from error
    try:
        # Some options, and optimisers that want more than a gradient, fail only when they are used.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.eval_shape(lambda p: optimizer.update(p, optimizer.init(p), p), _SAMPLE)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        with_options = f" with {given}" if given else ""
        got = f"{name}{with_options}"
        advice = f"optax says: {_line(error)}"
        raise InputError(f"optimizer must work, from gradients alone, got {got}. {advice}") from error
    return optimizer


# Parameters of the kinds that a student has, in the fewest numbers. Of numpy: an array of jax would start the backend
# at import, before the number of devices is set.
_SAMPLE = {"stack": {"w1": np.zeros((1, 1, 4)), "b1": np.zeros((1, 4)), "w2": np.zeros((1, 4, 1))}}


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _is_optimizer(module: Any, name: str) -> bool:
    function = getattr(module, name)
    if name.startswith(("_", "scale_by_")) or not inspect.isfunction(function):
        return False
    parameters = list(inspect.signature(function).parameters)
    return parameters[:1] == ["learning_rate"]


def _matrices(params: Any) -> Any:
    """Tells muon which axes of a stacked weight are the matrix; the layer axis is a batch, the rest is adam's."""

    def numbers(path: Any, leaf: jax.Array) -> contrib.MuonDimensionNumbers | None:
        name = path[-1].key
        return contrib.MuonDimensionNumbers(leaf.ndim - 2, leaf.ndim - 1) if name in ("w1", "w2") else None

    return jax.tree_util.tree_map_with_path(numbers, params)
