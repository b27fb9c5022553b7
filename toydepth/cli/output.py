"""What the commands have in common: JSON on one line, and a check of names."""

from __future__ import annotations

import json
from typing import Any

from toydepth.errors import InputError


def check_given(name: str, value: str | None) -> None:
    """Raises InputError for an empty name, as an unset variable of the shell gives it."""
    if value == "":
        raise InputError(f"{name} must be the name of a file or folder, got ''. Give one, or leave it out.")


def print_json(value: Any) -> None:
    """Prints one line of JSON."""
    print(json.dumps(value, allow_nan=False))
