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
