"""The curves of a run: one row an arm and evaluation."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError, did_you_mean
from toydepth.runs.columns import CURVE_COLUMNS, OPTIONAL_COLUMNS, average_columns, find_decays
from toydepth.runs.files import replacing

CURVES_FILE = "curves.parquet"
_KINDS = {"str": "a string", "int64": "an integer", "float64": "a number", "bool": "True or False"}


def make_curves(
    labels: Mapping[str, Any], arms: Sequence[Mapping[str, Any]], series: Mapping[str, Any]
) -> pd.DataFrame:
    """Lays out what a bank measured as a table, arm by arm, each in the order of its evaluations.

    A diverged arm keeps its rows up to its last finite test loss; those after it, which hold no number, are dropped.
    Anywhere else a NaN stays.

    Args:
        labels: what holds for the whole run: experiment, teacher, rho, teacher_depth, recipe, width, vocabulary,
            loss, head.
        arms: for each arm: arm, depth, mlp_evaluations, temperature, init, block, replicate, teacher_seed,
            average_decay, noise_floor, diverged. None is NaN where the column is a float.
        series: for each evaluation: step, samples, tau, learning_rate, train_loss, test_loss, standard_error and,
            unless averaging is off, test_loss_average, standard_error_average; further decays as `average_columns`
            names them. Of shape (evaluations, arms), or (evaluations,) where all arms share the value.

    Returns:
        DataFrame: the columns of `CURVE_COLUMNS`, then those of further decays.

    Raises:
        InputError: for missing or unknown columns, a wrong shape, or a value that its column cannot hold.

    Example:
        >>> labels = dict(experiment="demo", teacher="tied", rho=None, teacher_depth=64, recipe="a1b2", width=8,
        ...               vocabulary=0, loss="mse", head="none")
        >>> arm = dict(mlp_evaluations=3, temperature=None, init="zero", block="euler", replicate=0, teacher_seed=0,
        ...            average_decay=None, noise_floor=1e-12, diverged=False)
        >>> arms = [dict(arm, arm=0, depth=3), dict(arm, arm=1, depth=6, mlp_evaluations=6, diverged=True)]
        >>> losses = np.array([[0.3, 0.2], [0.1, np.nan]])
        >>> curves = make_curves(labels, arms, dict(step=np.array([0, 10]), samples=np.array([0, 2560]),
        ...                      tau=np.array([0.0, 0.1]), learning_rate=np.full((2, 2), 0.01), train_loss=losses,
        ...                      test_loss=losses, standard_error=losses / 10))
        >>> curves[["arm", "depth", "step", "test_loss"]].values.tolist()
        [[0.0, 3.0, 0.0, 0.3], [0.0, 3.0, 10.0, 0.1], [1.0, 6.0, 0.0, 0.2]]
    """
    if not arms:
        raise InputError("arms must be a list of at least one arm, got none. Give an entry for each student.")
    _check_names("labels", labels, _columns_of("labels"))
    for index, arm in enumerate(arms):
        _check_names(f"arms[{index}]", arm, _columns_of("arms"))
    further = [name for decay in find_decays(series) for name in average_columns(decay)]
    expected = [*_columns_of("series"), *further]
    _check_names("series", series, expected, optional=OPTIONAL_COLUMNS)
    num_arms, num_evaluations = len(arms), len(np.atleast_1d(np.asarray(series["step"])))

    table = {}
    for name in [*CURVE_COLUMNS, *further]:
        if name in labels or name in arms[0]:
            constants = [labels[name]] * num_arms if name in labels else [arm[name] for arm in arms]
            values = np.repeat(_checked_constants(name, constants), num_evaluations)
        else:
            values = _lay_out(name, series.get(name, np.full(num_evaluations, np.nan)), num_evaluations, num_arms)
        table[name] = pd.Series(values).astype(_dtype(name))
    curves = pd.DataFrame(table)
    return curves.loc[~_after_divergence(curves, num_evaluations)].reset_index(drop=True)


def write_curves(folder: str | Path, curves: pd.DataFrame) -> Path:
    """Writes `curves` to the folder's curves.parquet, atomically: a reader sees the old table or the new one.

    Raises: InputError for a table without the columns of `CURVE_COLUMNS`.
    """
    path = Path(folder) / CURVES_FILE
    _check_table("curves", curves, "Build the table with make_curves.")
    with replacing(path) as temporary:
        curves.to_parquet(temporary, index=False)
    return path


def read_curves(folder: str | Path) -> pd.DataFrame:
    """Reads the curves a run left in its folder.

    Raises: InputError for a file that is missing, that cannot be read, that lacks columns, or whose columns hold
        something else than `CURVE_COLUMNS` says.
    """
    path = Path(folder) / CURVES_FILE
    if not path.is_file():
        advice = "Give the folder of a run that has been evaluated."
        raise InputError(f"{path} must be the curves of a run, got no such file. {advice}")
    advice = "Restore the file, or run again."
    try:
        curves = pd.read_parquet(path)
    except Exception as error:  # whatever the reader makes of a damaged file, the person needs its name
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{path} must be a readable parquet file, got: {reason}. {advice}") from error
    _check_table(str(path), curves, advice)
    further = [name for decay in find_decays(curves.columns) for name in average_columns(decay)]
    for name in [*CURVE_COLUMNS, *[name for name in further if name in curves.columns]]:
        curves[name] = _checked_column(path, curves[name], _dtype(name), advice)
    return curves


def _check_table(what: str, curves: pd.DataFrame, advice: str) -> None:
    missing = [name for name in CURVE_COLUMNS if name not in curves.columns]
    if missing:
        raise InputError(f"{what} must hold every column of a run's curves, got no {', '.join(missing)}. {advice}")


def _checked_column(path: Path, column: Any, dtype: str, advice: str) -> pd.Series:
    """Returns a column that was read in its own type; raises InputError for what is of another kind."""
    if dtype == "str":
        wrong = [value for value in column if not isinstance(value, str)]
    elif column.dtype.kind not in {"int64": "iu", "float64": "iuf", "bool": "b"}[dtype]:
        wrong = column.iloc[:1].tolist()
    else:
        # Types of pandas' own hold nulls that are no NaN; only a float has a value for what is missing.
        wrong = [] if dtype == "float64" else column[column.isna()].tolist()
    if wrong:
        value = reprlib.repr(wrong[0])
        raise InputError(f"{path} must hold {_KINDS[dtype]} in every row of {column.name}, got {value}. {advice}")
    return column.astype(dtype)


def _columns_of(source: str) -> list[str]:
    return [name for name, column in CURVE_COLUMNS.items() if column.source == source]


def _check_names(what: str, given: Iterable[str], expected: Sequence[str], optional: Sequence[str] = ()) -> None:
    unknown = [name for name in given if name not in expected]
    if unknown:
        if unknown[0] in CURVE_COLUMNS:
            hint = f" {unknown[0]} belongs in {CURVE_COLUMNS[unknown[0]].source}."
        else:
            hint = did_you_mean(unknown[0], expected)
        raise InputError(f"{what} must hold known columns, got {', '.join(unknown)}. Leave them out.{hint}")
    missing = [name for name in expected if name not in given and name not in optional]
    if missing:
        raise InputError(f"{what} must hold every column, got no {', '.join(missing)}. Give {missing[0]} as well.")


def _dtype(name: str) -> str:
    return CURVE_COLUMNS[name].dtype if name in CURVE_COLUMNS else "float64"


def _checked_constants(name: str, values: list[Any]) -> np.ndarray:
    dtype = _dtype(name)
    if dtype == "float64":
        values = [np.nan if value is None else value for value in values]
    kinds = {"str": (str,), "int64": (int, np.integer), "float64": (float, int, np.number), "bool": (bool, np.bool_)}
    for value in values:
        # A bool is an int to Python, but no number to a person.
        if not isinstance(value, kinds[dtype]) or (dtype != "bool" and isinstance(value, bool)):
            raise _wrong_type(name, value)
    return np.array(values, dtype=object if dtype == "str" else dtype)


def _lay_out(name: str, values: Any, num_evaluations: int, num_arms: int) -> np.ndarray:
    array = np.asarray(values)
    shared = array[:, None] if array.ndim == 1 else array
    if shared.shape not in ((num_evaluations, num_arms), (num_evaluations, 1)):
        shape = f"({num_evaluations},) or ({num_evaluations}, {num_arms})"
        advice = "Give a row for each evaluation, a column for each arm."
        raise InputError(f"series[{name!r}] must be of shape {shape}, got {array.shape}. {advice}")
    if array.dtype.kind not in ("iu" if _dtype(name) == "int64" else "iuf"):
        raise _wrong_type(name, array.ravel()[:1].tolist())
    return np.broadcast_to(shared, (num_evaluations, num_arms)).T.ravel()


def _wrong_type(name: str, value: object) -> InputError:
    return InputError(
        f"column {name} must be {_KINDS[_dtype(name)]}, got {value!r}. Convert it before the table is made."
    )


def _after_divergence(curves: pd.DataFrame, num_evaluations: int) -> np.ndarray:
    finite = np.isfinite(curves["test_loss"].to_numpy()).reshape(-1, num_evaluations)
    # Seen from the end, no finite loss up to and including this row: it lies after the last finite one.
    after = np.cumsum(finite[:, ::-1], axis=1)[:, ::-1] == 0
    return after.ravel() & curves["diverged"].to_numpy()
