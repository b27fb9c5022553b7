"""One update of every arm, and one batch of test losses: pure functions of arrays, run inside the compiled programs.

The arms of a depth lie on one leading axis, in the order replicate, temperature, init. One axis, not three: on CPU, XLA
runs the matrix products of nested batches at half the speed. The teacher is run once for each replicate;
temperatures only divide its logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from toydepth.bank.losses import log_probabilities, per_example_kl, per_example_mse
from toydepth.bank.share import Share
from toydepth.bank.tiling import Tiling
from toydepth.net import Functional, Params


@dataclass(frozen=True)
class Problem:
    """What is the same for every update: the networks, the loss, the optimisers of each depth, the decays."""

    width: int
    kernel: str
    tiling: Tiling
    loss: str
    learned_head: bool
    temperatures: jax.Array
    student_temperatures: jax.Array
    data_key: jax.Array
    teacher: Functional
    students: dict[str, Functional]
    optimizers: dict[str, optax.GradientTransformation]
    decays: tuple[float, ...]

    def targets(self, teacher: Params, head: Any, x: jax.Array) -> jax.Array:
        """One teacher's targets: (temperatures, width, batch) hidden states, or (temperatures, V, batch) log p."""
        hidden = self.teacher.apply(teacher, x, self.kernel)
        if self.loss == "mse":
            return hidden[None]
        return jax.vmap(lambda t: log_probabilities(hidden, head, t))(self.temperatures)

    def losses(
        self, depth: str, params: Params, head: Any, target: jax.Array, temperature: jax.Array, x: jax.Array
    ) -> jax.Array:
        """One arm's losses, (batch,)."""
        hidden = self.students[depth].apply(params, x, self.kernel)
        if self.loss == "mse":
            return per_example_mse(hidden, target)
        head = params["head"] if self.learned_head else head
        return per_example_kl(log_probabilities(hidden, head, temperature), target)


def train_step(
    problem: Problem,
    teachers: Params,
    heads: Any,
    state: dict[str, Any],
    x: jax.Array,
    share: Share,
) -> dict[str, Any]:
    """Returns the state after one update of every arm on the inputs x (width, batch / share.batches).

    Runs on every device of the mesh, on its share of the arms.

    An arm whose loss or gradient is not finite keeps its weights from then on; the others do not notice.
    """
    weights = {depth: stack["params"] for depth, stack in state["depths"].items()}
    gradients = losses_and_gradients(problem, teachers, heads, weights, x, share)
    depths = {
        depth: _update(
            problem.optimizers[depth], problem.decays, stack, gradients[depth][0], gradients[depth][1], state["step"]
        )
        for depth, stack in state["depths"].items()
    }
    return {"step": state["step"] + 1, "count": state["count"] + 1, "depths": depths}


def draw_inputs(problem: Problem, step: jax.Array, batch_size: int, share: Share) -> jax.Array:
    """Returns this device's part of the batch that update `step` (from 0) sees: (width, batch_size / share.batches).

    Every device draws the whole batch and takes its part: any number of devices sees the same numbers.
    """
    x = jax.random.normal(jax.random.fold_in(problem.data_key, step), (batch_size, problem.width)).T
    part = jax.lax.axis_index("batch") * (batch_size // share.batches)
    return jax.lax.dynamic_slice_in_dim(x, part, batch_size // share.batches, axis=1)


def losses_and_gradients(
    problem: Problem, teachers: Params, heads: Any, weights: Any, x: jax.Array, share: Share
) -> dict[str, tuple[jax.Array, Params]]:
    """Returns the mean loss of every arm, and its gradient, over the batch of all devices: {depth: (loss, gradient)}.

    The inputs x are (width, batch / share.batches).
    """
    teachers, heads = share.of_teachers((teachers, heads))
    targets = _targets(problem, teachers, heads, x)
    found = {}
    for depth, params in weights.items():

        def mean_loss(params: Params, head: Any, temperature: jax.Array, x: jax.Array, target: jax.Array, depth=depth):
            return jnp.mean(problem.losses(depth, params, head, target, temperature, x))

        def of_arm(params: Params, head: Any, target: jax.Array, temperature: jax.Array, mean_loss=mean_loss):
            of_tile = lambda x, target: jax.value_and_grad(mean_loss)(params, head, temperature, x, target)  # noqa: E731
            return mean_over_tiles(of_tile, x.shape[-1] // problem.tiling.examples, x, target)

        found[depth] = _over_arms(of_arm, problem, share, params, heads, targets)
    if share.batches > 1:
        # One message for everything: what costs is the number of meetings of the devices, not the bytes.
        flat, restore = ravel_pytree(found)
        found = restore(jax.lax.pmean(flat, "batch"))
    return found


def mean_over_tiles(function: Callable[..., Any], tiles: int, *arrays: jax.Array) -> Any:
    """Returns the mean of what `function` gives for each of `tiles` parts of the last axis, one after another.

    What one keeps for its backward pass stays in the cache.
    """
    if tiles <= 1:
        return function(*arrays)
    cut = [jnp.moveaxis(a.reshape(*a.shape[:-1], tiles, -1), -2, 0) for a in arrays]
    nothing = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(function, *(a[0] for a in cut)))
    add = lambda total, part: (jax.tree.map(jnp.add, total, function(*part)), None)  # noqa: E731
    total, _ = jax.lax.scan(add, nothing, cut)
    return jax.tree.map(lambda a: a / tiles, total)


def evaluate_batch(problem: Problem, teachers: Params, heads: Any, weights: Any, x: jax.Array, share: Share) -> Any:
    """Returns per-example losses on x (width, batch) for weights {depth: {name: params}}, (..., batch) each."""
    teachers, heads = share.of_teachers((teachers, heads))
    targets = _targets(problem, teachers, heads, x)
    result = {}
    for depth, sets in weights.items():

        def losses(params: Params, head: Any, target: jax.Array, temperature: jax.Array, depth: str = depth):
            return problem.losses(depth, params, head, target, temperature, x)

        result[depth] = {
            name: _over_arms(losses, problem, share, params, heads, targets) for name, params in sets.items()
        }
    return result


def _targets(problem: Problem, teachers: Params, heads: Any, x: jax.Array) -> jax.Array:
    """Every teacher's targets, (teachers, temperatures, ..., batch)."""
    return jax.vmap(lambda teacher, head: problem.targets(teacher, head, x))(teachers, heads)


def _over_arms(
    function: Callable[..., Any], problem: Problem, share: Share, params: Params, heads: Any, targets: jax.Array
) -> Any:
    """Calls function(params, head, target, temperature) of every arm of a depth; results have the axis of the arms."""
    heads = None if heads is None else share.of_arms(heads[:, None])
    inputs = (params, heads, share.of_arms(targets), share.of_arms(problem.student_temperatures[None, :]))
    return _in_groups(jax.vmap(function), share.arms, problem.tiling.arms, inputs)


def _in_groups(function: Callable[..., Any], arms: int, most: int, inputs: Any) -> Any:
    """Calls a function of stacks (arms, ...) with `most` arms at a time, and with what is left.

    As jax.lax.map does with its batch_size, which fails on the empty weights of a student of depth 0.
    """
    if arms <= most:
        return function(*inputs)
    groups, left = divmod(arms, most)
    whole = groups * most
    cut = jax.tree.map(lambda a: a[:whole].reshape(groups, most, *a.shape[1:]), inputs)
    found = jax.lax.map(lambda group: function(*group), cut)
    found = jax.tree.map(lambda a: a.reshape(whole, *a.shape[2:]), found)
    if left:
        rest = function(*jax.tree.map(lambda a: a[whole:], inputs))
        found = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), found, rest)
    return found


def _update(
    optimizer: optax.GradientTransformation,
    decays: tuple[float, ...],
    stack: dict[str, Any],
    loss: jax.Array,
    gradient: Params,
    step: jax.Array,
) -> dict[str, Any]:
    finite = jnp.isfinite(loss)
    for leaf in jax.tree.leaves(gradient):
        finite &= jnp.isfinite(leaf).all(axis=tuple(range(1, leaf.ndim)))
    alive = stack["alive"] & finite
    # The optimiser sees one arm at a time, so that one which mixes its weights (norms, matrices) mixes no arms.
    updates, optimizer_state = jax.vmap(optimizer.update)(gradient, stack["optimizer"], stack["params"])
    params = optax.apply_updates(stack["params"], updates)
    averages = tuple(
        optax.incremental_update(params, average, 1 - decay)
        for decay, average in zip(decays, stack["averages"], strict=True)
    )

    def keep(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(alive.reshape(alive.shape + (1,) * (new.ndim - 1)), new, old)

    new = {"params": params, "optimizer": optimizer_state, "averages": averages}
    old = {name: stack[name] for name in new}
    return jax.tree.map(keep, new, old) | {
        "loss_sum": stack["loss_sum"] + jnp.where(alive, loss, 0.0),
        "alive": alive,
        "first_bad": jnp.where(stack["alive"] & ~alive, step + 1, stack["first_bad"]),
    }
