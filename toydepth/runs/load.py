"""The curves of many runs as one table."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from toydepth.errors import InputError, did_you_mean
from toydepth.runs.curves import read_curves
from toydepth.runs.record import RECORD_FILE, read_record

# Large folders with thousands of files and no run in them.
_NEVER_SEARCHED = {"checkpoints", "wandb", "figures", ".git", ".hydra"}
_UNFINISHED = ("running", "interrupted")
_MAX_SHOWN = 400  # characters of a path in a message


def load_runs(paths: str | Path | Iterable[str | Path], *, allow_unfinished: bool = False) -> pd.DataFrame:
    """Reads the curves of one or many runs into one table; runs that differ in their seed are simply replicates.

    Args:
        paths: run folders, or folders that hold run folders at any depth (those of a multirun). A run that is reached
            twice counts once.
        allow_unfinished: read runs that are still running or were interrupted as well.

    Returns:
        DataFrame: the columns of `CURVE_COLUMNS` after a first one, `run`, the folder as given. `attrs["skipped"]`
        lists {run, reason} for each run that was left out.

    Raises:
        InputError: for what is no path, for a path that is empty or does not exist, or where no run is left.

    Example:
        >>> load_runs("no/such/run")
        Traceback (most recent call last):
        ...
        toydepth.errors.InputError: paths must exist, got no/such/run. Give the folder of a run, or of many.
    """
    tables: list[pd.DataFrame] = []
    folders, empty = find_runs(paths)
    skipped = [{"run": str(path), "reason": f"no {RECORD_FILE} in it"} for path in empty]
    for folder in folders:
        try:
            table = _load(folder, allow_unfinished)
        except InputError as error:
            skipped.append({"run": str(folder), "reason": str(error)})
        else:
            tables.append(table)
    if not tables:
        raise InputError(f"paths must hold at least one finished run, got none{_why(skipped)}.{_advice(skipped)}")
    runs = pd.concat(tables, ignore_index=True)
    runs.attrs["skipped"] = skipped
    return runs


def find_runs(paths: str | Path | Iterable[str | Path]) -> tuple[list[Path], list[Path]]:
    """Returns the run folders at or below paths, each once, and the paths in which there is none.

    Raises:
        InputError: for what is no path, and for a path that is empty or does not exist.

    Example:
        >>> find_runs([])
        ([], [])
    """
    found: dict[Path, Path] = {}
    empty: list[Path] = []
    for path in [_checked(one) for one in _listed(paths)]:
        folders = list(_run_folders(path))
        for folder in folders:
            found.setdefault(folder.resolve(), folder)
        if not folders:
            empty.append(path)
    return list(found.values()), empty


def _listed(paths: object) -> list[Any]:
    if isinstance(paths, str | bytes | os.PathLike):
        return [paths]
    if not isinstance(paths, Iterable):
        raise _no_path(paths)
    return list(paths)


def _checked(path: object) -> Path:
    """Returns a path that exists; raises InputError."""
    # Path("") is the current folder, which is not what an unset variable of the shell stands for.
    if not isinstance(path, str | os.PathLike) or path == "":
        raise _no_path(path)
    found = Path(path)
    try:
        found.stat()
    except (OSError, ValueError) as error:
        known = isinstance(error, FileNotFoundError | NotADirectoryError)
        why = "" if known else f" ({getattr(error, 'strerror', None) or error})"
        advice = f"Give the folder of a run, or of many.{_near(found)}"
        raise InputError(f"paths must exist, got {_shown(found)}{why}. {advice}") from None
    return found


def _no_path(got: object) -> InputError:
    condition, advice = "the folder of a run or a list of such", "Give the folder of a run, or of many."
    return InputError(f"paths must be {condition}, got {reprlib.repr(got)}. {advice}")


def _shown(path: Path) -> str:
    text = repr(str(path))[1:-1]  # on one line, whatever is in it
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN // 2]}...{text[-_MAX_SHOWN // 2 :]}"


def _run_folders(path: Path) -> Iterator[Path]:
    for folder, inner, files in os.walk(path):
        if RECORD_FILE in files:
            yield Path(folder)
            inner.clear()  # a run holds no other runs
        inner[:] = sorted(name for name in inner if name not in _NEVER_SEARCHED)


def _load(folder: Path, allow_unfinished: bool) -> pd.DataFrame:
    status = read_record(folder).status
    if status in _UNFINISHED and not allow_unfinished:
        raise InputError(f"status is {status}")
    curves = read_curves(folder)
    curves.insert(0, "run", pd.Series([str(folder)] * len(curves), dtype="str", index=curves.index))
    return curves


def _near(path: Path) -> str:
    try:
        # The first part that is missing is the one mistyped; what lies below it cannot be looked up.
        missing = next((part for part in reversed([path, *path.parents]) if not part.exists()), path)
        return did_you_mean(missing.name, os.listdir(missing.parent))
    except (OSError, ValueError):
        return ""


def _why(skipped: list[dict[str, str]]) -> str:
    reasons = "; ".join(f"{entry['run']}: {entry['reason'].rstrip('.')}" for entry in skipped[:3])
    more = f"; and {len(skipped) - 3} more" if len(skipped) > 3 else ""
    return f" ({reasons}{more})" if skipped else ""


def _advice(skipped: list[dict[str, str]]) -> str:
    if any(entry["reason"].startswith("status is") for entry in skipped):
        return " Give allow_unfinished=True (--allow-unfinished) to read runs as they stand."
    return " Give the folder of a run that has ended."
