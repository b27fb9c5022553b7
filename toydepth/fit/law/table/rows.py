"""Which rows of a table enter a fit, and why the others do not."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pandas.api import types

from toydepth.errors import InputError, did_you_mean
from toydepth.fit.checks import is_number, number_name, plain, refuse
from toydepth.fit.law.table.reading import (
    MISSING,
    NUMBER,
    TEXT,
    THOUSANDS,
    as_table,
    check_has_column,
    column_of,
    name_some,
    read_numbers,
    show_cell,
)


@dataclass(frozen=True)
class LeftOutRows:
    """Rows kept out of a fit for one reason: how many, and their numbers in the table."""

    reason: str
    count: int
    rows: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns {reason, count, rows} for JSON."""
        return plain({"reason": self.reason, "count": self.count, "rows": self.rows})


@dataclass(frozen=True, eq=False)
class Rows:
    """The n rows of a fit, and a record of every other row of the table.

    variables: symbol -> (n,) positive numbers, the offset already subtracted, in the units of the table; loss: (n,);
    weights: (n,) of mean 1, or None; groups: (n,) places in group_names, or None; numbers: (n,) numbers of the rows in
    the table (from 1 where `read_table` read it); total: rows of the table, num_rows + those of left_out.
    """

    variables: dict[str, np.ndarray]
    loss: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray | None
    group_names: tuple[str, ...]
    numbers: np.ndarray
    left_out: tuple[LeftOutRows, ...]
    notes: tuple[str, ...]
    total: int

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.loss)

    def take(self, mask_or_index: ArrayLike, reason: str | None = None) -> Rows:
        """Returns some of the rows: by a bool for each, or by places from 0, which may repeat (a bootstrap).

        Weights are of mean 1 again. group_names, and so the places in it, stay as they are: two parts of the same rows
        speak of the same groups.

        Args:
            mask_or_index: (n,) bools, or whole numbers in 0 ... n - 1.
            reason: if given, the rows not taken stand in left_out under it.

        Raises: InputError for a mask of the wrong length, a place that is none, or a reason that leaves no row.

        >>> rows = choose_rows({"m": [64, 128, 256], "loss": [3.0, 2.5, 2.2]}, {"m": "m"}, "loss")
        >>> rows.take(rows.loss < 3, "held out").left_out
        (LeftOutRows(reason='held out', count=1, rows=(1,)),)
        """
        places = self._places(mask_or_index)
        left_out = self.left_out
        if reason is not None:
            lost = np.ones(self.num_rows, dtype=bool)
            lost[places] = False
            left_out += _record(self.numbers[lost], reason)
            if not len(places):
                raise _none_left(self.total, left_out)
        return replace(
            self,
            variables={symbol: values[places] for symbol, values in self.variables.items()},
            loss=self.loss[places],
            weights=None if self.weights is None else _mean_one(self.weights[places]),
            groups=None if self.groups is None else self.groups[places],
            numbers=self.numbers[places],
            left_out=left_out,
        )

    def frame(self) -> pd.DataFrame:
        """Returns the variables, offsets subtracted, and the loss as a table; its index is the row numbers.

        >>> choose_rows({"m": [64, 128], "loss": [3.0, 2.5]}, {"m": "m"}, "loss").frame()
                 m  loss
        row
        1     64.0   3.0
        2    128.0   2.5
        """
        return pd.DataFrame({**self.variables, "loss": self.loss}, index=pd.Index(self.numbers, name="row"))

    def _places(self, given: ArrayLike) -> np.ndarray:
        array = np.asarray(given)
        advice = f"There are {self.num_rows} rows."
        if array.ndim != 1 or (array.size and array.dtype.kind not in "biu"):
            raise refuse("mask_or_index", "a list of bools or whole numbers", reprlib.repr(given), advice)
        if array.dtype.kind == "b":
            if len(array) != self.num_rows:
                raise refuse("mask_or_index", "a bool for each row", f"{len(array)} bools", advice)
            return np.flatnonzero(array)
        outside = array[(array < 0) | (array >= self.num_rows)]
        if outside.size:
            raise refuse("mask_or_index", f"in 0 ... {self.num_rows - 1}", f"{outside[0]}", advice)
        return array.astype(np.int64)


def choose_rows(
    table: pd.DataFrame | Mapping[str, Any],
    columns: Mapping[str, str],
    loss: str,
    *,
    offsets: Mapping[str, float] | None = None,
    exclude_highest: int = 0,
    ties: str = "below",
    query: str | None = None,
    weights: str | None = None,
    groups: str | None = None,
    duplicates: str = "keep",
) -> Rows:
    """Keeps the rows of a table that a law can be fitted to; each other row is counted, with a reason.

    In this order: rows not in the query; cells that hold no number; numbers that are infinite, or not positive; rows
    without a group; the highest losses; repeated rows. A row counts once, under the first of its faults, those of the
    loss first, then of the variables, weights and groups.

    Args:
        table: what `read_table` returns, a DataFrame, or a dict of columns. Columns not named here are ignored.
        columns: symbol of a variable -> its column, such as {"m": "d_model", "ell": "n_layers"}.
        loss: column of the loss, in any unit, greater than 0.
        offsets: symbol -> what is subtracted from the variable, in its unit: 2 for ell - 2.
        exclude_highest: K: how many of the highest losses to leave out, fewer than the rows there are.
        ties: "below" keeps losses strictly below the K-th highest, so that what ties with it goes too; "rank" leaves
            out exactly K rows, the highest first, and among equal losses the earlier row of the table first.
        query: a condition as in `DataFrame.query`, such as "d_model > 256 and split == 'train'".
        weights: column of weights, 0 or more; only their ratios count. Weight 0 leaves a row out.
        groups: column of what each row belongs to: numbers or text.
        duplicates: "keep" keeps rows whose variables, loss and group are those of an earlier row, with a note; "drop"
            leaves them out.

    Returns: the rows, in the order of the table.

    Raises: InputError for a column that is not there, an option out of range, a query that is wrong or keeps nothing,
        or where no row is left.

    >>> table = {"width": [64, 128, "n/a", 256], "layers": [2, 4, 8, 8], "loss": [4.0, 3.1, 2.9, 2.7]}
    >>> rows = choose_rows(table, {"m": "width", "ell": "layers"}, "loss", offsets={"ell": 2})
    >>> rows.variables["ell"], [(left.reason, left.rows) for left in rows.left_out]
    (array([2., 6.]), [('width is missing (NaN)', (3,)), ('layers is not greater than the offset 2', (1,))])
    """
    table = as_table(table)
    offsets = _check_arguments(table, columns, loss, offsets, weights, groups)
    for argument, value, known in (("ties", ties, ("below", "rank")), ("duplicates", duplicates, ("keep", "drop"))):
        if value not in known:
            advice = f"Choose one.{did_you_mean(str(value), known)}"
            raise refuse(argument, " or ".join(map(repr, known)), reprlib.repr(value), advice)
    _check_count(exclude_highest)
    choice = _Choice(table)
    used = [loss, *columns.values()]
    if weights is not None and weights not in used:
        used.append(weights)
    cells = {name: read_numbers(column_of(table, name)) for name in used}
    if query is not None:
        choice.query(query, table, cells)

    values = {name: choice.numbers_of(name, column_of(table, name), *cells[name]) for name in used}
    for name in (loss, *columns.values()):
        choice.leave_out(np.isinf(values[name]), f"{name} is infinite")
    choice.leave_out(values[loss] <= 0, f"{loss} is zero or negative")
    variables = {}
    for symbol, name in columns.items():
        offset = offsets.get(symbol, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            variables[symbol] = values[name] - offset
        beyond = f"not greater than the offset {number_name(offset)}" if offset else "zero or negative"
        choice.leave_out(variables[symbol] <= 0, f"{name} is {beyond}")
        choice.leave_out(np.isinf(variables[symbol]), f"{name} is infinite after the offset {number_name(offset)}")
    if weights is not None:
        choice.leave_out(np.isinf(values[weights]), f"{weights} is infinite")
        choice.leave_out(values[weights] < 0, f"{weights} is negative")
        choice.leave_out(values[weights] == 0, f"{weights} is zero, which is no weight")
    labels = None if groups is None else _labels(column_of(table, groups))
    if labels is not None:
        choice.leave_out(labels == "", f"{groups} is missing")
    choice.check_some_left()

    choice.exclude_highest(values[loss], exclude_highest, ties)
    choice.duplicates({**variables, "loss": values[loss], **({} if labels is None else {"group": labels})}, duplicates)
    kept = choice.kept
    codes, names = (None, ()) if labels is None else pd.factorize(labels[kept])
    return Rows(
        variables={symbol: column[kept] for symbol, column in variables.items()},
        loss=values[loss][kept],
        weights=None if weights is None else _mean_one(values[weights][kept]),
        groups=None if codes is None else codes.astype(np.int64),
        group_names=tuple(str(name) for name in names),
        numbers=choice.numbers[kept],
        left_out=choice.left_out,
        notes=tuple(choice.notes),
        total=len(table),
    )


class _Choice:
    """The rows still in, and a record of those that went, in the order of the steps."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.numbers = table.index.to_numpy(dtype=np.int64)
        self.kept = np.ones(len(table), dtype=bool)
        self.left_out: tuple[LeftOutRows, ...] = ()
        self.notes: list[str] = []

    def leave_out(self, where: np.ndarray, reason: str) -> None:
        """Leaves out those of the rows that are still in."""
        self.left_out += _record(self.numbers[where & self.kept], reason)
        self.kept = self.kept & ~where

    def check_some_left(self) -> None:
        if not self.kept.any():
            raise _none_left(len(self.kept), self.left_out)

    def query(self, query: str, table: pd.DataFrame, cells: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> None:
        where = _evaluate(query, table, cells)
        shown = " ".join(query.split())
        if not where.any():
            advice = "Check the names of its values and their units."
            raise refuse(
                "query", "a condition that some row meets", f"{shown!r}, which none of {len(table)} does", advice
            )
        self.leave_out(~where, f"not in the query '{shown}'")
        # No comparison is true of a cell that is no number, so that its fault would be told nowhere.
        for name, (_, kinds) in cells.items():
            lost = (kinds >= TEXT) & ~where
            if name in query and lost.any():
                cell = show_cell(column_of(table, name).iloc[int(np.flatnonzero(lost)[0])])
                self.notes.append(f"{lost.sum()} of the rows not in the query hold no number in {name} ({cell})")

    def numbers_of(self, name: str, column: pd.Series, values: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """Leaves out what holds no number; returns the values."""
        self.leave_out(kinds == MISSING, f"{name} is missing (NaN)")
        for kind in (THOUSANDS, TEXT):
            bad = (kinds == kind) & self.kept
            if bad.any():
                cell = show_cell(column.iloc[int(np.flatnonzero(bad)[0])])
                self.leave_out(bad, f"{name} is not a number ({cell})")
        return values

    def exclude_highest(self, loss: np.ndarray, count: int, ties: str) -> None:
        places = np.flatnonzero(self.kept)
        if count >= len(places):
            because = f" ({_reasons(self.left_out)})" if self.left_out else ""
            got = f"{count} of {len(places)} rows{because}"
            raise refuse("exclude_highest", "less than the number of rows that can be used", got, "Lower it.")
        if not count:
            return
        highest = places[np.lexsort((places, -loss[places]))[:count]]
        out = np.zeros(len(loss), dtype=bool)
        out[highest] = True
        self.leave_out(out, f"among the {count} highest losses")
        if ties == "below":
            edge = loss[highest[-1]]
            tied = (loss == edge) & self.kept
            self.leave_out(tied, f"as high as the lowest of the {count} highest losses (ties=rank keeps it)")
            self.check_some_left()

    def duplicates(self, columns: Mapping[str, np.ndarray], action: str) -> None:
        places = np.flatnonzero(self.kept)
        repeats = pd.DataFrame({i: column[places] for i, column in enumerate(columns.values())}).duplicated().to_numpy()
        if action == "drop":
            out = np.zeros(len(self.kept), dtype=bool)
            out[places[repeats]] = True
            self.leave_out(out, "repeats an earlier row exactly")
        elif count := int(repeats.sum()):
            verb = "row repeats" if count == 1 else "rows repeat"
            self.notes.append(f"{count} {verb} another row exactly (kept; duplicates=drop leaves them out)")


def _check_arguments(
    table: pd.DataFrame,
    columns: Mapping[str, str],
    loss: str,
    offsets: Mapping[str, float] | None,
    weights: str | None,
    groups: str | None,
) -> dict[str, float]:
    """Raises InputError for a column that is not there or stands for two; returns the offsets as floats."""
    if not isinstance(columns, Mapping) or not columns:
        raise refuse("columns", "a dict of symbol to column", reprlib.repr(columns), 'Give such as {"m": "d_model"}.')
    odd = next((symbol for symbol in columns if not isinstance(symbol, str) or symbol == "loss"), None)
    if odd is not None:
        advice = "The column of the loss is given on its own."
        raise refuse("the symbols of columns", "text other than 'loss'", reprlib.repr(odd), advice)
    owner: dict[str, str] = {}
    for symbol, name in (*columns.items(), ("loss", loss)):
        argument = f"the column for {symbol}"
        check_has_column(table, argument, name)
        if name in owner:
            advice = "Give each a column of its own."
            raise refuse(argument, "another than that of any other", f"{name!r}, as for {owner[name]}", advice)
        owner[name] = symbol
    for argument, name in (("weights", weights), ("groups", groups)):
        if name is not None:
            check_has_column(table, f"the column for {argument}", name)
    if offsets is not None and not isinstance(offsets, Mapping):
        raise refuse("offsets", "a dict of symbol to number", reprlib.repr(offsets), 'Give such as {"ell": 2}.')
    for symbol, offset in (offsets or {}).items():
        if symbol not in columns:
            advice = f"The variables are {name_some(list(columns))}."
            raise refuse("offsets", "for variables that have a column", reprlib.repr(symbol), advice)
        if not is_number(offset) or not math.isfinite(offset):
            advice = "Give 0 to fit against the variable itself."
            raise refuse(f"the offset of {symbol}", "a finite number", reprlib.repr(offset), advice)
    return {symbol: float(offset) for symbol, offset in (offsets or {}).items()}


def _check_count(exclude_highest: object) -> None:
    whole = isinstance(exclude_highest, int | np.integer) and not isinstance(exclude_highest, bool | np.timedelta64)
    if not whole or exclude_highest < 0:  # pyright: ignore[reportOperatorIssue]
        got = reprlib.repr(exclude_highest)
        raise refuse("exclude_highest", "an integer, 0 or more", got, "Give 0 to keep the highest losses.")


def _evaluate(query: str, table: pd.DataFrame, cells: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Returns which rows meet the query; its columns of text that hold numbers are numbers to it."""
    advice = "Write such as \"d_model > 256 and split == 'train'\"."
    if not isinstance(query, str) or not query.strip():
        raise refuse("query", "a condition", reprlib.repr(query), advice)
    query = " ".join(query.splitlines())
    shown = repr(" ".join(query.split()))
    view = table.loc[:, ~table.columns.duplicated()]
    numbers = {name: values for name, (values, _) in cells.items() if name in query}
    for name in view.columns:
        if name in query and name not in cells and not types.is_numeric_dtype(column_of(view, name).dtype):
            values, kinds = read_numbers(column_of(view, name))
            if (kinds == NUMBER).any() and (kinds <= MISSING).all():
                numbers[name] = values
    view = view.assign(**numbers)
    try:
        with np.errstate(all="ignore"):
            # No names but the columns': a query must not depend on what this function calls its variables.
            result: Any = view.eval(query, engine="python", local_dict={}, global_dict={})
    except Exception as error:  # a query is a small program: it can fail in any way
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, NameError):
            name = str(getattr(error, "name", None) or reason.split("'")[1])
            advice = (
                f"{did_you_mean(name, view.columns).strip()} The table has: {name_some(list(view.columns))}.".strip()
            )
        raise refuse("query", "a condition on the columns", f"{shown}: {reason}", advice) from None
    is_bool = isinstance(result, pd.Series | np.ndarray) and types.is_bool_dtype(result.dtype)
    if not is_bool or result.shape != (len(view),):
        raise refuse("query", "true or false for each row", f"{shown}: {type(result).__name__}", advice)
    return np.asarray(pd.Series(result).fillna(False), dtype=bool)


def _labels(column: pd.Series) -> np.ndarray:
    """Returns the groups' names as text, "" where missing; numbers as people write them."""
    try:
        codes, found = pd.factorize(column)
    except TypeError:  # lists and the like, from JSON
        got = f"{column.name!r}, which holds lists or the like"
        raise refuse("the column for groups", "numbers or text", got, "Give another column.") from None
    names = [number_name(one) if is_number(one) and math.isfinite(one) else str(one).strip() for one in found]
    return np.array([*names, ""], dtype=object)[codes]


def _record(numbers: np.ndarray, reason: str) -> tuple[LeftOutRows, ...]:
    return (LeftOutRows(reason, len(numbers), tuple(numbers.tolist())),) if len(numbers) else ()


def _reasons(left_out: tuple[LeftOutRows, ...]) -> str:
    return "; ".join(f"{left.count} {left.reason}" for left in left_out)


def _none_left(total: int, left_out: tuple[LeftOutRows, ...]) -> InputError:
    got = f"none of {total}: {_reasons(left_out)}"
    return refuse("table", "one with rows that can be used", got, "Correct these cells, or leave out less.")


def _mean_one(weights: np.ndarray) -> np.ndarray:
    # By the highest first: the sum of very large weights is infinite.
    scaled = weights / weights.max(initial=0.0) if weights.size else weights
    return scaled / scaled.mean() if weights.size else weights
