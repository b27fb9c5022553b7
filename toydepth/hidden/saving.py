"""States of accumulators as one file: numbers, words and arrays, nested in dicts."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from toydepth.errors import InputError
from toydepth.runs.files import replacing

_ARRAY = "/array"  # {_ARRAY: name} stands for an array in the tree


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a state (.npz), so that a reader sees the old file or the new one, never a half.

    Args:
        path: of the file.
        state: dicts of numbers, words, lists of them, None, and arrays of numbers.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_state(Path(folder) / "state.npz", {"tokens": 3, "moments": {"mean": np.array([0.5, np.nan])}})
        ...     load_state(Path(folder) / "state.npz")
        {'tokens': 3, 'moments': {'mean': array([0.5, nan])}}
    """
    arrays: dict[str, np.ndarray] = {}

    def take(value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {key: take(item, f"{name}/{key}" if name else str(key)) for key, item in value.items()}
        if isinstance(value, np.ndarray):
            arrays[name] = value
            return {_ARRAY: name}
        return value.item() if isinstance(value, np.generic) else value

    tree = json.dumps(take(state, ""))
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file, allow_pickle=False, tree=np.array(tree), **{f"/{name}": value for name, value in arrays.items()}
        )


def load_state(path: Path) -> dict[str, Any]:
    """Returns the state that `write_state` wrote.

    Raises:
        InputError: for a file that it did not write, or that is damaged.
    """

    def put(value: Any, arrays: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if _ARRAY in value:
            return arrays[f"/{value[_ARRAY]}"]
        return {key: put(item, arrays) for key, item in value.items()}

    try:
        # Opened here: numpy would leave a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return put(json.loads(str(arrays["tree"])), arrays)
    except (OSError, ValueError, KeyError, EOFError, TypeError, zlib.error, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} must be a saved state, got: {reason}. Remove it, to begin anew.") from error
