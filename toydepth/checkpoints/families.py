"""Families of checkpoints: several sizes of a model, each with checkpoints by step; fields are what changes.

Pythia is of this kind: `step0`, `step1`, ... `step143000`, each a folder with model.safetensors or pytorch_model.bin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from toydepth.checkpoints.fields import Field, Rows, check_rows, difference
from toydepth.checkpoints.opening import has_weights
from toydepth.checkpoints.selection import Selection
from toydepth.checkpoints.steps import find_steps
from toydepth.checkpoints.table import FieldTable, common_steps, size_labels
from toydepth.errors import InputError


def find_checkpoints(folder: str | Path) -> tuple[dict[int, Path], tuple[str, ...]]:
    """Returns step -> checkpoint, ascending, of one model, and a sentence for each step that holds no weights.

    Args:
        folder: holds files or folders named by step (step1000, step_1000, step-1000, checkpoint-1000, 1000, with or
            without an ending), or a folder `checkpoints` that does, or is a download of the hub's cache.

    Raises:
        InputError: for a folder that does not exist or has no such checkpoint, and two entries of one step.
    """
    found = find_steps(Path(folder))
    whole = {step: path for step, path in found.items() if has_weights(path)}
    if not whole:
        got = f"{folder} without" if not found else f"no weights in {folder}, such as in {next(iter(found.values()))}"
        raise InputError(
            f"checkpoints must be a folder of steps, as step1000 or checkpoint-1000, got {got}. Rename them."
        )
    return whole, tuple(f"{found[step]} holds no weights" for step in found if step not in whole)


def neighbours(
    folder: str | Path, selection: Selection | None = None, *, rows: Rows = "skip", steps: Sequence[int] | None = None
) -> Iterator[Field]:
    """Yields what changed from each checkpoint of a model to the next, as `step_before` and `step` say.

    Args:
        folder: of `find_checkpoints`. selection, rows: of `difference`.
        steps: these checkpoints alone.

    Raises:
        InputError: for fewer than two checkpoints, and as `checkpoint_fields`.
    """
    table = checkpoint_fields([folder], selection, rows=rows, steps=steps)
    return (field for _, fields in table for field in fields)


def checkpoint_fields(
    folders: Sequence[str | Path],
    selection: Selection | None = None,
    *,
    rows: Rows = "skip",
    steps: Sequence[int] | None = None,
) -> FieldTable:
    """Returns the differences of neighbouring checkpoints of several sizes, read when asked for.

    Neighbours are those among the steps that all sizes have, so that at one step each size has changed over the same
    steps. Byte-identical checkpoints give a field of zeros, which the probe names.

    Args:
        folders: a model of one size each, of `find_checkpoints`.
        selection, rows: of `difference`.
        steps: these checkpoints alone; None takes all.

    Raises:
        InputError: for a folder that is refused, a step that some size lacks, fewer than two steps in common.
    """
    check_rows(rows)
    sizes = {label: find_checkpoints(folder) for label, folder in size_labels(folders).items()}
    common, lacking = common_steps({label: list(found) for label, (found, _) in sizes.items()}, steps)
    if len(common) < 2:
        raise InputError(f"checkpoints must have two or more steps in common, got {common}. Fields are differences.")
    before = {later: earlier for earlier, later in pairwise(common)}
    notes = tuple(note for _, empty in sizes.values() for note in empty) + lacking

    def read(step: int | None, label: str) -> Field:
        found = sizes[label][0]
        earlier = before[step]  # pyright: ignore[reportArgumentType]  # fields() asks for steps of the table alone
        ends = found[earlier], found[step]  # pyright: ignore[reportArgumentType]
        return difference(*ends, selection, rows=rows, steps=(earlier, step), size_label=label)

    return FieldTable(tuple(sizes), common[1:], notes, read)
