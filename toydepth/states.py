"""Hidden states of a run's own networks: its teachers, and every student it trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from toydepth.bank.bank import Bank
from toydepth.config import TrainConfig
from toydepth.errors import InputError
from toydepth.hidden import Accumulator, measure_states
from toydepth.net import Functional
from toydepth.weights import load_weights

_AT_ONCE = 512  # examples: the states of a deep teacher at once, and no more, are held


def states_of_run(
    run: str | Path, *, weights: str = "average", num_examples: int = 2048, seed: int = 0
) -> pd.DataFrame:
    """Returns the statistics of every network of a run: a row a network and layer.

    An example, x ~ N(0, I), is what a token is to a language model. Examples are fresh, the same for all networks.

    Args:
        run: its folder.
        weights: of students: average (the first of the run's decays) or raw.
        num_examples: how many.
        seed: of the examples.

    Returns:
        A table: run; network, teacher or student; teacher (its kind); replicate; depth; init, temperature, block and
        weights of students; then the columns of `Accumulator.table`.

    Raises:
        InputError: as `load_weights`; for other weights, or a run without averages; for no examples; for weights
            that are not finite (a diverged arm keeps its last finite ones).

    Source: arXiv 2602.05970: aligned updates of tied teachers, near-orthogonal ones of independent teachers.
    """
    if weights not in ("average", "raw"):
        raise InputError(f"weights must be average or raw, got {weights}. Exponents are fitted to averages.")
    if num_examples < 1:
        raise InputError(f"num_examples must be 1 or more, got {num_examples}. 2048 is the default.")
    config, bank, state = load_weights(run)
    if weights == "average" and not config.average.decays:
        raise InputError(f"weights must be raw for {run}, got average. The run kept no averages.")
    inputs = np.asarray(jax.random.normal(jax.random.key(seed, impl="threefry2x32"), (num_examples, config.width))).T
    tables, compiled = [], {}
    for labels, network, params in _networks(config, bank, state, weights):
        # Networks of one depth are one program.
        compute = compiled.setdefault(id(network), jax.jit(network.hidden))
        table = _measure(compute, params, inputs)
        for place, (name, value) in enumerate(labels.items()):
            table.insert(place, name, value)
        tables.append(table)
    found = pd.concat(tables, ignore_index=True)
    found.insert(0, "run", str(run))
    return found


def _networks(
    config: TrainConfig, bank: Bank, state: dict[str, Any], weights: str
) -> Iterator[tuple[dict[str, Any], Functional, Any]]:
    """Labels, network and parameters of the teachers, then of the arms in their order; depth 0 has no layer."""
    teachers = jax.device_get(bank.teachers)
    common = {"teacher": config.teacher.kind}
    for replicate in range(config.replicates):
        own = jax.tree.map(lambda leaf, r=replicate: leaf[r], teachers)
        labels = {"network": "teacher", **common, "replicate": replicate, "depth": config.teacher.depth}
        yield labels | {"init": None, "temperature": None, "block": "euler", "weights": None}, bank.problem.teacher, own
    places: dict[int, int] = {}
    for arm in bank.arms:
        place = places[arm.depth] = places.get(arm.depth, -1) + 1
        if arm.depth == 0:
            continue
        stack = state["depths"][str(arm.depth)]
        params = stack["averages"][0] if weights == "average" else stack["params"]
        own = jax.tree.map(lambda leaf, p=place: leaf[p], params)
        labels = {"network": "student", **common, "replicate": arm.replicate, "depth": arm.depth}
        labels |= {"init": arm.init, "temperature": arm.temperature, "block": arm.block, "weights": weights}
        yield labels, bank.problem.students[str(arm.depth)], own


def _measure(compute: Callable[..., jax.Array], params: Any, inputs: np.ndarray) -> pd.DataFrame:
    """The table of one network; its states are computed once, a part of the examples at a time."""
    total: Accumulator | None = None
    for first in range(0, inputs.shape[1], _AT_ONCE):
        hidden = np.asarray(compute(params, jnp.asarray(inputs[:, first : first + _AT_ONCE]))).transpose(0, 2, 1)
        total = total or Accumulator(len(hidden) - 1)
        total.add(measure_states(hidden))
    assert total is not None
    return total.table()
