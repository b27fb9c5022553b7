"""Groups of arms ready to draw: a group's curves, its exponents along training, its name and its look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.fit import DepthExponent, FitTable
from toydepth.fit.checks import plain
from toydepth.fit.depth.grouping import GROUP_COLUMNS, LOSS_COLUMNS
from toydepth.report.style import Look, category, sequence
from toydepth.report.words import name_groups

_ARM = ["teacher_seed", "replicate", "depth"]
_NEEDED = [*GROUP_COLUMNS, *_ARM, "step", *LOSS_COLUMNS.values(), "average_decay", "noise_floor", "diverged"]


@dataclass(frozen=True, eq=False)
class Series:
    """One group of arms, for one kind of weights.

    Attributes:
        labels: column of the group to value; None where there is none.
        weights: 'average' where averaged weights were evaluated, else 'raw'.
        name: of the group. family: the group but for its temperature: groups of one family share a panel, family_name
            names it and family_index counts it.
        look: of its line. family_look: of a line through its family.
        curves: a row an arm and step: teacher_seed, replicate, depth, step, loss, noise_floor, diverged (the arm's,
            at any step).
        trajectory: the fitted steps, ascending, step 0 omitted; empty where nothing could be fitted.
    """

    labels: dict[str, Any]
    weights: str
    name: str
    family: tuple[Any, ...]
    family_name: str
    family_index: int
    look: Look
    family_look: Look
    curves: pd.DataFrame
    trajectory: list[DepthExponent]

    @property
    def end(self) -> DepthExponent:
        """The exponent at the last fitted step."""
        return self.trajectory[-1]


def collect_series(curves: pd.DataFrame, table: FitTable | None) -> list[Series]:
    """Brings curves and fits together, one entry a group of arms: families as they come, temperatures ascending.

    Of several averages, the longest (largest decay) is taken.

    Args: curves, as for `toydepth.fit.fit_curves`; table, its result, or None where nothing could be fitted.
    Raises: InputError for an empty table of curves, or one without the columns needed.
    """
    _check(curves)
    parts: dict[tuple[Any, ...], pd.DataFrame] = {}
    for _, rows in curves.groupby(list(GROUP_COLUMNS), dropna=False, sort=False):
        parts[tuple(plain(rows[name].iloc[0]) for name in GROUP_COLUMNS)] = rows
    place = GROUP_COLUMNS.index("temperature")
    family_of = {key: key[:place] + key[place + 1 :] for key in parts}
    families = list(dict.fromkeys(family_of.values()))
    keys = sorted(parts, key=lambda key: (families.index(family_of[key]), key[place] or 0.0))
    labels: list[dict[str, Any]] = [{**dict(zip(GROUP_COLUMNS, key, strict=True))} for key in keys]
    names, family_names = name_groups(labels), name_groups(labels, leave_out=["temperature"])
    temperatures = sorted({key[place] for key in keys if key[place] is not None})
    fitted = _trajectories(table)

    result = []
    for key, label, name, family_name in zip(keys, labels, names, family_names, strict=True):
        index = families.index(family_of[key])
        look = category(index)
        if key[place] is not None and len(temperatures) > 1:
            ordered = sequence(temperatures.index(key[place]), len(temperatures))
            # With several families on one panel the colour says the temperature and the dash the family.
            look = Look(ordered.colour, ordered.dash if len(families) == 1 else look.dash, ordered.marker)
        trajectory = fitted.get(key, [])
        weights, rows = _choose_weights(parts[key], trajectory)
        result.append(
            Series(
                labels=label,
                weights=weights,
                name=name,
                family=family_of[key],
                family_name=family_name,
                family_index=index,
                look=look,
                family_look=category(index),
                curves=rows,
                trajectory=[row for row in trajectory if row.step > 0],
            )
        )
    return result


def group_key(row: DepthExponent) -> tuple[Any, ...]:
    """Returns what identifies the group of a fitted row, whatever its weights."""
    return tuple(plain(getattr(row, name)) for name in GROUP_COLUMNS)


def _check(curves: pd.DataFrame) -> None:
    if not len(curves):
        raise InputError("curves must be a table with at least one row, got 0 rows. Give a run that was evaluated.")
    missing = [name for name in _NEEDED if name not in curves.columns]
    if missing:
        columns = ", ".join(missing)
        raise InputError(f"curves must be a table with every column of a run's curves, got no {columns}. Add it.")


def _trajectories(table: FitTable | None) -> dict[tuple[Any, ...], list[DepthExponent]]:
    """Returns one trajectory a group: of the longest average, or of the raw weights where there is no average."""
    best: dict[tuple[Any, ...], list[DepthExponent]] = {}
    for rows in table.trajectories if table else []:
        key = group_key(rows[0])
        if key not in best or _length(rows[0]) > _length(best[key][0]):
            best[key] = rows
    return best


def _length(row: DepthExponent) -> float:
    return row.average_decay if row.weights == "average" else -1.0


def _choose_weights(rows: pd.DataFrame, trajectory: list[DepthExponent]) -> tuple[str, pd.DataFrame]:
    decays = rows.loc[rows["test_loss_average"].notna(), "average_decay"]
    if trajectory:
        weights, decay = trajectory[0].weights, trajectory[0].average_decay
    else:
        weights, decay = ("average", decays.max()) if len(decays) else ("raw", np.nan)
    if weights == "average":
        rows = rows.loc[rows["average_decay"].eq(decay)]
    tidy = pd.DataFrame(rows[[*_ARM, "step", LOSS_COLUMNS[weights], "noise_floor"]])
    tidy = tidy.rename(columns={LOSS_COLUMNS[weights]: "loss"})
    tidy["diverged"] = rows["diverged"].eq(True)
    tidy["diverged"] = tidy.groupby(_ARM, dropna=False)["diverged"].transform("any")
    return weights, tidy.drop_duplicates([*_ARM, "step"]).sort_values([*_ARM, "step"])
