"""Where the yaml files are, and how hydra learns of the schema that checks them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, ListConfig, OmegaConf

from toydepth.config.root import TrainConfig

_MAX_FOLDER = 120


def conf_dir() -> str:
    """Returns the absolute folder of the yaml files: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return str(inside if inside.is_dir() else package.parent / "conf")


def register() -> None:
    """Stores the schema under the name `schema`, and the resolver that names run folders. May be called twice."""
    node = OmegaConf.structured(TrainConfig)
    # Frozen dataclasses become read-only nodes, which no yaml file could then override.
    _clear_readonly(node)
    # Options are the optimiser's own arguments; make_optimizer checks their names.
    OmegaConf.set_struct(node.optimizer.options, False)
    ConfigStore.instance().store(name="schema", node=node)
    OmegaConf.register_new_resolver("toydepth_folder", folder_name, replace=True)


def folder_name(name: str, override_dirname: str) -> str:
    """Returns the folder of a job: its overrides, which are all that can differ between two jobs of one experiment.

    Too long a list is cut and ends in a hash of the whole, so that two jobs never share a folder.

    Example:
        >>> folder_name("tied", "+experiment=tied,seed=1")
        'seed=1'
        >>> folder_name("tied", "+experiment=tied")
        'default'
    """
    words = [w for w in override_dirname.split(",") if w not in ("", f"+experiment={name}")]
    text = re.sub(r"[^\w.,=+\-\[\]]+", "_", ",".join(words)) or "default"
    if text == ",".join(words) and len(text) <= _MAX_FOLDER:
        return text
    if text == "default":
        return text
    return f"{text[:_MAX_FOLDER]}-{hashlib.sha256(override_dirname.encode()).hexdigest()[:8]}"


def _clear_readonly(node: DictConfig | ListConfig) -> None:
    OmegaConf.set_readonly(node, None)
    children: Any = list(node.keys()) if isinstance(node, DictConfig) else range(len(node))
    for child in children:
        value: Any = node._get_node(child)
        if isinstance(value, (DictConfig, ListConfig)) and not value._is_none():
            _clear_readonly(value)
