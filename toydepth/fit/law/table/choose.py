"""Which rows of a table enter a fit, and why the others do not."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import did_you_mean
from toydepth.fit.checks import is_number, number_name, refuse
from toydepth.fit.law.table.cells import check_has_column, column_of, name_some, read_numbers
from toydepth.fit.law.table.reading import as_table
from toydepth.fit.law.table.rows import Rows, mean_one
from toydepth.fit.law.table.steps import Choice, label_groups


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
    choice = Choice(table)
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
    labels = None if groups is None else label_groups(column_of(table, groups))
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
        weights=None if weights is None else mean_one(values[weights][kept]),
        groups=None if codes is None else codes.astype(np.int64),
        group_names=tuple(str(name) for name in names),
        numbers=choice.numbers[kept],
        left_out=choice.left_out,
        notes=tuple(choice.notes),
        total=len(table),
    )


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
