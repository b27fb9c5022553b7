"""Curves of one or many runs, sorted into the groups one exponent is fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import did_you_mean
from toydepth.fit.checks import plain, refuse
from toydepth.runs import average_columns, find_decays

GROUP_COLUMNS = (
    "experiment", "teacher", "rho", "init", "block", "loss", "temperature", "head", "width", "teacher_depth", "recipe"
)  # fmt: skip
LOSS_COLUMNS = {"raw": "test_loss", "average": "test_loss_average"}
_ARM = ("teacher_seed", "replicate", "depth")
_NEEDED = (*GROUP_COLUMNS, *_ARM, "step", *LOSS_COLUMNS.values(), "average_decay", "noise_floor", "diverged")


@dataclass(frozen=True, eq=False)
class Group:
    """The curves of one exponent.

    labels: the group's values; weights 'raw' | 'average', with its decay (NaN for raw). steps (steps,) and depths
    (depths,), ascending; replicates: (teacher_seed, replicate) pairs. losses, noise_floor, present (steps, replicates,
    depths): a loss is NaN where it is absent or its arm diverged; present: a row was there.
    """

    labels: dict[str, Any]
    weights: str
    average_decay: float
    steps: np.ndarray
    replicates: list[tuple[Any, Any]]
    depths: np.ndarray
    losses: np.ndarray
    noise_floor: np.ndarray
    present: np.ndarray

    @property
    def name(self) -> str:
        """The labels that have a value, for messages: experiment=tied, teacher=tied, ..."""
        return _name({**self.labels, "weights": self.weights, "average_decay": self.average_decay})


def split_groups(curves: pd.DataFrame, weights: Sequence[str]) -> list[Group]:
    """Sorts rows into groups, a group for each kind of weights; NaN is a value like any other.

    Runs whose depths or replicates complement each other join. The same numbers given twice count once. An arm that
    diverged at any step has no loss at any.

    Args: curves, a row an arm and evaluation; weights, from 'raw' and 'average'.
    Raises: InputError for missing columns, unknown weights, or one arm and step with two different losses.
    """
    if not isinstance(curves, pd.DataFrame):
        raise refuse("curves", "a pandas DataFrame", type(curves).__name__, "Load the run's curves first.")
    missing = [column for column in _NEEDED if column not in curves.columns]
    if missing:
        hint = did_you_mean(missing[0], map(str, curves.columns))
        got = f"no {', '.join(missing)}"
        raise refuse("curves", "a table with every column a fit needs", got, f"Add it.{hint}")
    if not len(curves):
        raise refuse("curves", "a table with at least one row", "0 rows", "Give a run that has been evaluated.")
    if isinstance(weights, str) or not weights or any(kind not in LOSS_COLUMNS for kind in weights):
        raise refuse("weights", "a tuple of 'raw', 'average' or both", repr(weights), "Give ('raw',) for one.")
    groups = [group for kind in dict.fromkeys(weights) for group in _split(curves, kind)]
    if not groups:
        raise refuse("weights", "weights that were evaluated", repr(tuple(weights)), "Averaging was off: use ('raw',).")
    return groups


def _split(curves: pd.DataFrame, kind: str) -> list[Group]:
    value = LOSS_COLUMNS[kind]
    keys = [*GROUP_COLUMNS] + (["average_decay"] if kind == "average" else [])
    if kind == "average":
        curves = _one_row_a_decay(curves)
        curves = curves.loc[curves["average_decay"].notna() | curves[value].notna()]
    arm = [*keys, *_ARM]
    frame = pd.DataFrame(curves[[*arm, "step", value, "noise_floor"]])
    frame["diverged"] = curves["diverged"].eq(True)
    frame["diverged"] = frame.groupby(arm, dropna=False)["diverged"].transform("any")
    frame = frame.drop_duplicates([*arm, "step", value])
    clash = frame.duplicated([*arm, "step"], keep=False)
    if clash.any():
        rows = frame[clash]
        first = rows.iloc[0]
        numbers = " and ".join(
            f"{n:.9g}" for n in rows.groupby([*arm, "step"], dropna=False, sort=False)[value].agg(list).iloc[0]
        )
        where = _name({key: first[key] for key in [*arm, "step"]})
        raise refuse("curves", f"one {value} an arm and step", f"{numbers} for {where}", "Give only one of these runs.")
    groups = []
    for labels, rows in frame.groupby(keys, dropna=False, sort=False):
        named = dict(zip(keys, labels if isinstance(labels, tuple) else (labels,), strict=True))
        groups.append(_cube(named, kind, rows, value))
    return groups


def _one_row_a_decay(curves: pd.DataFrame) -> pd.DataFrame:
    """Puts the averages of further decays, columns of their own in a run's table, below those of the first."""
    value, parts = LOSS_COLUMNS["average"], [curves]
    for decay in find_decays(curves.columns):
        further = curves.assign(**{value: curves[average_columns(decay)[0]], "average_decay": decay})
        # Jobs need not share their decays: a column that is another job's is empty here.
        parts.append(further.loc[further[value].notna()])
    return pd.concat(parts, ignore_index=True) if len(parts) > 1 else curves


def _cube(labels: dict[str, Any], kind: str, rows: pd.DataFrame, value: str) -> Group:
    steps, at_step = np.unique(rows["step"].to_numpy(), return_inverse=True)
    depths, at_depth = np.unique(rows["depth"].to_numpy(), return_inverse=True)
    by_replicate = rows.groupby(["teacher_seed", "replicate"], dropna=False)
    at_replicate = by_replicate.ngroup().to_numpy()
    pairs = rows[["teacher_seed", "replicate"]].assign(at=at_replicate).drop_duplicates("at").sort_values("at")
    replicates = [(plain(s), plain(r)) for s, r in zip(pairs["teacher_seed"], pairs["replicate"], strict=True)]
    where = (at_step, at_replicate, at_depth)
    shape = (len(steps), len(replicates), len(depths))
    losses, noise, present = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape, dtype=bool)
    given = rows[value].to_numpy(dtype=float)
    losses[where] = np.where(np.isfinite(given), given, np.nan)
    floors = rows["noise_floor"].to_numpy(dtype=float)
    # An unknown noise floor counts as zero, so that a loss of exactly zero (student = teacher) is noise, no error.
    noise[where] = np.where(np.isfinite(floors), floors, 0.0)
    present[where] = True
    diverged = np.zeros(shape[1:], dtype=bool)
    np.logical_or.at(diverged, where[1:], rows["diverged"].to_numpy())
    losses[:, diverged] = np.nan
    decay = labels.pop("average_decay", np.nan)
    return Group(labels, kind, float(decay), steps, replicates, depths, losses, noise, present)


def _name(labels: dict[str, Any]) -> str:
    known = {key: plain(value) for key, value in labels.items()}
    return ", ".join(f"{key}={value}" for key, value in known.items() if value is not None)
