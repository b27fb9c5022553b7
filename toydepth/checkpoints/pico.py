"""Gradients, weights and activations that Pico-LM writes over a training, its learning dynamics.

    RUN/checkpoints/step_N/learning_dynamics/{train,val}_{gradients,weights,activations}.pt

Each file is a dict of layer name -> tensor, by default of attention.v_proj, attention.o_proj and swiglu.w_2 only.
Gradients are of the state before update N: `train` over the batch of that step, summed over its parts; `val` over a
fixed small set. On the hub a commit is a step, and its folder `learning_dynamics` has no number: put each in a
folder step_N.

Source: github.com/pico-lm/pico-train, src/checkpointing/learning_dynamics.py and src/training/trainer.py;
github.com/pico-lm/pico-analyze, src/utils/data.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from toydepth.checkpoints.fields import Field, read_field
from toydepth.checkpoints.selection import Selection
from toydepth.checkpoints.steps import find_step, find_steps
from toydepth.checkpoints.table import FieldTable, common_steps, size_labels
from toydepth.errors import InputError

Split = Literal["val", "train"]
Kind = Literal["gradients", "weights", "activations"]
SPLITS = ("val", "train")
KINDS = ("gradients", "weights", "activations")


def pico_fields(
    folders: Sequence[str | Path],
    selection: Selection | None = None,
    *,
    split: Split = "val",
    kind: Kind = "gradients",
    steps: Sequence[int] | None = None,
) -> FieldTable:
    """Returns the fields of Pico-LM runs of several sizes, read when asked for.

    Args:
        folders: a run of one size each: a run's folder; its `checkpoints`; a folder of steps with
            `learning_dynamics` or the files themselves; or a single `learning_dynamics`, or the folder that holds it.
        selection: which layers; all, where None.
        split: which data: val, train.
        kind: gradients, weights or activations, as they are stored.
        steps: these alone; None takes all.

    Raises:
        InputError: for a folder with no such file, a step that some size lacks, no steps in common.
    """
    for name, word, known in (("split", split, SPLITS), ("kind", kind, KINDS)):
        if word not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, got {word}. {known[0]} is the default.")
    wanted = f"{split}_{kind}.pt"
    sizes, notes = {}, []
    for label, folder in size_labels(folders).items():
        sizes[label], lost = _files(folder, wanted)
        notes += [f"{label} has no {wanted} at step {step}" for step in lost]
    unknown = [label for label, files in sizes.items() if None in files]
    if unknown:
        if len(unknown) < len(sizes) or steps is not None:
            raise InputError(f"pico folders must all tell their steps, got none in {unknown[0]}. Name folders step_N.")
        common: tuple[int | None, ...] = (None,)
    else:
        common, lacking = common_steps({label: list(files) for label, files in sizes.items()}, steps)
        notes += lacking

    def read(step: int | None, label: str) -> Field:
        return read_field(sizes[label][step], selection, step=step, size_label=label)

    return FieldTable(tuple(sizes), common, tuple(notes), read)


def _files(folder: Path, wanted: str) -> tuple[dict[int | None, Path], list[int]]:
    """Step -> file of a run, and the steps that lack it. The step is None for a single folder that tells none."""
    found = find_steps(folder)
    places = {step: _within(path, wanted) for step, path in found.items()}
    files: dict[int | None, Path] = {step: file for step, file in places.items() if file}
    if files:
        return files, [step for step, file in places.items() if not file]
    single = _within(folder, wanted)
    if single is None:
        others = sorted(
            {path.name for at in (folder, *found.values()) for path in _dynamics(at) if path.suffix == ".pt"}
        )
        got = f"only {', '.join(others)}" if others else "none"
        raise InputError(f"{folder} must hold learning_dynamics/{wanted}, at steps named step_N, got {got}. Check it.")
    return {find_step(folder.resolve().name): single}, []


def _within(folder: Path, wanted: str) -> Path | None:
    return next((path for path in _dynamics(folder) if path.name == wanted), None)


def _dynamics(folder: Path) -> list[Path]:
    """The files of a folder `learning_dynamics`, or of the folder itself where it has none."""
    inside = folder / "learning_dynamics"
    at = inside if inside.is_dir() else folder
    return sorted(at.iterdir()) if at.is_dir() else []
