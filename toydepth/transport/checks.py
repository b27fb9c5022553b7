"""What every part of the probe refuses, in one wording."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toydepth.errors import InputError, did_you_mean


def check_count(name: str, value: object, least: int, advice: str) -> int:
    """Returns an integer of at least `least`; raises InputError otherwise. To Python a bool is an integer; not here.

    >>> check_count("cap", 500, 1, "500 is the default.")
    500
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be an integer, {least} or more, got {value!r}. {advice}")
    return int(value)


def check_seed(seed: object) -> int:
    """Returns a seed, an integer of 0 or more; raises InputError otherwise."""
    return check_count("seed", seed, 0, "Any such number will do.")


def check_word(name: str, word: object, known: Sequence[str]) -> None:
    """Raises InputError for a word that is not known, with the nearest that is."""
    if word not in known:
        words = " or ".join(known) if len(known) == 2 else f"one of {', '.join(known)}"
        raise InputError(f"{name} must be {words}, got {word!r}.{did_you_mean(str(word), known)}")


def check_between(name: str, value: float, low: float, high: float, advice: str) -> None:
    """Raises InputError unless low < value < high."""
    if not low < value < high:
        raise InputError(f"{name} must be between {low} and {high}, got {value}. {advice}")


def check_confidence(confidence: float) -> None:
    """Raises InputError unless 0 < confidence < 1."""
    check_between("confidence", confidence, 0, 1, "Give 0.95 for 95 %.")
