"""Gradient snapshots in a run's folder: gradients/step=00000100.npz, one file a step, and how they are read again.

A file holds, for every arm that has not diverged, the gradient of its mean loss in its own parameters, float32, by the
names that exported weights have. Beside them `step`, `samples`, `stream`, `weights`, `examples`; `run/<label>`; and
`arm/<label>`, `arm/tau`, `arm/learning_rate`, `arm/loss`, `arm/diverged`, an entry an arm.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.runs.columns import CURVE_COLUMNS
from toydepth.runs.curves import CURVES_FILE, read_curves
from toydepth.runs.files import replacing
from toydepth.runs.naming import count_parameters
from toydepth.runs.record import RunRecord, read_record

GRADIENTS_FOLDER = "gradients"
_LABELS = [name for name, column in CURVE_COLUMNS.items() if column.source == "labels"]
_ARM_LABELS = ["arm", "depth", "mlp_evaluations", "temperature", "init", "block", "replicate", "teacher_seed"]
_OF_ARMS = ("tau", "learning_rate", "loss", "diverged")
_DAMAGED = (OSError, ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class GradientField:
    """The gradient of one arm at one step, flattened.

    labels: run (its folder), and the columns of `CURVE_COLUMNS` that tell runs, arms and steps apart: experiment,
    teacher, rho, teacher_depth, width, vocabulary, loss, head, recipe, arm, depth, ..., replicate, teacher_seed, step,
    samples, tau, learning_rate. Then stream, weights, examples (the mean is over so many) and gradient_loss, the loss
    that it is the gradient of; test_loss and train_loss at evaluation_step, the evaluation nearest in ln step (NaN and
    -1 where there is none); diverged, whether the arm had done so by then.

    values: (N,) float32: the arrays in the alphabetical order of their names (b1, head, w1, w2, or mlp_1/b1, ...), each
    in C order, layers first. None of an arm that has diverged. names, shapes: of the arrays.
    """

    labels: dict[str, Any]
    values: np.ndarray | None
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]


def gradients_file(step: int) -> str:
    """Returns the name of a snapshot within the run's folder.

    >>> gradients_file(100)
    'gradients/step=00000100.npz'
    """
    return f"{GRADIENTS_FOLDER}/step={step:08d}.npz"


def write_gradients(
    folder: str | Path,
    *,
    step: int,
    samples: int,
    stream: str,
    weights: str,
    examples: int,
    labels: Mapping[str, Any],
    arms: Sequence[Mapping[str, Any]],
    gradients: Sequence[Mapping[str, np.ndarray] | None],
) -> Path:
    """Writes one snapshot, atomically; the same content is the same bytes.

    Args:
        folder: the run's.
        step, samples: updates done, training inputs seen.
        stream, weights: as in the configuration.
        examples: how many the mean loss is over.
        labels: as those of `make_curves`.
        arms: an entry each: its labels, name, tau, learning_rate, loss and diverged.
        gradients: of each arm {name: array}; None of one that has diverged.
    """
    arrays: dict[str, Any] = {"step": step, "samples": samples, "stream": stream, "weights": weights}
    arrays["examples"] = examples
    arrays |= {f"run/{name}": _missing(labels[name]) for name in _LABELS}
    for name in (*_ARM_LABELS, "name", *_OF_ARMS):
        arrays[f"arm/{name}"] = np.array([_missing(arm[name]) for arm in arms])
    for own in gradients:
        arrays |= {name: np.asarray(array, np.float32) for name, array in (own or {}).items()}
    path = Path(folder) / gradients_file(step)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)
    return path


def load_gradients(
    run: str | Path, *, allow_unfinished: bool = False, only_labels: bool = False
) -> Iterator[GradientField]:
    """Yields the gradients of a run: step by step, at each arm by arm; no more than one is held at a time.

    Args:
        run: its folder.
        allow_unfinished: read a run that is still running or was interrupted as well.
        only_labels: leave the gradients in their files: values is None, and names and shapes are empty.

    Raises:
        InputError: at once, for a folder without a record, a run without snapshots, or one that has not ended; while
            reading, for a snapshot that is missing or damaged.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = RunRecord("demo", {"gradients": {"points": 0}}, "a1b2", status="complete").write(folder)
        ...     load_gradients(folder)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        toydepth.errors.InputError: gradients.points must be above 0 for the run in ..., got 0. Train again with ...
    """
    folder = Path(run)
    record = read_record(folder)
    if record.status in ("running", "interrupted") and not allow_unfinished:
        advice = "Let it end, or give allow_unfinished=True (--allow-unfinished)."
        raise InputError(f"{folder} must hold a finished run, got one whose status is {record.status}. {advice}")
    if not record.gradients:
        raise _no_snapshots(folder, record)
    unfinished = record.status not in ("complete", "diverged")
    curves = None if unfinished and not (folder / CURVES_FILE).is_file() else read_curves(folder)
    return _fields(folder, record, curves, only_labels)


def _no_snapshots(folder: Path, record: RunRecord) -> InputError:
    setting = record.config.get("gradients")
    points = setting.get("points", 0) if isinstance(setting, dict) else 0
    if points:
        ended = "Every arm diverged before the first: lower learning_rate."
        advice = ended if record.status == "diverged" else "Let it train on."
        return InputError(f"{folder} must hold gradient snapshots, got none (status {record.status}). {advice}")
    advice = "Train again with gradients.points=12."
    return InputError(f"gradients.points must be above 0 for the run in {folder}, got {points}. {advice}")


def _fields(folder: Path, record: RunRecord, curves: pd.DataFrame | None, only_labels: bool) -> Iterator[GradientField]:
    for entry in record.gradients:
        path = folder / gradients_file(_step(folder, entry))
        if not path.is_file():
            raise InputError(f"{path} must be a gradient snapshot, got no such file. {_RESTORE}")
        try:
            # Opened here: of a damaged archive numpy leaves its own open.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                yield from _of_file(folder, archive, curves, only_labels)
        except _DAMAGED as error:
            if isinstance(error, InputError):
                raise
            reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise InputError(f"{path} must be a whole gradient snapshot, got: {reason}. {_RESTORE}") from error


_RESTORE = "Restore the file, or train again in another folder."


def _step(folder: Path, entry: dict[str, Any]) -> int:
    step = entry.get("step")
    if not isinstance(step, int) or isinstance(step, bool):
        raise InputError(f"{folder}/record.json must list gradients by their step, got {entry}. Restore the file.")
    return step


def _of_file(folder: Path, archive: Any, curves: pd.DataFrame | None, only_labels: bool) -> Iterator[GradientField]:
    of_step = {name: archive[name].item() for name in ("step", "samples", "stream", "weights", "examples")}
    of_run = {name: archive[f"run/{name}"].item() for name in _LABELS}
    of_arms = {name: archive[f"arm/{name}"].tolist() for name in (*_ARM_LABELS, "name", *_OF_ARMS)}
    for index in range(len(of_arms["arm"])):
        arm = {name: values[index] for name, values in of_arms.items()}
        labels = {"run": str(folder), **of_run, **{name: arm[name] for name in _ARM_LABELS}}
        labels |= {"step": of_step["step"], "samples": of_step["samples"]}
        labels |= {"tau": arm["tau"], "learning_rate": arm["learning_rate"]}
        labels |= {name: of_step[name] for name in ("stream", "weights", "examples")}
        labels |= {"gradient_loss": arm["loss"], **_nearest(curves, arm["arm"], of_step["step"])}
        labels["diverged"] = arm["diverged"]
        if arm["diverged"] or only_labels:
            yield GradientField(labels, None, (), ())
            continue
        prefix = f"student/{arm['name']}/"
        found = {name: archive[name] for name in sorted(archive.files) if name.startswith(prefix)}
        yield _flatten(labels, {name.split("/", 3)[3]: array for name, array in found.items()})


def _flatten(labels: dict[str, Any], arrays: dict[str, np.ndarray]) -> GradientField:
    vocabulary = labels["vocabulary"] if labels["head"] == "learned" else 0
    expected = count_parameters(labels["width"], labels["depth"], block=labels["block"], vocabulary=vocabulary)
    flat = [arrays[name].ravel() for name in sorted(arrays)]
    values = np.concatenate(flat) if flat else np.empty(0, np.float32)
    if values.dtype != np.float32 or len(values) != expected:
        raise ValueError(f"{len(values)} values of {values.dtype} instead of {expected} of float32 for an arm")
    return GradientField(labels, values, tuple(sorted(arrays)), tuple(arrays[name].shape for name in sorted(arrays)))


def _nearest(curves: pd.DataFrame | None, arm: int, step: int) -> dict[str, Any]:
    """The losses of an arm at the evaluation nearest in ln step; the earlier of two."""
    own = None if curves is None else curves.loc[(curves["arm"] == arm) & (curves["step"] > 0)]
    if own is None or own.empty:
        return {"evaluation_step": -1, "test_loss": math.nan, "train_loss": math.nan}
    row = own.iloc[int(np.argmin(np.abs(np.log(own["step"].to_numpy() / step))))]
    losses = {name: float(row[name]) for name in ("test_loss", "train_loss")}
    return {"evaluation_step": int(row["step"]), **losses}


def _missing(value: Any) -> Any:
    """None as NaN: an archive holds plain arrays only."""
    return math.nan if value is None else value
