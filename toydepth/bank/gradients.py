"""Snapshots of gradients: that of every arm's mean loss in its own parameters, taken beside training.

They leave no trace in it. The gradient is the loss's alone: before the optimiser, without weight decay or clipping.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from toydepth.bank.bank import Bank, State
from toydepth.bank.compiler import compiler_options
from toydepth.bank.devices import Layout
from toydepth.bank.step import Problem, draw_inputs, losses_and_gradients, mean_over_tiles
from toydepth.bank.story import evaluation_steps
from toydepth.bank.tiling import largest_part
from toydepth.config import TrainConfig
from toydepth.net import Params


def snapshot_steps(config: TrainConfig) -> list[int]:
    """Returns the steps of the gradient snapshots, from 1 to the last, evenly spaced in ln step.

    Example:
        >>> from toydepth.config import GradientsConfig
        >>> snapshot_steps(TrainConfig(steps=1000, gradients=GradientsConfig(4))), snapshot_steps(TrainConfig())
        ([1, 10, 100, 1000], [])
    """
    points = config.gradients.points
    return evaluation_steps(config.steps, points)[1:] if points else []


@dataclass(frozen=True)
class Snapshot:
    """Gradients after `step` updates. losses (arms,): the mean loss they are of. gradients: nested, an arm each.

    Of an arm that has diverged the loss is NaN, and the gradient None. num_examples: how many the mean is over.
    """

    step: int
    num_examples: int
    losses: np.ndarray
    gradients: list[Params | None]


class Gradients:
    """The compiled program that takes a bank's snapshots: of config.gradients.stream, at config.gradients.weights.

    `train`: of the batch that the next update sees. After the last update it is the batch that would come next. `test`:
    of the whole test set, worked on in parts of at most a batch, so that memory is that of a training step. One program
    for all depths, compiled at the first snapshot.
    """

    def __init__(self, bank: Bank):
        self._bank = bank
        config, layout = bank.config, bank.layout
        share, mesh = layout.share(config), layout.mesh
        self._on_test = config.gradients.stream == "test"
        fixed = (P("replica"), P("replica"), P(Layout.ARMS))
        if self._on_test:
            problem, tiles = _for_test(bank.problem, config, share.batches)

            def program(teachers: Params, heads: Any, weights: Any, x: jax.Array) -> Any:
                of_part = lambda x: losses_and_gradients(problem, teachers, heads, weights, x, share)  # noqa: E731
                return mean_over_tiles(of_part, tiles, x)

        else:

            def program(teachers: Params, heads: Any, weights: Any, x: jax.Array) -> Any:
                inputs = draw_inputs(bank.problem, x, config.batch_size, share)
                return losses_and_gradients(bank.problem, teachers, heads, weights, inputs, share)

        specs = (*fixed, P(None, "batch") if self._on_test else P())
        mapped = jax.shard_map(program, mesh=mesh, in_specs=specs, out_specs=P(Layout.ARMS), check_vma=False)
        self._program = jax.jit(mapped, compiler_options=compiler_options(layout.platform))

    def take(self, state: State) -> Snapshot:
        """Returns the gradients at a state, which is only read."""
        bank, config = self._bank, self._bank.config
        averages = config.gradients.weights == "average"
        weights = {d: s["averages"][0] if averages else s["params"] for d, s in state["depths"].items()}
        x = bank.test_inputs if self._on_test else state["step"]
        found = jax.device_get(self._program(bank.teachers, bank.heads, weights, x))
        alive = bank.by_arm(state, "alive")
        losses, gradients = [], []
        for depth in map(str, config.student.depths):
            loss, stack = found[depth]
            losses.append(np.asarray(loss, float))
            gradients += [jax.tree.map(lambda leaf, arm=arm: leaf[arm], stack) for arm in range(len(loss))]
        return Snapshot(
            step=int(state["step"]),
            num_examples=config.eval.samples if self._on_test else config.batch_size,
            losses=np.where(alive, np.concatenate(losses), np.nan),
            gradients=[own if lives else None for own, lives in zip(gradients, alive, strict=True)],
        )


def _for_test(problem: Problem, config: TrainConfig, shards: int) -> tuple[Problem, int]:
    """The problem, its tiles cut so that they divide the parts of the test set, and the number of parts of a device."""
    examples = config.eval.samples // shards
    part = largest_part(examples, config.batch_size // shards)
    tiling = dataclasses.replace(problem.tiling, examples=largest_part(part, problem.tiling.examples))
    return dataclasses.replace(problem, tiling=tiling), examples // part
