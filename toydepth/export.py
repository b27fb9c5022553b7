"""Weights of a run as .npz, for checks by other frameworks."""

from __future__ import annotations

import dataclasses
import reprlib
from pathlib import Path
from typing import Any, get_type_hints

import jax
import numpy as np

from toydepth.bank import make_bank, prepare_devices
from toydepth.bank.checkpoint import Checkpoints
from toydepth.config import TrainConfig, from_dict
from toydepth.errors import InputError
from toydepth.runs import RunRecord, read_record
from toydepth.runs.files import replacing
from toydepth.runs.record import RECORD_FILE, matches


def export_weights(run: str | Path, output: str | Path) -> dict[str, np.ndarray]:
    """Writes teacher and student weights of a run to `output` and returns them by name.

    Names, layer axis first:

        teacher/replicate=0/w1                                     (layers, width, 4 width)
        teacher/replicate=0/b1, .../w2                             (layers, 4 width), (layers, 4 width, width)
        teacher/replicate=0/head                                   (width, vocabulary), for kl
        student/depth=3,init=zero,replicate=0/raw/w1               (depth, width, 4 width), and b1, w2
        student/depth=3,init=zero,replicate=0/average=0.998/w1     the same of an average
        student/.../raw/head                                       (width, vocabulary), for a learned head
        student/.../raw/mlp_1/w1, .../mlp_2/w1                     for rk2 blocks

    A tied teacher has one layer, to be applied `teacher/depth` times. mlp(x) = w2^T relu(w1^T x + b1)^2; the teacher's
    w2 holds its factor 1/sqrt(depth). `step` is the number of updates done.

    Raises:
        InputError: for an output that is not named .npz, for a folder without a record whose config can be read, or
            without a checkpoint that can.
    """
    if not Path(output).name.endswith(".npz"):
        # Any other name may be that of a file of the run.
        raise InputError(f"output must be a name that ends in .npz, got {str(output)!r}. Add .npz to it.")
    folder = Path(run)
    record = read_record(folder)
    config = _read_config(folder, record)
    bank = make_bank(config, prepare_devices(config))
    saved = Checkpoints(folder / "checkpoints", record.config_hash).restore(bank.state)
    if saved is None:
        raise _no_checkpoint(folder, record.status)
    state = jax.device_get(saved[0])
    arrays: dict[str, Any] = {"step": np.asarray(state["step"]), "teacher/depth": np.asarray(config.teacher.depth)}
    teachers = jax.device_get(bank.teachers)
    for replicate in range(config.replicates):
        name = f"teacher/replicate={replicate}"
        mlp = jax.tree.map(lambda leaf, r=replicate: leaf[r], teachers["stack"]["block"]["mlp"])
        arrays |= {f"{name}/{key}": leaf[None] if config.teacher.kind == "tied" else leaf for key, leaf in mlp.items()}
        if bank.heads is not None:
            arrays[f"{name}/head"] = np.asarray(bank.heads)[replicate]
    for index, arm in enumerate(bank.arms):
        stack = state["depths"][str(arm.depth)]
        first = next(i for i, other in enumerate(bank.arms) if other.depth == arm.depth)
        sets = {"raw": stack["params"]}
        sets |= {f"average={d:g}": a for d, a in zip(config.average.decays, stack["averages"], strict=True)}
        for kind, params in sets.items():
            own = jax.tree.map(lambda leaf, place=index - first: leaf[place], params)
            arrays |= _flatten(f"student/{arm.name}/{kind}", own)
    with replacing(Path(output)) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)
    return arrays


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


def _flatten(prefix: str, params: dict[str, Any]) -> dict[str, np.ndarray]:
    """Names every leaf by the words that tell it apart: the nesting into stack, block and a single mlp says nothing."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    silent = ("stack", "block", "mlp")
    return {
        "/".join([prefix, *[step.key for step in path if step.key not in silent]]): np.asarray(leaf)
        for path, leaf in leaves
    }
