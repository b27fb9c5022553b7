"""Fields out of checkpoints: chosen tensors laid end to end, or what changed in them between two checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np

from toydepth.checkpoints.opening import open_tensors
from toydepth.checkpoints.selection import Dtype, Selection, Skipped, require_some
from toydepth.checkpoints.tensors import TensorInfo, Tensors
from toydepth.errors import InputError

Rows = Literal["skip", "common"]
ROWS = ("skip", "common")


@dataclass(frozen=True, eq=False)
class Field:
    """One vector, and where it comes from.

    Attributes:
        values: (num_values,), float32 or float64.
        step: of training; None where the file says none.
        step_before: of the earlier checkpoint, where the field is a difference.
        size_label: which model of a family.
        source: the file or folder; the later one of a difference.
        names: its tensors, in the order of the values; each flattened with the last axis fastest.
        skipped: what is left out, tensor by tensor.
    """

    values: np.ndarray
    step: int | None
    size_label: str
    source: Path
    names: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()
    step_before: int | None = None


def read_field(
    source: str | Path | Tensors, selection: Selection | None = None, *, step: int | None = None, size_label: str = ""
) -> Field:
    """Returns the chosen tensors of a checkpoint as one field, in natural order of their names.

    Args:
        source: of `open_tensors`, or what it returned.
        selection: which tensors; all that are floats and trained, where None.
        step, size_label: kept in the field.

    Raises:
        InputError: where none is selected, and as `open_tensors`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder) / "a.npz", b=np.ones((2, 1)), a=np.zeros(1), seen=np.array([3]))
        ...     field = read_field(Path(folder) / "a.npz")
        >>> field.names, field.values.tolist(), field.skipped
        (('a', 'b'), [0.0, 1.0, 1.0], (Skipped(name='seen', reason='not float (int64)', num_values=1),))
    """
    selection = selection or Selection()
    tensors = source if isinstance(source, Tensors) else open_tensors(source)
    chosen, skipped = selection.split(tensors)
    require_some(chosen, skipped, str(tensors.source))
    names = tuple(info.name for info in chosen)
    dtype = _dtype(selection, (info.dtype for info in chosen))
    values = _fill([info.num_values for info in chosen], (tensors.read(name) for name in names), dtype)
    return Field(values, step, size_label, tensors.source, names, tuple(skipped))


def difference(
    earlier: str | Path | Tensors,
    later: str | Path | Tensors,
    selection: Selection | None = None,
    *,
    rows: Rows = "skip",
    steps: tuple[int | None, int | None] = (None, None),
    size_label: str = "",
) -> Field:
    """Returns later - earlier of the tensors that both have, by name and shape, one tensor in memory at a time.

    Differences are taken in the wider of the stored precisions and the field's. Checkpoints with the same values give a
    field of zeros.

    Args:
        earlier, later: of `open_tensors`, or what it returned.
        selection: which tensors; patterns apply to both.
        rows: of tensors that differ in the length of their first axis alone, as padded vocabularies do: `skip` leaves
            them out, `common` takes the rows that both have.
        steps: of the two. size_label: kept in the field.

    Raises:
        InputError: where no tensor is selected in both with the same shape, and as `open_tensors`.
    """
    check_rows(rows)
    selection = selection or Selection()
    old, new = (one if isinstance(one, Tensors) else open_tensors(one) for one in (earlier, later))
    selected, skipped = selection.split(new)
    shapes: dict[str, tuple[int, ...]] = {}
    for info in selected:
        before = old.infos.get(info.name)
        shape, left_out = _common_shape(before, info, rows)
        if left_out:
            skipped.append(left_out)
        if shape is not None:
            shapes[info.name] = shape
    for info in old.infos.values():
        if info.name not in new.infos:
            reason = selection.reason(info) or "missing in the later checkpoint"
            skipped.append(Skipped(info.name, reason, info.num_values))
    require_some(list(shapes), skipped, f"{new.source} and {old.source}")
    dtype = _dtype(selection, (each.infos[name].dtype for name in shapes for each in (old, new)))
    values = _fill([prod(shape) for shape in shapes.values()], _differences(old, new, shapes, dtype), dtype)
    return Field(values, steps[1], size_label, new.source, tuple(shapes), tuple(skipped), steps[0])


def check_rows(rows: str) -> None:
    """Raises InputError for a word that is not of `difference`."""
    if rows not in ROWS:
        raise InputError(f"rows must be skip or common, got {rows}. common takes the rows that both checkpoints have.")


def _common_shape(
    before: TensorInfo | None, after: TensorInfo, rows: Rows
) -> tuple[tuple[int, ...] | None, Skipped | None]:
    """The shape that two tensors of a name share, or None; and what that leaves out."""
    if before is None:
        return None, Skipped(after.name, "missing in the earlier checkpoint", after.num_values)
    if before.problem:
        return None, Skipped(after.name, f"{before.problem}, in the earlier checkpoint", after.num_values)
    old, new = before.shape, after.shape
    if old == new:
        return new, None
    padded = bool(old) and bool(new) and old[1:] == new[1:]
    if rows == "skip" or not padded or not min(old[0], new[0]):
        return None, Skipped(after.name, f"shape {new}, {old} in the earlier checkpoint", after.num_values)
    least, more = min(old[0], new[0]), abs(old[0] - new[0])
    which = "later" if new[0] > old[0] else "earlier"
    lost = Skipped(after.name, f"rows from {least} on, in the {which} checkpoint alone", more * prod(new[1:]))
    return (least, *new[1:]), lost


def _differences(old: Tensors, new: Tensors, shapes: dict[str, tuple[int, ...]], dtype: Dtype) -> Iterator[np.ndarray]:
    # Stored in float64 it is subtracted so, whatever the field's precision: small differences are what is looked for.
    wide = np.float64 if dtype == "float64" else None
    for name, shape in shapes.items():
        before, after = (each.read(name) for each in (old, new))
        if shape:
            before, after = before[: shape[0]], after[: shape[0]]
        with np.errstate(over="ignore", invalid="ignore"):
            yield np.subtract(after, before, dtype=wide)


def _dtype(selection: Selection, stored: Iterable[str]) -> Dtype:
    return selection.dtype or ("float64" if {"float64", "float128"} & set(stored) else "float32")


def _fill(counts: list[int], parts: Iterable[np.ndarray], dtype: Dtype) -> np.ndarray:
    """The parts' values end to end, without a second copy of all."""
    values, at = np.empty(sum(counts), dtype), 0
    for count, part in zip(counts, parts, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaN are the probe's to name
            values[at : at + count] = np.asarray(part).reshape(-1)
        at += count
    return values
