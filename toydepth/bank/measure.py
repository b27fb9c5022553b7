"""Which tiling, kernel and number of devices are fastest here: a short measurement before training, kept for later.

What is timed is the gradient of students of a few layers, on every device at once, by the code that training runs.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from toydepth.bank.bank import bank_shapes
from toydepth.bank.compiler import compiler_options
from toydepth.bank.devices import Layout, largest_count, prepare_devices
from toydepth.bank.flops import step_flops
from toydepth.bank.optimise import make_optimizer
from toydepth.bank.remember import is_whole, key_of, read_known, write_known
from toydepth.bank.step import losses_and_gradients
from toydepth.bank.tiling import Tiling, largest_part, next_part
from toydepth.config import OptimizerConfig, TrainConfig
from toydepth.errors import InputError

WORTH_FLOPS = 1e13
"""A training of fewer operations, half a minute or so on a desktop, is not worth the seconds of a measurement."""

_CHOSEN = ("count", "arms_at_a_time", "examples_at_a_time")
_Place = tuple[int, str, int, int]
_LAYERS = 4
_SECONDS = 0.01
_ROUNDS = 8
_BETTER = 0.97
"""A change must save 3 per cent: less is noise."""


def choose_layout(
    config: TrainConfig, before: dict[str, Any] | None = None, on_measure: Callable[[], None] = lambda: None
) -> Layout:
    """Returns the layout to train with: what the config says, and for what it leaves open, what was measured.

    On CPU, for trainings of WORTH_FLOPS or more, and unless device.measure is false. Elsewhere the rule of
    `prepare_devices` stands: all devices, and all work of a device at once.

    Args:
        config: device.count, device.arms_at_a_time and device.examples_at_a_time are taken where they are numbers,
            device.kernel where it is a name.
        before: what the record of an interrupted run says of its devices; its choice is kept, as other sums round
            differently. A record that names no kernel is of a time when XLA ran all layers.
        on_measure: called before a measurement, which takes some seconds.

    Raises:
        InputError: as `prepare_devices`; for an optimiser that cannot be built, before seconds are spent.
    """
    layout = prepare_devices(config)
    before = {"kernel": "xla", "why_kernel": ""} | before if before else None
    same = before if before and is_whole(before) and before.get("platform") == layout.platform else None
    # Where native layers cannot be had any more, the rest stays as it was.
    lost = bool(same) and same["kernel"] == "native" and config.device.kernel == "auto" and layout.kernel == "xla"
    if same and (again := _as_told(config, same | {"kernel": "xla"} if lost else same, "as before the interruption")):
        return dataclasses.replace(again, why_kernel=layout.why_kernel) if lost else again
    if layout.platform != "cpu" or not config.device.measure or _nothing_open(config):
        return layout
    key, known = key_of(config, layout), read_known()
    if key in known and (again := _as_told(config, known[key])):
        return again
    if step_flops(config) * config.steps < WORTH_FLOPS:
        return layout
    for depth in config.student.depths:
        make_optimizer(config, depth)
    on_measure()
    best = _fastest(config, layout)
    told = best.describe()
    write_known(read_known() | {key: {name: told[name] for name in (*_CHOSEN, "kernel", "why_so_many", "why_kernel")}})
    return best


def _nothing_open(config: TrainConfig) -> bool:
    return all(getattr(config.device, name) is not None for name in _CHOSEN) and config.device.kernel != "auto"


def _as_told(config: TrainConfig, told: dict[str, Any], why: str = "") -> Layout | None:
    """The layout of an earlier choice, in what the config leaves open; None where it does not fit any more."""
    still_open = {name: told[name] for name in _CHOSEN if getattr(config.device, name) is None}
    if config.device.kernel == "auto":
        still_open["kernel"] = told["kernel"]
    try:
        layout = prepare_devices(_with_device(config, **still_open))
    except InputError:
        return None
    tiling = dataclasses.replace(layout.tiling, why=why or told["why_so_many"])
    why_kernel = (why or told["why_kernel"]) if "kernel" in still_open else layout.why_kernel
    return dataclasses.replace(layout, tiling=tiling, why_kernel=why_kernel)


def _with_device(config: TrainConfig, **changes: Any) -> TrainConfig:
    return dataclasses.replace(config, device=dataclasses.replace(config.device, **changes))


def _fastest(config: TrainConfig, layout: Layout) -> Layout:
    """The best tiling of the rule's kernel; then whether XLA is faster where that is native; then half the devices.

    Native layers are expected to win: XLA's are tried at the rule's tiling, and at others only if they do.
    """
    race = _Race(config)
    best = _best_tiling(config, layout, race)
    if config.device.kernel == "auto" and layout.kernel == "native":
        by_xla = prepare_devices(_with_device(config, kernel="xla"))
        faster = race.is_faster(by_xla, best)
        why = f"XLA's took {race.ratio(by_xla, best):.2f} times as long"
        if faster:
            why = f"native ones took {race.ratio(best, by_xla):.2f} times as long"
            best = _best_tiling(config, by_xla, race)
        best = dataclasses.replace(best, why_kernel=why)
    if config.device.count is None and layout.count > 1:
        fewer = largest_count(config, layout.count // 2)
        half = prepare_devices(_with_device(config, count=fewer, kernel=best.kernel))
        half = dataclasses.replace(half, why_kernel=best.why_kernel)
        best = half if race.is_faster(half, best) else best
    return dataclasses.replace(best, tiling=dataclasses.replace(best.tiling, why=race.why(best)))


def _best_tiling(config: TrainConfig, layout: Layout, race: _Race) -> Layout:
    """Goes from a tiling to its neighbours as long as one is faster."""
    best, better = layout, True
    while better:
        better = False
        for other in _neighbours(config, best):
            if race.is_faster(other, best):
                best, better = other, True
                break
    return best


class _Race:
    """Layouts against each other, two at a time and in turns, so that both meet what else the machine does."""

    def __init__(self, config: TrainConfig):
        self._config = config
        self._runs: dict[_Place, Callable[[], float]] = {}
        self._seconds: dict[_Place, float] = {}

    def is_faster(self, one: Layout, other: Layout) -> bool:
        """Whether a gradient takes less time, by more than noise."""
        places = [self._place(layout) for layout in (one, other)]
        for layout, place in zip((one, other), places, strict=True):
            if place not in self._runs:
                self._runs[place] = _timer(self._config, layout)
        for _ in range(_ROUNDS):
            for place in places:
                self._seconds[place] = min(self._runs[place](), self._seconds.get(place, float("inf")))
        return self._seconds[places[0]] < _BETTER * self._seconds[places[1]]

    def ratio(self, one: Layout, other: Layout) -> float:
        """How many times as long a gradient took, of two layouts that were measured."""
        return self._seconds[self._place(one)] / self._seconds[self._place(other)]

    def why(self, best: Layout) -> str:
        """Says what was measured."""
        chosen = self._place(best)
        ratios = [value / self._seconds[chosen] for place, value in self._seconds.items() if place != chosen]
        if not ratios:
            return "the only choice"
        times = f"{min(ratios):.2f} to {max(ratios):.2f} times as long"
        return f"best of {len(ratios) + 1} measured, the others took {times}"

    @staticmethod
    def _place(layout: Layout) -> _Place:
        return layout.count, layout.kernel, layout.tiling.arms, layout.tiling.examples


def _neighbours(config: TrainConfig, layout: Layout) -> list[Layout]:
    """The same with half or twice as many arms or examples at a time, where the config leaves that open.

    Numbers of arms that divide all: what is left over would be a program of its own.
    """
    tiling = layout.tiling
    arms, examples = layout.share(config).arms, config.batch_size // layout.batch
    found: list[Tiling] = []
    if config.device.arms_at_a_time is None:
        for wanted in (next_part(arms, 2 * tiling.arms), largest_part(arms, max(tiling.arms // 2, 1))):
            found.append(dataclasses.replace(tiling, arms=wanted))
    if config.device.examples_at_a_time is None:
        for wanted in (largest_part(examples, max(tiling.examples // 2, 1)), next_part(examples, 2 * tiling.examples)):
            found.append(dataclasses.replace(tiling, examples=wanted))
    return [dataclasses.replace(layout, tiling=other) for other in dict.fromkeys(found) if other != tiling]


def _timer(config: TrainConfig, layout: Layout) -> Callable[[], float]:
    """Compiles the program, and returns what gives the seconds of one gradient of every arm, over some repetitions."""
    run, arguments = _program(config, layout)

    def seconds(repetitions: int) -> float:
        begun = time.perf_counter()
        jax.block_until_ready(run(*arguments, repetitions))
        return (time.perf_counter() - begun) / repetitions

    seconds(1)
    repetitions = max(int(_SECONDS / min(seconds(1), seconds(1))), 1)
    return lambda: seconds(repetitions)


def _program(config: TrainConfig, layout: Layout) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The gradient of small students of the same shape, repeated, and its arguments; only their shapes matter."""
    small = dataclasses.replace(
        config,
        student=dataclasses.replace(config.student, depths=(_LAYERS,)),
        teacher=dataclasses.replace(config.teacher, depth=_LAYERS),
        optimizer=OptimizerConfig("sgd", depth_power=0.0),
        learning_rate=1e-3,
    )
    problem, teachers, heads, students = bank_shapes(small, layout)
    share = layout.share(config)
    inputs = jax.ShapeDtypeStruct((config.width, config.batch_size), jnp.float32)
    shapes = (teachers, heads, inputs, students)
    specs = (P("replica"), P("replica"), P(None, "batch"), P(Layout.ARMS))
    random = np.random.default_rng(0)

    def draw(shape: jax.ShapeDtypeStruct, spec: P) -> jax.Array:
        values = random.normal(size=shape.shape, scale=config.width**-0.5).astype(np.float32)
        return jax.device_put(values, NamedSharding(layout.mesh, spec))

    def run(teachers: Any, heads: Any, x: jax.Array, weights: Any, repetitions: jax.Array) -> Any:
        def body(_: jax.Array, weights: Any) -> Any:
            found = losses_and_gradients(problem, teachers, heads, weights, x, share)
            gradients = {depth: gradient for depth, (_, gradient) in found.items()}
            return jax.tree.map(lambda weight, gradient: weight - 1e-9 * gradient, weights, gradients)

        return jax.lax.fori_loop(0, repetitions, body, weights)

    mapped = jax.shard_map(run, mesh=layout.mesh, in_specs=(*specs, P()), out_specs=specs[-1], check_vma=False)
    arguments = tuple(
        jax.tree.map(lambda shape, spec=spec: draw(shape, spec), tree) for tree, spec in zip(shapes, specs, strict=True)
    )
    return jax.jit(mapped, compiler_options=compiler_options(layout.platform)), arguments
