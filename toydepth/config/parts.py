"""The parts of the configuration, one dataclass a group; each checks its own values. Meanings: docs/notation.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toydepth.config.checks import as_tuple, distinct, integer, member, real, refuse, seed

# OmegaConf knows no unions: `Any` stands where a value or a list of values, a number or a word, may be given.


def _set(node: Any, **values: Any) -> None:
    """Replaces fields of a frozen dataclass by their checked values; for use in __post_init__ only."""
    for name, value in values.items():
        object.__setattr__(node, name, value)


@dataclass(frozen=True)
class TeacherConfig:
    """kind: tied | independent | correlated; depth L_t; rho of correlated; seed (null: the run's); head_init."""

    kind: str = "tied"
    depth: int = 64
    rho: float | None = None
    seed: int | None = None
    head_init: str = "normal"

    def __post_init__(self) -> None:
        member("teacher.kind", self.kind, ("tied", "independent", "correlated"))
        integer("teacher.depth", self.depth, 0)
        member("teacher.head_init", self.head_init, ("normal", "uniform"))
        if self.seed is not None:
            seed("teacher.seed", self.seed)
        if self.rho is not None:
            real("teacher.rho", self.rho, 0.0, 1.0)


@dataclass(frozen=True)
class StudentConfig:
    """depths (blocks); init: zero, euler or both; block: euler | rk2; head: none | teacher | learned; temperature.

    temperature: `auto` (the target's with the teacher's head, 1 with a learned one), `target`, or a number.
    """

    depths: Any = (3, 4, 6, 8, 12, 16)
    init: Any = ("zero",)
    block: str = "euler"
    head: str = "none"
    temperature: Any = "auto"

    def __post_init__(self) -> None:
        depths = as_tuple("student.depths", self.depths)
        depths = tuple(integer("student.depths", d, 0, "Depths are numbers of blocks.") for d in depths)
        distinct("student.depths", depths, "Write student.depths=[3,4,6].")
        init = as_tuple("student.init", self.init)
        for word in init:
            member("student.init", word, ("zero", "euler"))
        distinct("student.init", init, "Write student.init=zero, or student.init=[zero,euler].")
        member("student.block", self.block, ("euler", "rk2"))
        member("student.head", self.head, ("none", "teacher", "learned"))
        temperature = self.temperature
        if isinstance(temperature, str):
            member("student.temperature", temperature, ("auto", "target", "a number greater than 0"))
        else:
            temperature = real("student.temperature", temperature, 0.0, open_low=True)
        if 0 in depths and self.head != "learned":
            raise refuse("student.depths", "1 or more without a learned head", 0, "Set student.head=learned.")
        _set(self, depths=depths, init=init, temperature=temperature)


@dataclass(frozen=True)
class TargetConfig:
    """temperatures: of the teacher's distribution, for the kl loss."""

    temperatures: Any = (1.0,)

    def __post_init__(self) -> None:
        values = as_tuple("target.temperatures", self.temperatures)
        values = tuple(real("target.temperatures", t, 0.0, open_low=True) for t in values)
        distinct("target.temperatures", values, "Write target.temperatures=[0.1,1].")
        _set(self, temperatures=values)


@dataclass(frozen=True)
class LossConfig:
    """name: mse (hidden states, mean over batch and coordinates) | kl (teacher || student, nats)."""

    name: str = "mse"

    def __post_init__(self) -> None:
        member("loss.name", self.name, ("mse", "kl"))


@dataclass(frozen=True)
class OptimizerConfig:
    """name: of an optax optimiser; options: its keyword arguments.

    The learning rate of depth ell is learning_rate * learning_rate_factor / ell^depth_power, times the schedule;
    depth_power 0 is flat.
    """

    name: str = "adam"
    options: dict[str, Any] = field(default_factory=dict)
    learning_rate_factor: float = 1.0
    depth_power: float = 0.5

    def __post_init__(self) -> None:
        real("optimizer.learning_rate_factor", self.learning_rate_factor, 0.0, open_low=True)
        real("optimizer.depth_power", self.depth_power, -10.0, 10.0)


@dataclass(frozen=True)
class ScheduleConfig:
    """name: constant | stable_then_linear | cosine; over the last decay_fraction of the steps, to final_fraction."""

    name: str = "stable_then_linear"
    decay_fraction: float = 0.7
    final_fraction: float = 1e-3

    def __post_init__(self) -> None:
        member("schedule.name", self.name, ("constant", "stable_then_linear", "cosine"))
        real("schedule.decay_fraction", self.decay_fraction, 0.0, 1.0)
        real("schedule.final_fraction", self.final_fraction, 0.0, 1.0)


@dataclass(frozen=True)
class AverageConfig:
    """decays: of the exponential moving averages of the weights; [] or 0: off. The first is the one fits read."""

    decays: Any = (0.998,)

    def __post_init__(self) -> None:
        values = as_tuple("average.decays", self.decays)
        values = tuple(real("average.decays", d, 0.0, 1.0) for d in values)
        values = tuple(d for d in values if d != 0)
        if values:
            distinct("average.decays", values, "")
        if 1.0 in values:
            raise refuse("average.decays", "less than 1", 1.0, "A decay of 1 never moves.")
        _set(self, decays=values)


@dataclass(frozen=True)
class EvalConfig:
    """points: evaluations, evenly spaced in ln step, besides step 0; samples: of the fixed test set."""

    points: int = 40
    samples: int = 4096

    def __post_init__(self) -> None:
        integer("eval.points", self.points, 1)
        integer("eval.samples", self.samples, 2)


@dataclass(frozen=True)
class GradientsConfig:
    """Snapshots of every arm's gradient while it trains; they change no number of the run.

    points: how many, evenly spaced in ln step from step 1 to the last; early ones fall together; 0: none.
    stream: of what loss, train (the batch that the next update sees) or test (the fixed test set, eval.samples).
    weights: where it is taken, raw or average (the first of average.decays).
    """

    points: int = 0
    stream: str = "train"
    weights: str = "raw"

    def __post_init__(self) -> None:
        points = integer("gradients.points", self.points, 0, "0 writes no snapshots.")
        member("gradients.stream", self.stream, ("train", "test"))
        member("gradients.weights", self.weights, ("raw", "average"))
        _set(self, points=points)


@dataclass(frozen=True)
class CheckpointConfig:
    """every_seconds: between checkpoints; 0: only when the run is interrupted."""

    every_seconds: float = 180.0

    def __post_init__(self) -> None:
        real("checkpoint.every_seconds", self.every_seconds, 0.0)


@dataclass(frozen=True)
class TrackerConfig:
    """name: wandb | jsonl | none; mode (wandb): auto | online | offline; project; tags."""

    name: str = "wandb"
    project: str = "toydepth"
    mode: str = "auto"
    tags: Any = ()

    def __post_init__(self) -> None:
        member("tracker.name", self.name, ("wandb", "jsonl", "none"))
        member("tracker.mode", self.mode, ("auto", "online", "offline"))
        _set(self, tags=tuple(str(tag) for tag in as_tuple("tracker.tags", self.tags)))


@dataclass(frozen=True)
class DeviceConfig:
    """platform: auto | cpu | gpu | tpu; count: devices to use, null for all that divide the work; precision of dots.

    kernel: what runs the layers, xla, or native: those of `toydepth.kernel` (CPU, compiled on the machine, float32
    whatever the precision); auto: native where it can be had and nothing measured was faster.
    arms_at_a_time, examples_at_a_time: of one depth and of the batch, on one device; null: chosen (the record says how
    many and why). measure: whether what is null is chosen by a short measurement, kept for the next run on this
    machine, where training is long enough to be worth it; else by a rule from the size of the cache.
    """

    platform: str = "auto"
    count: int | None = None
    precision: str = "highest"
    arms_at_a_time: int | None = None
    examples_at_a_time: int | None = None
    measure: bool = True
    kernel: str = "auto"

    def __post_init__(self) -> None:
        member("device.kernel", self.kernel, ("auto", "xla", "native"))
        member("device.platform", self.platform, ("auto", "cpu", "gpu", "tpu"))
        member("device.precision", self.precision, ("highest", "high", "default"))
        for name in ("count", "arms_at_a_time", "examples_at_a_time"):
            if getattr(self, name) is not None:
                integer(f"device.{name}", getattr(self, name), 1)
