"""What a measurement is of: models and texts told apart by what they hold, not by where they lie."""

from __future__ import annotations

import hashlib
from pathlib import Path

_HEAD = 2**20  # bytes of a file that are read


def model_identity(name: str, revision: str | None = None) -> str:
    """Returns a hash of a model's files (their names, sizes and beginnings), or of its name on the hub.

    Only config.json, *.safetensors and *.gguf count: notes beside the weights change nothing.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return _hash([path])
    if path.is_dir():
        return _hash(sorted([path / "config.json", *path.glob("*.safetensors")]))
    return hashlib.sha256(f"hub {name} {revision or ''}".encode()).hexdigest()[:12]


def text_identity(source: str) -> str:
    """Returns a hash of a text file, or the name itself where it is no file."""
    path = Path(source).expanduser()
    return _hash([path]) if path.is_file() else source


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_HEAD))
    return digest.hexdigest()[:12]
