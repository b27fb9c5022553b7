"""Writing files so that a reader sees the old one or the new one, never a half; and values made ready for JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`, moved onto it where the block ends well and removed where it raises.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "number.txt"
    ...     with replacing(path) as temporary:
    ...         _ = temporary.write_text("1")
    ...     path.read_text(), [file.name for file in path.parent.iterdir()]
    ('1', ['number.txt'])
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, as os.replace is atomic within one file system only.
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # or a power cut may leave the new name with no content
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def plain(value: Any, name: str = "value") -> Any:
    """Turns numpy values, paths, tuples and dicts into what JSON holds; NaN and infinities become None.

    Raises: TypeError naming the entry, for what has no plain form.

    >>> plain({"a": np.float64("nan"), "b": (np.int64(3), np.array([1.5, np.inf])), "c": Path("runs")})
    {'a': None, 'b': [3, [1.5, None]], 'c': 'runs'}
    """
    if isinstance(value, dict):
        return {str(key): plain(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), name)
    if isinstance(value, list | tuple):
        return [plain(item, f"{name}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{name} must be a number, string, list, dict or None to be written as JSON, got {value!r}.")


def write_json(path: Path, value: Any) -> None:
    """Writes `value` as indented JSON, atomically; what is no number (NaN, infinities) is null.

    Raises: TypeError for what has no plain form; the old file then stands.
    """
    text = json.dumps(plain(value, path.stem), indent=1, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
