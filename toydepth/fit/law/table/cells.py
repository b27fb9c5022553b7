"""What the columns of a table are called, and what a cell of one holds: a number, text, or nothing."""

from __future__ import annotations

import numbers
import re
import reprlib
import shlex
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pandas as pd
from pandas.api import types

from toydepth.errors import did_you_mean
from toydepth.fit.checks import refuse

NUMBER, MISSING, TEXT, THOUSANDS = range(4)  # what a cell holds; THOUSANDS: text that separators keep from a number
_MISSING_TEXTS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>"})
_GROUPED = re.compile(r"\s*[+-]?\d{1,3}([,_' ])\d{3}(?:\1\d{3})*(?:\.\d*)?\s*")


def check_has_column(table: pd.DataFrame, argument: str, name: object) -> None:
    """Raises InputError, naming the argument, unless `name` is the name of exactly one column of the table.

    >>> check_has_column(pd.DataFrame({"d_model": [64]}), "the column for m", "d_modl")
    Traceback (most recent call last):
        ...
    toydepth.errors.InputError: the column for m must be a column of the table, got 'd_modl'. Did you mean 'd_model'? \
The table has: d_model.
    """
    known = list(table.columns)
    if not isinstance(name, str):
        raise refuse(argument, "the name of a column", reprlib.repr(name), f"The table has: {name_some(known)}.")
    if name not in table.columns:
        by_case = next((one for one in known if one.lower() == name.lower()), None)
        guess = f" Did you mean {by_case!r}?" if by_case is not None else did_you_mean(name, known)
        if name in table.index.names:
            guess = " It names the index: call table.reset_index() first."
        raise refuse(
            argument, "a column of the table", f"{name!r}", f"{guess} The table has: {name_some(known)}.".strip()
        )
    if known.count(name) > 1:
        raise refuse(argument, "the name of one column", f"{name!r}, which {known.count(name)} have", "Rename them.")


def column_of(table: pd.DataFrame, name: str) -> pd.Series:
    """Returns one column, of a table where `check_has_column` found it."""
    return cast(pd.Series, table[name])


def read_numbers(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cells of a column as float64, NaN where one is no number, and what each cell holds.

    Text that is a number is one (" 3e9 "); a bool, a date or a complex number is none. Blank text, "nan", "NA", "null"
    and "none" are missing. A number beyond float64 is infinite.

    Returns: values (n,) and kinds (n,): NUMBER, MISSING, TEXT (no number) or THOUSANDS (text such as "12,288").

    >>> values, kinds = read_numbers(pd.Series(["1024", " 3e9 ", None, "12,288", True], dtype=object))
    >>> values.tolist(), kinds.tolist()
    ([1024.0, 3000000000.0, nan, nan, nan], [0, 0, 1, 3, 2])
    """
    dtype = column.dtype
    if types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype) and not types.is_complex_dtype(dtype):
        with np.errstate(over="ignore"):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return values, np.where(np.isnan(values), MISSING, NUMBER).astype(np.int8)
    cells = column.to_numpy(dtype=object)
    values, kinds = np.full(len(cells), np.nan), np.full(len(cells), TEXT, dtype=np.int8)
    missing = np.asarray(pd.isna(cells), dtype=bool)
    text = np.fromiter((isinstance(cell, str) for cell in cells), dtype=bool, count=len(cells))
    if text.any():
        # An array of objects: pandas would make bools, and more, of what it could guess anew.
        values[text] = np.asarray(pd.to_numeric(cells[text], errors="coerce"), dtype=np.float64)
    for at in np.flatnonzero(~text & ~missing):
        values[at] = _as_float(cells[at])
    kinds[~np.isnan(values)] = NUMBER
    kinds[missing] = MISSING
    for at in np.flatnonzero(text & (kinds == TEXT)):
        if cells[at].strip().lower() in _MISSING_TEXTS:
            kinds[at] = MISSING
        elif _GROUPED.fullmatch(cells[at]):
            kinds[at] = THOUSANDS
    return values, kinds


def show_cell(cell: Any) -> str:
    r"""Writes one cell for a message, on one line, with what to do where separators keep it from being a number.

    >>> show_cell("12,288"), show_cell(np.True_), show_cell("a\nb")
    ("'12,288': give --thousands ,", 'True', "'a\\nb'")
    """
    shown = " ".join(reprlib.repr(plain_cell(cell)).split())
    grouped = _GROUPED.fullmatch(cell) if isinstance(cell, str) else None
    return f"{shown}: give --thousands {shlex.quote(grouped[1])}" if grouped else shown


def name_some(names: list[str], most: int = 30) -> str:
    """Lists names in one line, and how many more there are.

    >>> name_some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    listed = ", ".join(" ".join(name.split()) for name in names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


def _as_float(cell: Any) -> float:
    """Returns a cell that is no text as a float, NaN where it is no real number."""
    # To Python a bool, and to numpy a span of time, is an integer.
    if isinstance(cell, bool | np.timedelta64) or not isinstance(cell, numbers.Real | Decimal):
        return np.nan
    try:
        return float(cell)
    except OverflowError:
        return np.inf if cell > 0 else -np.inf  # pyright: ignore[reportOperatorIssue]
    except ValueError:
        return np.nan


def plain_cell(cell: Any) -> Any:
    """Returns a scalar of numpy as Python's own."""
    return cell.item() if isinstance(cell, np.generic) else cell
