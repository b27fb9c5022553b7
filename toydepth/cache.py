"""The folder of what is made once on a machine and may be deleted: layouts, native layers, graphs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Returns the folder that the environment variable TOYDEPTH_CACHE names, else one in the user's cache folder.

    Example:
        >>> cache_folder().name == Path(os.environ.get("TOYDEPTH_CACHE", "toydepth")).name
        True
    """
    return Path(os.environ.get("TOYDEPTH_CACHE") or platformdirs.user_cache_dir("toydepth"))


def keep(path: Path, content: bytes) -> None:
    """Writes a file of the folder, whole or not at all.

    Raises:
        OSError: where it cannot be written; nothing is left then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
