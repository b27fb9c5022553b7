"""What the commands have in common: JSON on one line, a check of names, options that differ from their defaults."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from toydepth.errors import InputError


def check_given(name: str, value: str | None) -> None:
    """Raises InputError for an empty name, as an unset variable of the shell gives it."""
    if value == "":
        raise InputError(f"{name} must be the name of a file or folder, got ''. Give one, or leave it out.")


def make_folder(folder: str | Path) -> Path:
    """Returns the folder of the results, made before the work, that it may not be lost.

    Raises:
        InputError: for one that cannot be made, or that cannot be written to.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise InputError(f"folder must be one that can be made, got {folder} ({got}). Give another.") from None
    if not os.access(target, os.W_OK):
        raise InputError(f"folder must be one that can be written to, got {folder}. Give another.")
    return target


def print_json(value: Any) -> None:
    """Prints one line of JSON."""
    print(json.dumps(value, allow_nan=False))


def changed(options: Any) -> dict[str, Any]:
    """Returns {name: value} of what is not at its default, of a group of options.

    Example:
        >>> from toydepth.cli.law_options import RowOptions
        >>> changed(RowOptions(exclude_highest=40))
        {'exclude_highest': 40}
    """
    plain = type(options)()
    given = {field.name: getattr(options, field.name) for field in fields(options)}
    return {name: value for name, value in given.items() if value != getattr(plain, name)}


class StatusLine:
    """A context in which one line on stderr is kept up to date, where that is a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = False

    def tell(self, words: str) -> None:
        """Puts `words` in place of what the line said."""
        if sys.stderr.isatty():
            print(f"\r{words}\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = True

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print(file=sys.stderr)


def check_unused(options: Any, how: str, advice: str, names: Sequence[str] | None = None) -> None:
    """Raises InputError for an option that nothing would read.

    Args:
        options: a group of options.
        how: the condition, as in `must be left out with --reference`.
        advice: what to do.
        names: of the options that are meant; all of the group where None.
    """
    for name in changed(options):
        if names is None or name in names:
            raise InputError(f"--{name.replace('_', '-')} must {how}, got it. {advice}")


def known(value: Any) -> bool:
    """Returns whether a cell of a table holds something: neither None nor NaN.

    >>> known(0.0), known(None), known(float("nan"))
    (True, False, False)
    """
    return value is not None and value == value
