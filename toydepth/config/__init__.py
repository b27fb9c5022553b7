"""The configuration of a run: frozen, checked dataclasses, and where the yaml files are."""

from toydepth.config.files import conf_dir, register
from toydepth.config.identity import config_hash, from_dict, recipe_hash, to_dict
from toydepth.config.parts import (
    AverageConfig,
    CheckpointConfig,
    DeviceConfig,
    EvalConfig,
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
    "AverageConfig",
    "CheckpointConfig",
    "DeviceConfig",
    "EvalConfig",
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
