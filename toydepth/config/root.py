"""The root of the configuration: what one training job is, and the checks that need more than one part."""

from __future__ import annotations

from dataclasses import dataclass, field

from toydepth.config.checks import integer, real, refuse, seed
from toydepth.config.parts import (
    AverageConfig,
    CheckpointConfig,
    DeviceConfig,
    EvalConfig,
    GradientsConfig,
    LossConfig,
    OptimizerConfig,
    ScheduleConfig,
    StudentConfig,
    TargetConfig,
    TeacherConfig,
    TrackerConfig,
)

# The normal numbers of float32: beyond them a rate is infinite, or loses its digits and ends as 0.
_SMALLEST, _LARGEST = 1.2e-38, 3.4e38


@dataclass(frozen=True)
class TrainConfig:
    """One job: a bank of students (arms) trained against the teachers of its replicates.

    Arms are student.depths x target.temperatures x student.init x replicates. width m, vocabulary V, batch_size B.

    Raises:
        InputError: for the first value, or pair of values, that cannot be used; one line naming the key.

    Example:
        >>> config = TrainConfig(steps=10, student=StudentConfig(depths=12))
        >>> config.student.depths
        (12,)
        >>> TrainConfig(steps=0)
        Traceback (most recent call last):
        toydepth.errors.InputError: steps must be a whole number, at least 1, got 0. Give the number of updates.
    """

    name: str = "custom"
    seed: int = 0
    replicates: int = 1
    width: int = 8
    vocabulary: int = 32
    steps: int = 20000
    batch_size: int = 256
    learning_rate: float = 1e-2
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    student: StudentConfig = field(default_factory=StudentConfig)
    target: TargetConfig = field(default_factory=TargetConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    average: AverageConfig = field(default_factory=AverageConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    gradients: GradientsConfig = field(default_factory=GradientsConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    device: DeviceConfig = field(default_factory=DeviceConfig)
    resume: bool = True

    def __post_init__(self) -> None:
        if not self.name or any(c in self.name for c in "/\\\0"):
            raise refuse("name", "a word without slashes", repr(self.name), "It names the experiment and its folder.")
        seed("seed", self.seed)
        integer("replicates", self.replicates, 1)
        integer("width", self.width, 1)
        integer("vocabulary", self.vocabulary, 2)
        integer("steps", self.steps, 1, "Give the number of updates.")
        integer("batch_size", self.batch_size, 1)
        real("learning_rate", self.learning_rate, 0.0, open_low=True)
        for depth in self.student.depths:
            peak = self.peak_learning_rate(depth)
            if not _SMALLEST <= peak <= _LARGEST:
                raise refuse("learning_rate", f"a rate that float32 holds at depth {depth}", peak)
        self._check_teacher()
        self._check_loss()
        if self.gradients.points and self.gradients.weights == "average" and not self.average.decays:
            advice = "The run keeps no averages: set gradients.weights=raw, or average.decays."
            raise refuse("gradients.weights", "raw with average.decays=[]", "average", advice)

    def _check_teacher(self) -> None:
        kind, rho = self.teacher.kind, self.teacher.rho
        if kind == "correlated" and rho is None:
            raise refuse("teacher.rho", "set for a correlated teacher", "null", "Write teacher.rho=0.5.")
        if kind != "correlated" and rho is not None:
            raise refuse("teacher.rho", f"left out for a teacher of kind {kind}", rho, "Set teacher=correlated.")
        if "euler" in self.student.init and kind != "tied":
            advice = "Only a tied teacher has one flow to discretise: set teacher=tied or student.init=zero."
            raise refuse("student.init", f"zero for a teacher of kind {kind}", "euler", advice)
        if "euler" in self.student.init and self.teacher.depth == 0:
            raise refuse("teacher.depth", "1 or more with student.init=euler", 0, "There is no flow to discretise.")
        if "euler" in self.student.init and 0 in self.student.depths:
            raise refuse("student.depths", "1 or more with student.init=euler", 0, "Remove depth 0.")

    def _check_loss(self) -> None:
        loss, head = self.loss.name, self.student.head
        if loss == "mse" and head != "none":
            advice = "mse compares hidden states: set student.head=none, or loss=kl."
            raise refuse("student.head", "none with loss.name=mse", head, advice)
        if loss == "kl" and head == "none":
            advice = "kl compares distributions: set student.head=teacher or student.head=learned."
            raise refuse("student.head", "teacher or learned with loss.name=kl", head, advice)
        if loss == "mse" and len(self.target.temperatures) > 1:
            advice = "Temperatures divide logits, which mse does not read: set loss=kl."
            raise refuse("target.temperatures", "a single value with loss.name=mse", self.target.temperatures, advice)

    def peak_learning_rate(self, depth: int) -> float:
        """Returns learning_rate * learning_rate_factor / depth^depth_power; depth 0 counts as 1.

        Example:
            >>> TrainConfig(learning_rate=0.01).peak_learning_rate(4)
            0.005
        """
        power = self.optimizer.depth_power
        return self.learning_rate * self.optimizer.learning_rate_factor * float(max(depth, 1)) ** -power

    @property
    def teacher_seed(self) -> int:
        """The seed of the teacher's stream: teacher.seed where set, else seed."""
        return self.seed if self.teacher.seed is None else self.teacher.seed

    def student_temperature(self, temperature: float) -> float:
        """The temperature of a student's logits for a target temperature, by student.temperature."""
        setting = self.student.temperature
        if isinstance(setting, float):
            return setting
        if setting == "auto" and self.student.head == "learned":
            return 1.0
        return temperature

    def warnings(self) -> list[str]:
        """What is allowed but should be known: printed, and kept in the record."""
        deep = [d for d in self.student.depths if d > self.teacher.depth]
        if not deep:
            return []
        depths = ", ".join(map(str, deep))
        return [f"student.depths {depths}: deeper than the teacher (teacher.depth {self.teacher.depth})"]
