"""fit.json: the exponents fitted at the end of a run, beside its curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toydepth.runs.files import write_json

FIT_FILE = "fit.json"


def write_fit(folder: str | Path, fits: dict[str, Any]) -> Path:
    """Writes {rows, refused} of a fit table into the folder's fit.json, atomically, and returns its path."""
    path = Path(folder) / FIT_FILE
    write_json(path, fits)
    return path
