"""Checkpoints: everything needed to go on bit for bit, written whole or not at all (orbax renames when done)."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from toydepth.errors import InputError

logging.getLogger("absl").setLevel(logging.ERROR)


def _leaves(state: Any) -> dict[str, Any]:
    """The arrays of a state by number, without the empty ones (depth 0 has such), which orbax refuses to write."""
    return {str(i): leaf for i, leaf in enumerate(jax.tree.leaves(state)) if leaf.size}


class Checkpoints:
    """The checkpoints of one run: its state (parameters, optimisers, averages, step) and its story so far (JSON).

    Args:
        folder: absolute or relative; made when the first checkpoint is saved.
        config_hash: stored with each; a checkpoint of another config is refused.
    """

    def __init__(self, folder: Path, config_hash: str):
        self.folder = folder.absolute()
        self.config_hash = config_hash

    def save(self, step: int, state: Any, story: dict[str, Any]) -> None:
        """Writes a checkpoint of `step`, and keeps the two newest."""
        content = ocp.args.Composite(
            state=ocp.args.StandardSave(_leaves(state)),
            story=ocp.args.JsonSave(story | {"config_hash": self.config_hash}),
        )
        with self._manager() as manager:
            # Of an earlier run in this folder that was not to be gone on from.
            for old in [found for found in manager.all_steps() if found >= step]:
                manager.delete(old)
            manager.save(step, args=content, force=True)
            manager.wait_until_finished()

    def restore(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
        """Returns state and story of the last whole checkpoint, or None; `like` gives shapes and devices.

        Raises:
            InputError: for a checkpoint of another config.
        """
        if not self.folder.is_dir():
            return None
        with self._manager() as manager:
            for step in sorted(manager.all_steps(), reverse=True):
                try:
                    return self._read(manager, step, like)
                except (OSError, ValueError, KeyError, TypeError) as error:
                    if isinstance(error, InputError):
                        raise
                    print(f"checkpoint {step} cannot be read and is passed over: {error}", file=sys.stderr)
        return None

    def _read(self, manager: Any, step: int, like: Any) -> tuple[Any, dict[str, Any]]:
        story = manager.restore(step, args=ocp.args.Composite(story=ocp.args.JsonRestore())).story
        if story["config_hash"] != self.config_hash:
            raise InputError(
                f"{self.folder} must hold checkpoints of this config ({self.config_hash}), got those of another "
                f"({story['config_hash']}). Choose another hydra.run.dir, or move the folder away."
            )
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, _leaves(like))
        leaves = manager.restore(step, args=ocp.args.Composite(state=ocp.args.StandardRestore(abstract))).state
        flat, tree = jax.tree.flatten(like)
        return jax.tree.unflatten(tree, [leaves.get(str(i), leaf) for i, leaf in enumerate(flat)]), story

    def _manager(self) -> ocp.CheckpointManager:
        options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False, create=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ocp.CheckpointManager(self.folder, options=options)
