"""From the bytes of a file to a table, for each format; what is damaged is said in one line."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from toydepth.errors import InputError, did_you_mean
from toydepth.fit.checks import refuse
from toydepth.fit.law.text import error_text

_UNPACKED_BY: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}


def parse(path: Path, kind: str, data: bytes) -> pd.DataFrame:
    """Returns the table of a file's bytes, its names as they stand there; raises InputError."""
    return {".parquet": _parquet, ".csv": _csv, ".tsv": _tsv}.get(kind, _json_lines)(path, data)


def file_kind(path: Path) -> str:
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


def read_bytes(path: Path) -> bytes:
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
    check_names(path, [cell.strip() for cell in header if cell.strip()])
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
        reason = re.sub(r"^Error tokenizing data\. C error: ", "", error_text(error))
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
            reason = f"line {number}: {f'{error.msg} in column {error.colno}' if syntax else error_text(error)}"
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
        check_names(path, pyarrow.parquet.read_schema(io.BytesIO(data)).names)
        # From memory: given a path, pandas makes columns of folders called name=value.
        table = pd.read_parquet(io.BytesIO(data))
        return table.reset_index() if any(name is not None for name in table.index.names) else table
    except InputError:
        raise
    except Exception as error:  # whatever the bytes of a damaged file lead to
        raise _damaged(path, error, "Write the table again.") from None


def check_names(path: Path, names: list[str]) -> None:
    """Raises InputError where two columns have one name."""
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        advice = "Rename or remove one of them."
        raise refuse(str(path), "a table with distinct column names", f"{twice!r} {names.count(twice)} times", advice)


def _damaged(path: Path, error: object, advice: str) -> InputError:
    return refuse(str(path), "a table that can be read", error_text(error).rstrip("."), advice)
