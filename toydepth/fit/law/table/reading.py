"""How a file becomes a table, and a cell of it a number."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import numbers
import re
import reprlib
import shlex
import zlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from pandas.api import types

from toydepth.errors import InputError, did_you_mean
from toydepth.fit.checks import refuse

NUMBER, MISSING, TEXT, THOUSANDS = range(4)  # what a cell holds; THOUSANDS: text that separators keep from a number
_MISSING_TEXTS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>"})
_GROUPED = re.compile(r"\s*[+-]?\d{1,3}([,_' ])\d{3}(?:\1\d{3})*(?:\.\d*)?\s*")

_UNPACKED_BY: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}


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
    kind = _kind(path)
    _check_thousands(thousands)
    data = _read_bytes(path)
    if not data.strip():
        raise refuse(str(path), "a table with a header and rows", "an empty file", "Write the table again.")
    table = {".parquet": _parquet, ".csv": _csv, ".tsv": _tsv}.get(kind, _json_lines)(path, data)
    table.columns = [str(name).strip() for name in table.columns]
    _check_names(path, list(table.columns))
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
            raise refuse("table", "a dict of columns of one length", _line(error), "Give a list for each.") from None
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
        got = f"{reprlib.repr(_plain(odd[0]))} ({type(odd[0]).__name__})"
        raise refuse("the table's column names", "text", got, "Rename it, with table.rename(columns=...).")
    if not len(frame):
        raise refuse("table", "one with rows", "none", "Add the runs to it.")
    index = frame.index
    if isinstance(index, pd.MultiIndex):
        raise refuse("the table's index", "of one level", f"{index.nlevels} levels", "Call table.reset_index() first.")
    if not types.is_integer_dtype(index.dtype) or index.has_duplicates:
        frame.index = pd.RangeIndex(1, len(frame) + 1, name=index.name)
    return frame


def check_has_column(table: pd.DataFrame, argument: str, name: object) -> None:
    """Raises InputError, naming the argument, unless `name` is the name of exactly one column of the table.

    >>> check_has_column(as_table({"d_model": [64]}), "the column for m", "d_modl")
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
    shown = " ".join(reprlib.repr(_plain(cell)).split())
    grouped = _GROUPED.fullmatch(cell) if isinstance(cell, str) else None
    return f"{shown}: give --thousands {shlex.quote(grouped[1])}" if grouped else shown


def name_some(names: list[str], most: int = 30) -> str:
    """Lists names in one line, and how many more there are.

    >>> name_some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    listed = ", ".join(" ".join(name.split()) for name in names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


def _kind(path: Path) -> str:
    """Returns the suffix that says how to read a file; raises InputError where it is none that is known."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    packed = bool(suffixes) and suffixes[-1] in _UNPACKED_BY
    kind = "".join(suffixes[:-1][-1:] if packed else suffixes[-1:])
    if kind in (".csv", ".tsv", ".jsonl", ".ndjson") or (kind == ".parquet" and not packed):
        return kind
    if path.is_dir():
        raise refuse(str(path), "a file", "a folder", "Give the table in it.")
    known = ".csv, .tsv, .jsonl, .ndjson (each also .gz, .bz2, .xz) or .parquet"
    raise refuse(str(path), f"a table that ends in {known}", path.suffix or "no suffix", "Save it as one of these.")


def _read_bytes(path: Path) -> bytes:
    """Returns what a file holds, unpacked; raises InputError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        near = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        raise refuse(str(path), "a file", "none", f"Check the path.{did_you_mean(path.name, near)}") from None
    except IsADirectoryError:
        raise refuse(str(path), "a file", "a folder", "Give the table in it.") from None
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise refuse(str(path), "a file that can be read", got, "Check the path and its permissions.") from None
    try:
        return _UNPACKED_BY.get(path.suffix.lower(), bytes)(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise _damaged(path, error, f"Pack it again, or give it without {path.suffix}.") from None


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        got = f"the byte 0x{data[error.start]:02x} in line {line}"
        raise refuse(str(path), "text in UTF-8", got, "Save it as UTF-8.") from None


def _csv(path: Path, data: bytes) -> pd.DataFrame:
    return _separated(path, data, ",", "commas")


def _tsv(path: Path, data: bytes) -> pd.DataFrame:
    return _separated(path, data, "\t", "tabs")


def _separated(path: Path, data: bytes, separator: str, name: str) -> pd.DataFrame:
    """Reads text with one header line; pandas renames repeated columns and takes an unnamed first for an index."""
    text = _decode(path, data)
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator == ",")
        filled = (line for line in lines if len(line) > 1 or any(cell.strip() for cell in line))
        header, first = next(filled), next(filled, [])
    except (csv.Error, StopIteration) as error:
        raise _damaged(path, error, "Write the table again.") from None
    if len(header) == 1 and (other := next((mark for mark in ";\t," if mark in header[0]), None)):
        advice = "Save it with the separator of its suffix: .csv has commas, .tsv has tabs."
        raise refuse(str(path), f"separated by {name}", f"a header with {other!r}", advice)
    _check_names(path, [cell.strip() for cell in header if cell.strip()])
    if len(first) > len(header):
        got = f"{len(header)} in the header and {len(first)} in the first row"
        advice = f"Quote cells that hold {name}, and remove {name} at the ends of lines."
        raise refuse(str(path), "a table with a name for each cell of a row", got, advice)
    try:
        return pd.read_csv(
            io.StringIO(text, newline=""),
            sep=separator,
            skipinitialspace=separator == ",",
            low_memory=False,  # otherwise one column can hold "1" and 1
            keep_default_na=False,  # a group may be called NA or None
            na_values=["", "nan", "NaN", "NAN"],
        )
    except (ValueError, OverflowError) as error:
        reason = re.sub(r"^Error tokenizing data\. C error: ", "", _line(error))
        raise _damaged(path, reason, f"Correct that line; quote cells that hold {name}.") from None


def _json_lines(path: Path, data: bytes) -> pd.DataFrame:
    """Reads one object a line; not by pandas, which takes some names for dates and names no line."""
    records = []
    for number, line in enumerate(_decode(path, data).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=_distinct)
        except (ValueError, RecursionError) as error:
            # The column alone: to json, each line is line 1.
            syntax = isinstance(error, json.JSONDecodeError)
            reason = f"line {number}: {f'{error.msg} in column {error.colno}' if syntax else _line(error)}"
            raise _damaged(path, reason, 'Each line is one object, such as {"m": 64}.') from None
        if not isinstance(record, dict):
            got = f"{type(record).__name__} in line {number}"
            raise refuse(str(path), "one JSON object a line", got, 'Write {"m": 64, "loss": 3.2} in each line.')
        records.append(record)
    try:
        return pd.DataFrame(records)
    except ValueError as error:
        raise _damaged(path, error, "Write the table again.") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice")
    return record


def _parquet(path: Path, data: bytes) -> pd.DataFrame:
    import pyarrow.parquet  # here, since it is slow to load and few tables need it

    try:
        _check_names(path, pyarrow.parquet.read_schema(io.BytesIO(data)).names)
        # From memory: given a path, pandas makes columns of folders called name=value.
        table = pd.read_parquet(io.BytesIO(data))
        return table.reset_index() if any(name is not None for name in table.index.names) else table
    except InputError:
        raise
    except Exception as error:  # whatever the bytes of a damaged file lead to
        raise _damaged(path, error, "Write the table again.") from None


def _check_names(path: Path, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        advice = "Rename or remove one of them."
        raise refuse(str(path), "a table with distinct column names", f"{twice!r} {names.count(twice)} times", advice)


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


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _line(error: object) -> str:
    """Returns what an error says, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _damaged(path: Path, error: object, advice: str) -> InputError:
    return refuse(str(path), "a table that can be read", _line(error).rstrip("."), advice)
