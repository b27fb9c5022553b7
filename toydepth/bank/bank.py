"""The bank: teachers and students as arrays, and the two compiled programs that train and evaluate them all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from toydepth.bank.arms import Arm, make_arms
from toydepth.bank.compiler import compiler_options, options_to_run_once
from toydepth.bank.devices import Layout
from toydepth.bank.optimise import make_optimizer
from toydepth.bank.step import Problem, draw_inputs, evaluate_batch, train_step
from toydepth.bank.streams import Streams, make_streams
from toydepth.config import TrainConfig
from toydepth.net import (
    Functional,
    Params,
    functional,
    make_euler_student,
    make_head,
    make_student,
    make_teacher,
    parameters,
)

State = dict[str, Any]


@dataclass
class Bank:
    """Teachers, arms and the programs that act on them.

    `state` is a pytree: step, count (updates since the last evaluation) and, for each depth, params, optimizer,
    averages (one set a decay), loss_sum (since the last evaluation), alive, first_bad (the update that was not finite,
    -1 for none). Every array of a depth has the axis of its arms first: replicate, temperature, init, in that order.

    `num_traces` counts how often the training program was traced: once, whatever the number and length of chunks.
    """

    config: TrainConfig
    layout: Layout
    arms: list[Arm]
    problem: Problem
    teachers: Params
    heads: jax.Array | None
    test_inputs: jax.Array
    state: State
    num_traces: int = 0

    def __post_init__(self) -> None:
        self._advance, self._evaluate = self._compile()

    def advance(self, state: State, stop: int) -> State:
        """Trains every arm until `stop` updates are done; the given state is used up (its memory is donated)."""
        return self._advance(self.teachers, self.heads, state, stop)

    def evaluate(self, state: State) -> dict[str, np.ndarray]:
        """Returns the test loss of the raw weights and of each average, with standard errors.

        Keys 'test_loss', 'standard_error' for raw weights, and 'test_loss/0.998', ... for a decay; each (arms,).
        The mean is over the fixed test set, taken in float64 from per-example losses.
        """
        weights = {
            depth: {"": stack["params"]}
            | {f"/{d}": a for d, a in zip(self.config.average.decays, stack["averages"], strict=True)}
            for depth, stack in state["depths"].items()
        }
        per_example = jax.device_get(self._evaluate(self.teachers, self.heads, weights, self.test_inputs))
        result = {}
        for suffix in per_example[str(self.config.student.depths[0])]:
            losses = np.concatenate(
                [np.asarray(per_example[str(d)][suffix], float).reshape(-1, self.config.eval.samples)
                 for d in self.config.student.depths]
            )  # fmt: skip
            with np.errstate(all="ignore"):
                result[f"test_loss{suffix}"] = losses.mean(axis=1)
                result[f"standard_error{suffix}"] = losses.std(axis=1, ddof=1) / losses.shape[1] ** 0.5
        return result

    def by_arm(self, state: State, name: str) -> np.ndarray:
        """Returns a number of every arm, (arms,), from the state: 'loss_sum', 'alive' or 'first_bad'."""
        depths = [np.asarray(jax.device_get(state["depths"][str(d)][name])) for d in self.config.student.depths]
        return np.concatenate(depths)

    def reset_window(self, state: State) -> State:
        """Starts a new window of the mean training loss."""
        depths = {d: s | self._put({"loss_sum": jnp.zeros_like(s["loss_sum"])}) for d, s in state["depths"].items()}
        return state | {"depths": depths} | self._put({"count": jnp.zeros_like(state["count"])})

    def bury(self, state: State, dead: np.ndarray, step: int) -> State:
        """Marks arms (arms,) as diverged at `step`; their weights stay as they are from then on."""
        depths, offset = {}, 0
        for depth in map(str, self.config.student.depths):
            stack = state["depths"][depth]
            arms = len(stack["alive"])
            now = jnp.asarray(dead[offset : offset + arms]) & stack["alive"]
            offset += arms
            first_bad = jnp.where(now, step, stack["first_bad"])
            depths[depth] = stack | self._put({"alive": stack["alive"] & ~now, "first_bad": first_bad})
        return state | {"depths": depths}

    def place(self, state: Any, axes: Any = Layout.ARMS) -> Any:
        """Lays a state out on the devices, its first axis over `axes`, in memory of its own: it may be donated."""
        return jax.jit(lambda tree: jax.tree.map(jnp.copy, tree), out_shardings=self._shardings(state, axes))(state)

    def _put(self, part: Any) -> Any:
        """Lays out a few new arrays, without the program that `place` compiles for a whole state."""
        return jax.device_put(part, self._shardings(part, Layout.ARMS))

    def _shardings(self, tree: Any, axes: Any) -> Any:
        return jax.tree.map(lambda spec: NamedSharding(self.layout.mesh, spec), _specs(tree, axes))

    def _compile(self):
        mesh, problem, batch = self.layout.mesh, self.problem, self.config.batch_size
        share = self.layout.share(self.config)
        shards = share.batches
        tile = min(self.config.eval.samples // shards, batch)
        while (self.config.eval.samples // shards) % tile:
            tile -= 1

        def advance(teachers: Params, heads: Any, state: State, stop: jax.Array) -> State:
            self.num_traces += 1

            def body(step: jax.Array, state: State) -> State:
                return train_step(problem, teachers, heads, state, draw_inputs(problem, step, batch, share), share)

            return jax.lax.fori_loop(state["step"], stop, body, state)

        def evaluate(teachers: Params, heads: Any, weights: Any, inputs: jax.Array) -> Any:
            tiles = inputs.reshape(inputs.shape[0], -1, tile).transpose(1, 0, 2)
            losses = jax.lax.map(lambda x: evaluate_batch(problem, teachers, heads, weights, x, share), tiles)
            return jax.tree.map(lambda a: jnp.moveaxis(a, 0, -2).reshape(*a.shape[1:-1], -1), losses)

        fixed = (_specs(self.teachers, "replica"), _specs(self.heads, "replica"))
        specs = _specs(self.state, Layout.ARMS)
        mapped = jax.shard_map(advance, mesh=mesh, in_specs=(*fixed, specs, P()), out_specs=specs, check_vma=False)
        options = compiler_options(self.layout.platform)
        losses = jax.shard_map(
            evaluate,
            mesh=mesh,
            in_specs=(*fixed, P(Layout.ARMS), P(None, "batch")),
            out_specs=P(Layout.ARMS, "batch"),
            check_vma=False,
        )
        return jax.jit(mapped, donate_argnums=2, compiler_options=options), jax.jit(losses, compiler_options=options)


def make_bank(config: TrainConfig, layout: Layout) -> Bank:
    """Builds teachers and students from the seed, on the devices of the layout; nothing is compiled for training yet.

    Raises:
        InputError: for an optimiser that cannot be built.
    """
    # First of all, as it may refuse: nothing has been compiled yet.
    optimizers = {depth: make_optimizer(config, depth) for depth in config.student.depths}
    streams = make_streams(config.seed, config.teacher_seed)
    options = options_to_run_once(layout.platform)
    teachers, heads = jax.jit(partial(_draw_teachers, config), compiler_options=options)(streams.teacher)
    problem = _make_problem(config, streams, optimizers, layout)
    depths = _make_stacks(config, problem, layout, teachers, streams.student)
    test = jax.random.normal(streams.test, (config.eval.samples, config.width)).T
    nothing = NamedSharding(layout.mesh, P())
    state: State = {name: jax.device_put(jnp.int32(0), nothing) for name in ("step", "count")} | {"depths": depths}
    bank = Bank(config, layout, make_arms(config), problem, teachers, heads, test, state)
    bank.teachers, bank.heads = bank.place(teachers, "replica"), bank.place(heads, "replica")
    bank.test_inputs = jax.device_put(test, NamedSharding(layout.mesh, P(None, "batch")))
    return bank


def bank_shapes(config: TrainConfig, layout: Layout) -> tuple[Problem, Params, Any, dict[str, Params]]:
    """Returns the problem of a bank, and the shapes of its teachers, heads and students; nothing is drawn."""
    streams = make_streams(config.seed, config.teacher_seed)
    optimizers = {depth: make_optimizer(config, depth) for depth in config.student.depths}
    problem = _make_problem(config, streams, optimizers, layout)
    teachers, heads = jax.eval_shape(partial(_draw_teachers, config), streams.teacher)
    stacks = jax.eval_shape(partial(_draw_stacks, config, problem), teachers, streams.student)
    return problem, teachers, heads, {depth: stack["params"] for depth, stack in stacks.items()}


def _specs(tree: Any, axes: Any) -> Any:
    """The first axis, of replicates or of arms, over `axes` of the mesh; scalars everywhere."""
    return jax.tree.map(lambda leaf: P(axes) if jnp.ndim(leaf) else P(), tree)


def _teacher(config: TrainConfig, key: jax.Array):
    teacher = config.teacher
    return make_teacher(teacher.kind, teacher.depth, width=config.width, key=key, rho=teacher.rho or 0.0)


def _student_kind(config: TrainConfig) -> dict[str, Any]:
    """What all students of a bank have in common: their blocks, and the vocabulary of a head of their own."""
    vocabulary = config.vocabulary if config.student.head == "learned" else None
    return {"block": config.student.block, "vocabulary": vocabulary}


def _by_replicate(config: TrainConfig, stream: jax.Array) -> jax.Array:
    """A key a replicate; inside the programs that draw, as each call outside of one is a program too."""
    return jax.vmap(lambda replicate: jax.random.fold_in(stream, replicate))(jnp.arange(config.replicates))


def _draw_teachers(config: TrainConfig, stream: jax.Array) -> tuple[Params, jax.Array | None]:
    def make(key: jax.Array):
        head_key, body_key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        if config.loss.name == "mse":
            return parameters(_teacher(config, body_key)), None
        head = make_head(config.teacher.head_init, width=config.width, vocabulary=config.vocabulary, key=head_key)
        return parameters(_teacher(config, body_key)), head

    return jax.vmap(make)(_by_replicate(config, stream))


def _make_stacks(
    config: TrainConfig, problem: Problem, layout: Layout, teachers: Params, stream: jax.Array
) -> dict[str, State]:
    """Returns the state of every depth on the devices.

    One program for all of it: what takes time here is compilation.
    """
    draw = partial(_draw_stacks, config, problem)
    specs = _specs(jax.eval_shape(draw, teachers, stream), Layout.ARMS)
    shardings = jax.tree.map(lambda spec: NamedSharding(layout.mesh, spec), specs)
    options = options_to_run_once(layout.platform)
    return jax.jit(draw, out_shardings=shardings, compiler_options=options)(teachers, stream)


def _draw_stacks(config: TrainConfig, problem: Problem, teachers: Params, stream: jax.Array) -> dict[str, State]:
    """The state of every depth, the axis of the arms first; temperatures start alike."""
    depths, kind = config.student.depths, _student_kind(config)

    def from_zero(key: jax.Array) -> dict[str, Params]:
        # Layers are drawn one by one from the key, so the deepest student holds the draws of all.
        deepest = parameters(make_student(max(depths), width=config.width, key=key, **kind))
        cut = lambda depth: jax.tree.map(lambda leaf: leaf[:depth], deepest["stack"])  # noqa: E731
        return {str(depth): deepest | {"stack": cut(depth)} for depth in depths}

    def from_euler(teacher: Params) -> dict[str, Params]:
        module = problem.teacher.module(teacher)
        make = lambda depth: make_euler_student(depth, module, **kind)  # noqa: E731
        return {str(depth): parameters(make(depth)) for depth in depths}

    def all_inits(teachers: Params, keys: jax.Array) -> dict[str, Params]:
        make = {"zero": lambda: jax.vmap(from_zero)(keys), "euler": lambda: jax.vmap(from_euler)(teachers)}
        inits = [make[init]() for init in config.student.init]
        temperatures = len(config.target.temperatures)
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), *inits)
        return jax.tree.map(lambda leaf: one_axis(jnp.stack([leaf] * temperatures, axis=1)), stacked)

    def one_axis(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(leaf.shape[0] * leaf.shape[1] * leaf.shape[2], *leaf.shape[3:])

    params = all_inits(teachers, _by_replicate(config, stream))
    return {depth: _initial_stack(config, problem.optimizers[depth], params[depth]) for depth in params}


def _initial_stack(config: TrainConfig, optimizer: optax.GradientTransformation, params: Params) -> State:
    shape = jax.tree.leaves(params)[0].shape[:1]
    return {
        "params": params,
        "optimizer": jax.vmap(optimizer.init)(params),
        "averages": tuple(params for _ in config.average.decays),
        "loss_sum": jnp.zeros(shape),
        "alive": jnp.ones(shape, bool),
        "first_bad": jnp.full(shape, -1, jnp.int32),
    }


def _make_problem(
    config: TrainConfig, streams: Streams, optimizers: dict[int, optax.GradientTransformation], layout: Layout
) -> Problem:
    temperatures = config.target.temperatures
    key = jax.random.key(0, impl="threefry2x32")

    def student(depth: int) -> Functional:
        return functional(lambda: make_student(depth, width=config.width, key=key, **_student_kind(config)))

    return Problem(
        width=config.width,
        kernel=layout.kernel,
        tiling=layout.tiling,
        loss=config.loss.name,
        learned_head=config.student.head == "learned",
        temperatures=jnp.array(temperatures),
        student_temperatures=jnp.array([config.student_temperature(t) for t in temperatures]),
        data_key=streams.data,
        teacher=functional(lambda: _teacher(config, key)),
        students={str(depth): student(depth) for depth in optimizers},
        optimizers={str(depth): optimizer for depth, optimizer in optimizers.items()},
        decays=config.average.decays,
    )
