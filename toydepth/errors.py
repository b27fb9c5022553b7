"""The two kinds of failure a person sees: a wrong setting, and a run that went wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the person gave cannot be used. The message is one line: what, why, and what to do. Exit code 2."""

    exit_code = 2


class RunError(RuntimeError):
    """A run that started well could not be finished. Exit code 1, unless the error says another."""

    exit_code = 1


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns `` Did you mean 'x'?`` for the closest of `known`, or an empty string.

    >>> did_you_mean("adamm", ["adam", "sgd"])
    " Did you mean 'adam'?"
    >>> did_you_mean("qqq", ["adam", "sgd"])
    ''
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""
