"""How a file, or what somebody has, becomes a table."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from toydepth.fit.checks import refuse
from toydepth.fit.law.table.cells import MISSING, NUMBER, column_of, plain_cell, read_numbers
from toydepth.fit.law.table.formats import check_names, file_kind, parse, read_bytes
from toydepth.fit.law.text import error_text


def read_table(path: str | Path, *, thousands: str | None = None) -> pd.DataFrame:
    r"""Reads a table: .csv, .tsv, .jsonl or .ndjson (each also .gz, .bz2, .xz), or .parquet.

    No row and no cell is dropped: a column that holds anything but numbers keeps its text. Blanks around the names of
    columns, and lines that are blank, do not count.

    Args:
        path: the file; its suffix says what it is. Text is UTF-8.
        thousands: what stands between thousands, such as "," in "12,288". Only text that is a number with separators
            where they belong is changed: "1,2" stays text. None: such cells stay text, and `choose_rows` says so.

    Returns: the table; its index is the number of the data row, from 1.

    Raises: InputError for a file that is missing, of no known suffix, empty, damaged, not UTF-8, without rows, or with
        two columns of one name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "runs.csv").write_text('d_model,loss\n512,3.5\n"1,024",3.1\n')
    ...     table = read_table(Path(folder, "runs.csv"), thousands=",")
    >>> table["d_model"].tolist(), table.index.tolist()
    ([512.0, 1024.0], [1, 2])
    """
    if not isinstance(path, str | Path):
        raise refuse("path", "the path of a table", type(path).__name__, "Give a str or a pathlib.Path.")
    path = Path(path)
    kind = file_kind(path)
    _check_thousands(thousands)
    data = read_bytes(path)
    if not data.strip():
        raise refuse(str(path), "a table with a header and rows", "an empty file", "Write the table again.")
    table = parse(path, kind, data)
    table.columns = [str(name).strip() for name in table.columns]
    check_names(path, list(table.columns))
    if not len(table.columns) or not len(table):
        raise refuse(str(path), "a table with rows", f"{len(table.columns)} columns and no rows", "Add the runs to it.")
    table.index = pd.RangeIndex(1, len(table) + 1)
    # In .csv and .tsv nothing tells text from numbers; in the others a number written as text is meant as text.
    return _with_numbers(table, thousands, all_text=kind in (".csv", ".tsv"))


def as_table(table: pd.DataFrame | Mapping[str, Any]) -> pd.DataFrame:
    """Returns a DataFrame (or a dict of columns) as a table with text names; its index numbers the rows.

    The index is kept where it is whole numbers that are distinct, as `read_table` and a filter after it leave it, so
    that `table.loc[number]` is the row of a message; otherwise rows count from 1.

    Raises: InputError for what is no table, has no rows, or has names that are not text.

    >>> as_table({"m": [64, 128], "loss": [3.0, 2.5]}).index.tolist()
    [1, 2]
    """
    if isinstance(table, Mapping):
        try:
            frame = pd.DataFrame(dict(table))
        except (ValueError, TypeError) as error:
            raise refuse(
                "table", "a dict of columns of one length", error_text(error), "Give a list for each."
            ) from None
        frame.index = pd.RangeIndex(1, len(frame) + 1)
    elif isinstance(table, pd.DataFrame):
        frame = table.copy(deep=False)
    else:
        advice = "Give what read_table returns, or a dict of columns."
        raise refuse("table", "a pandas DataFrame", type(table).__name__, advice)
    if isinstance(frame.columns, pd.MultiIndex):
        levels = f"{frame.columns.nlevels} levels of them"
        raise refuse("the table's column names", "of one level", levels, "Join them to one text a column.")
    odd = [name for name in frame.columns if not isinstance(name, str)]
    if odd:
        got = f"{reprlib.repr(plain_cell(odd[0]))} ({type(odd[0]).__name__})"
        raise refuse("the table's column names", "text", got, "Rename it, with table.rename(columns=...).")
    if not len(frame):
        raise refuse("table", "one with rows", "none", "Add the runs to it.")
    index = frame.index
    if isinstance(index, pd.MultiIndex):
        raise refuse("the table's index", "of one level", f"{index.nlevels} levels", "Call table.reset_index() first.")
    if not types.is_integer_dtype(index.dtype) or index.has_duplicates:
        frame.index = pd.RangeIndex(1, len(frame) + 1, name=index.name)
    return frame


def _check_thousands(thousands: object) -> None:
    ok = isinstance(thousands, str) and len(thousands) == 1 and not thousands.isalnum() and thousands not in "+-."
    if thousands is not None and not ok:
        advice = 'Give "," for 12,288, or None.'
        raise refuse("thousands", "one character that is no part of a number", reprlib.repr(thousands), advice)


def _with_numbers(table: pd.DataFrame, thousands: str | None, all_text: bool) -> pd.DataFrame:
    """Takes separators out of numbers, and makes numbers of the columns of text that then hold nothing else."""
    new = {}
    for name in table.columns:
        column = column_of(table, name)
        if column.dtype != object and not types.is_string_dtype(column.dtype):
            continue
        changed = _without_separators(column, thousands) if thousands else column
        if all_text or changed is not column:
            values, kinds = read_numbers(changed)
            if (kinds == NUMBER).any() and (kinds <= MISSING).all():
                changed = pd.Series(values, index=column.index)
        if changed is not column:
            new[name] = changed
    return table.assign(**new) if new else table


def _without_separators(column: pd.Series, thousands: str) -> pd.Series:
    mark = re.escape(thousands)
    grouped = re.compile(rf"\s*[+-]?\d{{1,3}}(?:{mark}\d{{3}})+(?:\.\d*)?(?:[eE][+-]?\d+)?\s*")
    cells = column.to_numpy(dtype=object)
    at = [i for i, cell in enumerate(cells) if isinstance(cell, str) and thousands in cell and grouped.fullmatch(cell)]
    if not at:
        return column
    cells = cells.copy()
    cells[at] = [cell.replace(thousands, "") for cell in cells[at]]
    return pd.Series(cells, index=column.index, dtype=object)
