"""Fields for the probe, from runs or from other people's files: whose each is, and what is known beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toydepth.cli.output import known
from toydepth.cli.transport_options import FieldOptions
from toydepth.errors import InputError

if TYPE_CHECKING:
    from toydepth.checkpoints import Field, FieldTable
    from toydepth.runs import GradientField
    from toydepth.transport import StudyField

# What tells families of runs apart, and how it is said; what never varies is left out.
_NAMES = {
    "teacher": "{} teacher",
    "rho": "rho {:g}",
    "teacher_depth": "teacher depth {}",
    "loss": "{}",
    "head": "{} head",
    "width": "width {}",
    "depth": "depth {}",
    "init": "{} init",
    "block": "{} block",
    "temperature": "T {:g}",
    "stream": "{} stream",
    "weights": "{} weights",
}
_ALWAYS = ("teacher", "depth", "width", "init")


@dataclass(eq=False)
class FieldSource:
    """Fields, to be read as often as is asked.

    read(steps): yields those of these steps, or of all. notes: sentences on what is left out; they may grow while
    fields are read. steps: that there are; 0 where files tell none.
    num_sizes: models of the family that has most.
    """

    read: Callable[[tuple[int, ...]], Iterator[StudyField]]
    notes: list[str]
    steps: tuple[int, ...]
    num_sizes: int


def open_fields(options: FieldOptions) -> FieldSource:
    """Returns the source that the options name.

    Raises:
        InputError: for none, for two at once, for options that nothing would read, and as the readers.
    """
    given = [name for name in ("runs", "pico", "checkpoints", "fields") if getattr(options, name)]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise InputError(f"one of runs, pico, checkpoints, fields must be given, got {got}. Give --runs FOLDER.")
    _check_used(options, given[0])
    if given[0] == "runs":
        return _of_runs(options)
    from toydepth.checkpoints import Selection, checkpoint_fields, file_fields, pico_fields

    selection = Selection(include=options.include or ("*",), exclude=options.exclude)
    steps = options.steps or None
    if given[0] == "pico":
        return _of_table(pico_fields(options.pico, selection, split=options.split, steps=steps), "pico", options.pico)
    if given[0] == "checkpoints":
        table = checkpoint_fields(options.checkpoints, selection, rows=options.rows, steps=steps)
        return _of_table(table, "checkpoints")
    return _of_table(file_fields(options.fields, selection, steps=steps), "fields")


def _check_used(options: FieldOptions, source: str) -> None:
    from toydepth.cli.output import check_unused

    for name, sources in (("sizes", ("runs",)), ("allow_unfinished", ("runs",)), ("split", ("pico",))):
        if source not in sources:
            check_unused(options, f"come with --{sources[0]}", "Leave it out.", (name,))
    if source != "checkpoints":
        check_unused(options, "come with --checkpoints", "Leave it out.", ("rows",))


def _of_table(table: FieldTable, family: str, pico: tuple[str, ...] = ()) -> FieldSource:
    notes = list(table.left_out)
    curves = _pico_curves(table.size_labels, pico)
    seen: dict[str, tuple[str, ...]] = {}
    told: set[str] = set()

    def note(text: str) -> None:
        if text not in told:
            told.add(text)
            notes.append(text)

    def read(steps: tuple[int, ...]) -> Iterator[StudyField]:
        from toydepth.transport import StudyField

        for step in table.steps:
            if steps and (step or 0) not in steps:
                continue
            for field in table.fields(step):
                for text in _skipped(field):
                    note(text)
                problem = None
                # Rows of one array have no names of their own; their number is checked by its shape.
                if family != "fields" and seen.setdefault(field.size_label, field.names) != field.names:
                    other = sorted(set(seen[field.size_label]) ^ set(field.names)) or list(field.names)
                    problem = "mismatched names"
                    note(f"{field.size_label}, step {step}: other tensors than before, such as {other[0]}")
                about = curves.get(field.size_label, {}).get(step or 0, {})
                yield StudyField(family, field.size_label, 0, step or 0, field.values, about, problem)

    return FieldSource(read, notes, tuple(step or 0 for step in table.steps), len(table.size_labels))


def _skipped(field: Field) -> list[str]:
    """A sentence a reason: how many tensors of a model are left out for it, and one of them."""
    reasons: dict[str, list[Any]] = {}
    for one in field.skipped:
        reasons.setdefault(one.reason, []).append(one)
    return [
        f"{field.size_label}: {len(some)} tensors left out, {reason} (such as {some[0].name})"
        for reason, some in reasons.items()
    ]


def _pico_curves(labels: tuple[str, ...], folders: tuple[str, ...]) -> dict[str, dict[int, dict[str, float]]]:
    """Of each size, step -> loss and learning rate, where its logs have them."""
    from toydepth.checkpoints import pico_curves

    found: dict[str, dict[int, dict[str, float]]] = {}
    for label, folder in zip(labels, folders, strict=False):
        table = pico_curves(folder)
        if table is None or "train_loss" not in table:
            continue
        for row in table.to_dict("records"):
            names = {"loss": "train_loss", "learning_rate": "learning_rate"}
            found.setdefault(label, {})[int(row["step"])] = {
                name: float(row[column]) for name, column in names.items() if column in row
            }
    return found


def _of_runs(options: FieldOptions) -> FieldSource:
    from toydepth.runs import find_runs, load_gradients

    folders, empty = find_runs(list(options.runs))
    if empty:
        raise InputError(f"runs must hold a record.json, in them or below, got {empty[0]}. Train it first.")
    notes: list[str] = []
    # Each run is asked at once: one without snapshots is refused before anything is measured.
    unfinished = options.allow_unfinished
    labels = [
        field.labels for run in folders for field in load_gradients(run, allow_unfinished=unfinished, only_labels=True)
    ]
    inside = {"width": ("width",), "depth": ("depth",), "both": ("width", "depth")}[options.sizes]
    names = [name for name in _NAMES if name not in inside]
    varied = [name for name in names if name in _ALWAYS or len({str(one[name]) for one in labels}) > 1]
    replicates = _replicates(labels, [*names, *inside])
    notes += _lacking(labels, [*names, *inside])
    wanted_steps = options.steps
    if wanted_steps and not set(wanted_steps) <= {one["step"] for one in labels}:
        there = ", ".join(map(str, sorted({one["step"] for one in labels})))
        raise InputError(f"steps must be of snapshots, got {wanted_steps}. There are {there}.")

    def read(steps: tuple[int, ...]) -> Iterator[StudyField]:
        from toydepth.transport import StudyField

        for run in folders:
            for field in load_gradients(run, allow_unfinished=unfinished):
                own = field.labels
                if (steps or wanted_steps) and own["step"] not in (steps or wanted_steps):
                    continue
                family = ", ".join(_say(name, own[name]) for name in varied if known(own[name]))
                if field.values is None:
                    text = f"{family}, {_model(own, inside)}: diverged before step {own['step']}"
                    if text not in notes:
                        notes.append(text)
                    continue
                values = _chosen(field, options)
                about = {"loss": own["test_loss"], "learning_rate": own["learning_rate"], "tau": own["tau"]}
                place = replicates[(own["run"], own["arm"])]
                yield StudyField(family, _model(own, inside), place, own["step"], values, about)

    sizes: dict[tuple[str, ...], set[str]] = {}
    for one in labels:
        sizes.setdefault(tuple(str(one[name]) for name in names), set()).add(_model(one, inside))
    steps = tuple(sorted(wanted_steps or {one["step"] for one in labels}))
    return FieldSource(read, notes, steps, max(map(len, sizes.values())))


def _chosen(field: GradientField, options: FieldOptions) -> np.ndarray:
    """The values of the tensors that the options choose, in their order."""
    assert field.values is not None
    ends = np.cumsum([int(np.prod(shape)) for shape in field.shapes])
    parts = dict(zip(field.names, np.split(field.values, ends[:-1]), strict=True))
    include = options.include or ("*",)
    names = [
        name
        for name in parts
        if any(fnmatchcase(name, each) for each in include)
        and not any(fnmatchcase(name, each) for each in options.exclude)
    ]
    if not names:
        got = ", ".join([*options.include, *(f"not {each}" for each in options.exclude)])
        raise InputError(f"include must match a tensor of {', '.join(parts)}, got {got}. w* takes the weights.")
    return np.concatenate([parts[name] for name in names])


def _replicates(labels: list[dict[str, Any]], names: list[str]) -> dict[tuple[str, int], int]:
    """(run, arm) -> a number among those that differ in nothing but run and replicate."""
    found: dict[tuple[str, int], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    recipes: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in labels:
        key = (one["run"], one["arm"])
        if key in found:
            continue
        kind = tuple(str(one[name]) for name in names)
        first = recipes.setdefault(kind, one)
        if first["recipe"] != one["recipe"]:
            got = f"{first['run']} and {one['run']}, of one width and depth, with other recipes"
            raise InputError(f"runs must be trained alike, got {got}. Probe them apart, in folders of their own.")
        found[key] = counts.get(kind, 0)
        counts[kind] = found[key] + 1
    return found


def _lacking(labels: list[dict[str, Any]], names: list[str]) -> list[str]:
    """A sentence for each model that lacks steps which others have: exponents there are over fewer sizes."""
    steps: dict[tuple[str, ...], set[int]] = {}
    for one in labels:
        steps.setdefault(tuple(str(one[name]) for name in names), set()).add(one["step"])
    everywhere = set().union(*steps.values())
    found = []
    for kind, own in steps.items():
        lacking = sorted(everywhere - own)
        if lacking:
            words = ", ".join(_say(name, one) for name, one in zip(names, kind, strict=True) if name in _ALWAYS)
            found.append(f"{words}: no snapshot at step {', '.join(map(str, lacking[:6]))}: fewer sizes there")
    return found


def merged_sizes(table: pd.DataFrame) -> list[str]:
    """Returns a sentence for each number of nodes that models of different sizes were sampled down to."""
    found = []
    for (family, nodes), own in table.groupby(["family", "num_nodes"], sort=False):  # pyright: ignore
        models = list(dict.fromkeys(own["model"]))
        if len(models) > 1 and len(set(own["num_values"])) > 1:
            found.append(f"{family}: {' and '.join(models)} have {nodes} nodes each by --max-nodes, and are one size")
    return found


def _say(name: str, value: Any) -> str:
    return _NAMES[name].format(value)


def _model(labels: dict[str, Any], inside: tuple[str, ...]) -> str:
    return ", ".join(_say(name, labels[name]) for name in inside)


def read_curve(file: str, steps: tuple[int, ...]) -> pd.DataFrame:
    """Returns somebody's own table of losses: step, loss, and model and learning_rate where it has them.

    Raises:
        InputError: for a file that cannot be read, without step and loss, with a step twice, or with none of `steps`.
    """
    from toydepth.fit.law import read_table

    curve = read_table(Path(file).expanduser())
    missing = [name for name in ("step", "loss") if name not in curve]
    if missing:
        got = ", ".join(map(str, curve.columns))
        raise InputError(f"{file} must have a column {missing[0]}, got {got}. Name it so.")
    keys = [name for name in ("step", "model") if name in curve]
    given = pd.DataFrame(curve[[*keys, "loss", *(["learning_rate"] if "learning_rate" in curve else [])]])
    for name in ("step", "loss", "learning_rate"):
        if name in given and not pd.api.types.is_numeric_dtype(given[name]):
            raise InputError(f"{file} must hold numbers in {name}, got text. Mend the column.")
    twice = np.asarray(given.duplicated(subset=keys))
    if twice.any():
        got = given.loc[twice, keys].to_dict("records")[0]
        raise InputError(f"{file} must have each step once, got twice {got}. Leave one out.")
    if not set(given["step"]) & set(steps):
        there = ", ".join(map(str, steps[:8]))
        raise InputError(f"{file} must have a step of the study, got none. There are {there}.")
    return given


def join_curve(table: pd.DataFrame, curve: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of a study with the losses of `read_curve` in place of its own."""
    keys = [name for name in ("step", "model") if name in curve]
    plain = table.drop(columns=[name for name in ("loss", "learning_rate") if name in table and name in curve])
    if "model" in curve:  # names may be numbers in a table
        curve = curve.assign(model=curve["model"].astype(str))
    return plain.merge(curve, how="left", on=keys)
