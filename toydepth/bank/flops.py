"""Floating-point operations that one step needs, whatever the code spends on top (such as computing layers again)."""

from __future__ import annotations

from toydepth.config import TrainConfig


def step_flops(config: TrainConfig) -> float:
    """Returns the operations of one step of a bank: teachers forward once, students forward and backward.

    A multiply-add counts 2. An MLP forward is 16 m^2 B, a head 2 m V B; backward is twice forward. Elementwise work and
    optimisers are left out.

    Example:
        >>> from toydepth.config import StudentConfig, TeacherConfig
        >>> paper = TrainConfig(width=32, batch_size=1024, teacher=TeacherConfig(depth=128),
        ...     student=StudentConfig(depths=(6, 12, 16, 24, 32, 48)))
        >>> round(step_flops(paper) / 1e9, 1)
        9.1
    """
    batch, width = config.batch_size, config.width
    layer = 16 * width**2 * batch
    head = 2 * width * config.vocabulary * batch if config.loss.name == "kl" else 0
    mlps = 2 if config.student.block == "rk2" else 1
    temperatures = len(config.target.temperatures) if config.loss.name == "kl" else 1
    teacher = config.teacher.depth * layer + head
    students = sum(3 * (depth * mlps * layer + head) for depth in config.student.depths)
    return float(config.replicates * (teacher + temperatures * len(config.student.init) * students))


def sets_of_students(config: TrainConfig) -> int:
    """How many times a step trains all depths once: replicates x temperatures x inits."""
    temperatures = len(config.target.temperatures) if config.loss.name == "kl" else 1
    return config.replicates * temperatures * len(config.student.init)
