"""The configuration of a run: frozen, checked dataclasses, and where the yaml files are."""

from toydepth.config.files import conf_dir, register
from toydepth.config.identity import ADDED_LATER, config_hash, from_dict, recipe_hash, to_dict
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
from toydepth.config.root import TrainConfig

__all__ = [
    "ADDED_LATER",
    "AverageConfig",
    "CheckpointConfig",
    "DeviceConfig",
    "EvalConfig",
    "GradientsConfig",
    "LossConfig",
    "OptimizerConfig",
    "ScheduleConfig",
    "StudentConfig",
    "TargetConfig",
    "TeacherConfig",
    "TrackerConfig",
    "TrainConfig",
    "conf_dir",
    "config_hash",
    "from_dict",
    "recipe_hash",
    "register",
    "to_dict",
]
