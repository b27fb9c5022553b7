"""What a measurement is of: models and texts told apart by what they hold, not by where they lie."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

_HEAD = 2**20  # bytes at a file's beginning that are read, and of as many pieces in its whole length
_PIECE, _PIECES = 2**16, 256


def model_identity(name: str, revision: str | None = None) -> str:
    """Returns a hash of a model's files, or of its name on the hub.

    Of weights (*.safetensors, *.gguf) the size, the beginning and 256 pieces spread over their length count, so that
    a fine-tune is another model; of the config and the tokenizer, all. Notes beside them change nothing.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return _hash([path])
    if path.is_dir():
        weights = [*path.glob("*.safetensors")]
        return _hash(sorted(weights), sorted([*path.glob("*.json"), *path.glob("*.model"), *path.glob("*.txt")]))
    return hashlib.sha256(f"hub {name} {revision or ''}".encode()).hexdigest()[:12]


def text_identity(source: str) -> str:
    """Returns a hash of a text file, of all of it, or the name itself where it is no file."""
    path = Path(source).expanduser()
    return _hash([], [path]) if path.is_file() else source


def _hash(sampled: list[Path], whole: Sequence[Path] = ()) -> str:
    digest = hashlib.sha256()
    for path in sampled:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_HEAD))
            for place in range(_PIECES):
                file.seek(place * size // _PIECES)
                digest.update(file.read(_PIECE))
    for path in whole:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
