"""What tells runs and arms apart in tables: most of what `toydepth.runs.CURVE_COLUMNS` calls labels and arms."""

from __future__ import annotations

from typing import Any

from toydepth.bank.arms import Arm
from toydepth.config import TrainConfig, recipe_hash


def run_labels(config: TrainConfig) -> dict[str, Any]:
    """Returns what all rows of a run have in common; vocabulary 0 where there is no head, rho None unless correlated.

    Example:
        >>> run_labels(TrainConfig(name="demo", width=4))["width"]
        4
    """
    return {
        "experiment": config.name,
        "teacher": config.teacher.kind,
        "rho": config.teacher.rho,
        "teacher_depth": config.teacher.depth,
        "width": config.width,
        "vocabulary": config.vocabulary if config.loss.name == "kl" else 0,
        "loss": config.loss.name,
        "head": config.student.head,
        "recipe": recipe_hash(config),
    }


def arm_labels(config: TrainConfig, arms: list[Arm]) -> list[dict[str, Any]]:
    """Returns what tells the arms of a run apart, an entry each; temperature None where the loss reads none."""
    return [
        {
            "arm": index,
            "depth": arm.depth,
            "mlp_evaluations": arm.mlp_evaluations,
            "temperature": arm.temperature,
            "init": arm.init,
            "block": arm.block,
            "replicate": arm.replicate,
            "teacher_seed": config.teacher_seed,
        }
        for index, arm in enumerate(arms)
    ]
