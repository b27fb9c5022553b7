"""Fields out of single files: any vectors that numpy saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from toydepth.checkpoints.fields import Field, read_field
from toydepth.checkpoints.opening import open_tensors
from toydepth.checkpoints.selection import Selection
from toydepth.checkpoints.steps import find_step, without_step
from toydepth.checkpoints.table import FieldTable, common_steps
from toydepth.checkpoints.tensors import Tensors
from toydepth.errors import InputError

STEPS, FIELDS = "steps", "fields"
_Cells = dict[str, dict[int | None, Callable[[], Field]]]


def file_fields(
    files: Sequence[str | Path], selection: Selection | None = None, *, steps: Sequence[int] | None = None
) -> FieldTable:
    """Returns the fields of files, read when asked for.

    - .npy: one field, of one axis. An array of more axes is refused: its rows might be steps, or of a matrix.
    - .npz with arrays `steps` (num_steps,), integers, and `fields` (num_steps, num_values): a field a step.
    - any other .npz, and whatever else `open_tensors` reads: its tensors, laid end to end.

    A file's step is in its name (small_step100.npy), and its size's label is the rest of the name, or, where nothing is
    left, the name of its folder (small/step100.npy). Either all files tell a step or none does.

    Args:
        files: one or more.
        selection: which tensors of a file with names.
        steps: these alone; None takes all.

    Raises:
        InputError: for no files, a missing or damaged one, two of one size and step, files of which only some tell a
            step, no steps in common.
    """
    if not files:
        raise InputError("fields must be one or more files, got none. Give npy or npz files, one a size.")
    cells: _Cells = {}
    for given in files:
        path = Path(given).expanduser()
        if path.is_dir():
            raise InputError(f"fields must be files, got the folder {path}. Give the files in it.")
        label = without_step(path.name) or path.resolve().parent.name
        row = cells.setdefault(label, {})
        for step, read in _fields_of(path, label, selection).items():
            if step in row:
                at = "without a step" if step is None else f"at step {step}"
                raise InputError(f"fields must be one a size and step, got two of {label} {at}. Rename one file.")
            row[step] = read
    unknown = [label for label, row in cells.items() if None in row]
    if unknown:
        if any(set(row) != {None} for row in cells.values()) or steps is not None:
            raise InputError(
                f"files must all tell a step or none, got none for {unknown[0]}. Name them as a_step100.npy."
            )
        common, lacking = (None,), ()
    else:
        common, lacking = common_steps(
            {label: [s for s in row if s is not None] for label, row in cells.items()}, steps
        )
    return FieldTable(tuple(cells), common, lacking, lambda step, label: cells[label][step]())


def _fields_of(path: Path, label: str, selection: Selection | None) -> dict[int | None, Callable[[], Field]]:
    """Step -> how to read its field, of one file."""
    tensors, step = open_tensors(path), find_step(path.name)
    if path.suffix == ".npz" and {STEPS, FIELDS} <= set(tensors.infos):
        if step is not None:
            raise InputError(f"{path} must tell its steps in its name or its array, got both. Rename the file.")
        return {each: partial(_row, path, at, each, label) for at, each in enumerate(_steps_of(path, tensors))}
    shapes = [info.shape for info in tensors.infos.values()]
    if path.suffix == ".npy" and len(shapes[0]) != 1:
        advice = f"Flatten it; or save an npz of {STEPS} and {FIELDS}, a row a step."
        raise InputError(f"{path} must be an array of one axis, got shape {shapes[0]}. {advice}")
    return {step: partial(read_field, tensors, selection, step=step, size_label=label)}


def _steps_of(path: Path, tensors: Tensors) -> list[int]:
    """The array `steps`, checked against `fields`."""
    steps, fields = tensors.infos[STEPS], tensors.infos[FIELDS]
    matched = len(steps.shape) == 1 and len(fields.shape) == 2 and fields.shape[0] == steps.shape[0] > 0
    if not matched or fields.problem or not steps.dtype.startswith(("int", "uint")):
        got = f"{steps.dtype} {steps.shape} and {fields.dtype} {fields.shape}"
        raise InputError(f"{path} must hold integers {STEPS} (s,) and floats {FIELDS} (s, n), got {got}. Save it so.")
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        found = [int(step) for step in archive[STEPS]]
    if len(set(found)) < len(found) or min(found) < 0:
        raise InputError(f"{path} must hold each of its {STEPS} once, 0 or more, got others. Save it so.")
    return found


def _row(path: Path, at: int, step: int, label: str) -> Field:
    # Read again for each step: one field is held at a time, whatever the file's own compression.
    values = open_tensors(path).read(FIELDS)[at].copy()
    return Field(values, step, label, path, (f"{FIELDS}[{at}]",))
