"""What makes two configurations the same experiment: a plain dict, and a hash of what shapes the numbers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from toydepth.config.root import TrainConfig

ADDED_LATER = ("gradients",)
"""Parts that older records lack: those runs were trained as by default."""

# These change where results go, how often they are saved and what is written beside them, never a number in them.
_NOT_IDENTITY = ("gradients", "tracker", "checkpoint", "resume")


def to_dict(config: TrainConfig) -> dict[str, Any]:
    """Returns the configuration as plain dicts, lists and values, ready for yaml and JSON."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def config_hash(config: TrainConfig) -> str:
    """Returns 12 hex digits that agree exactly when two configurations give the same numbers on one machine.

    To the bit where the layout of the devices, which the record tells, is the same; it may have been measured.

    Example:
        >>> from toydepth.config import CheckpointConfig
        >>> config_hash(TrainConfig()) == config_hash(TrainConfig(checkpoint=CheckpointConfig(every_seconds=5)))
        True
        >>> config_hash(TrainConfig()) == config_hash(TrainConfig(seed=1))
        False
    """
    content = {key: value for key, value in to_dict(config).items() if key not in _NOT_IDENTITY}
    if config.device.kernel == "auto":
        del content["device"]["kernel"]  # younger than the first runs, which can be gone on with
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def recipe_hash(config: TrainConfig) -> str:
    """Returns 8 hex digits that agree exactly when the arms of two configurations were trained in the same way.

    Left out is what tells arms apart elsewhere (depths, inits, temperatures, replicates, seeds, kind of teacher), and
    what only watches. Runs of one recipe may be joined in one fit, those of two may not.

    Example:
        >>> from toydepth.config import StudentConfig
        >>> one, other = TrainConfig(), TrainConfig(seed=1, student=StudentConfig(depths=24))
        >>> recipe_hash(one) == recipe_hash(other), recipe_hash(one) == recipe_hash(TrainConfig(learning_rate=0.1))
        (True, False)
    """
    content = to_dict(config)
    for name in (*_NOT_IDENTITY, "name", "seed", "replicates", "device", "eval", "target", "average"):
        del content[name]
    content["precision"] = config.device.precision
    content["student"] = {"temperature": config.student.temperature}
    content["teacher"] = {"head_init": config.teacher.head_init}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def from_dict(content: dict[str, Any]) -> TrainConfig:
    """Returns the configuration that `to_dict` wrote, checked again; parts ADDED_LATER may be missing.

    Example:
        >>> from_dict(to_dict(TrainConfig(seed=3))).seed
        3
    """
    parts = {}
    for item in dataclasses.fields(TrainConfig):
        if item.name in ADDED_LATER and item.name not in content:
            continue
        kind: Any = item.default_factory
        value = content[item.name]
        parts[item.name] = kind(**value) if isinstance(kind, type) else value
    return TrainConfig(**parts)
