"""The weights that a run left: its teachers drawn again, its students from the last checkpoint."""

from __future__ import annotations

import dataclasses
import reprlib
from pathlib import Path
from typing import Any, get_type_hints

import jax

from toydepth.bank import make_bank, prepare_devices
from toydepth.bank.bank import Bank
from toydepth.bank.checkpoint import Checkpoints
from toydepth.config import ADDED_LATER, TrainConfig, from_dict
from toydepth.errors import InputError
from toydepth.runs import RunRecord, read_record
from toydepth.runs.record import RECORD_FILE, matches


def load_weights(run: str | Path) -> tuple[TrainConfig, Bank, dict[str, Any]]:
    """Returns the config, the bank (teachers, networks) and the last state, as numpy arrays, of a run.

    Raises:
        InputError: for a folder without a record whose config can be read, or without a checkpoint that can.
    """
    folder = Path(run)
    record = read_record(folder)
    config = _read_config(folder, record)
    bank = make_bank(config, prepare_devices(config))
    saved = Checkpoints(folder / "checkpoints", record.config_hash).restore(bank.state)
    if saved is None:
        raise _no_checkpoint(folder, record.status)
    return config, bank, jax.device_get(saved[0])


def _read_config(folder: Path, record: RunRecord) -> TrainConfig:
    """Returns the config that a run was trained with; raises InputError naming the record where it is none."""
    fault = _find_fault("config", record.config, TrainConfig)
    try:
        if not fault:
            return from_dict(record.config)
    except (InputError, RecursionError) as error:
        fault = f"one in which {str(error).split('. ')[0].rstrip('.')}"
    condition = "the record of a run with its whole config"
    advice = "Restore the file, or export with the version of toydepth that trained the run."
    raise InputError(f"{folder / RECORD_FILE} must be {condition}, got {fault}. {advice}")


def _find_fault(name: str, content: Any, kind: Any) -> str | None:
    """Says what keeps `content` from being what was written of the dataclass `kind`: missing, too much, wrong type."""
    if not isinstance(content, dict):
        return f"{name} {reprlib.repr(content)}"
    hints = get_type_hints(kind)
    for key in content:
        if key not in hints:
            return f"an unknown {name}.{reprlib.repr(key)[1:-1]}"
    for key, hint in hints.items():
        if key not in content:
            if kind is TrainConfig and key in ADDED_LATER:
                continue
            return f"no {name}.{key}"
        if dataclasses.is_dataclass(hint):
            fault = _find_fault(f"{name}.{key}", content[key], hint)
        else:
            fault = None if matches(content[key], hint) else f"{name}.{key} {reprlib.repr(content[key])}"
        if fault:
            return fault
    return None


def _no_checkpoint(folder: Path, status: str) -> InputError:
    checkpoints = folder / "checkpoints"
    # A checkpoint is a folder named by its step; restore() has passed over those that it could not read.
    damaged = checkpoints.is_dir() and any(entry.name.isdigit() for entry in checkpoints.iterdir())
    got = "only unreadable ones" if damaged else "none"
    if status in ("complete", "diverged"):
        # Training in this folder again would only read what it holds.
        advice = "Train the run in another folder (hydra.run.dir): it ends with one."
    else:
        advice = "Start the run again: it ends with one."
    return InputError(f"{checkpoints} must hold a checkpoint, got {got}. {advice}")
