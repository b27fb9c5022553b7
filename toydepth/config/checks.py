"""Checks of single values: each raises one clear line naming the key, the condition and the value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from toydepth.errors import InputError, did_you_mean


def refuse(key: str, condition: str, value: Any, advice: str = "") -> InputError:
    """Returns the error `<key> must be <condition>, got <value>. <advice>`.

    >>> str(refuse("steps", "at least 1", 0, "Give the number of updates."))
    'steps must be at least 1, got 0. Give the number of updates.'
    """
    return InputError(f"{key} must be {condition}, got {show(value)}.{' ' + advice if advice else ''}")


def show(value: Any) -> str:
    """Formats a value as a person would type it.

    >>> show([1, 2.5, None, True])
    '[1, 2.5, null, true]'
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(show(v) for v in value) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def member(key: str, value: Any, known: Sequence[str]) -> str:
    """Checks a word against the known ones, with a did-you-mean."""
    if value not in known:
        raise refuse(key, "one of " + " | ".join(known), value, did_you_mean(str(value), known).strip())
    return value


def integer(key: str, value: Any, low: int, advice: str = "") -> int:
    """Checks a whole number, low ... 2^31 - 1; 12.0 counts as 12, true and 1.5 do not."""
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1
    if not whole or value < low:
        raise refuse(key, f"a whole number, at least {low}", value, advice)
    if value >= 2**31:
        raise refuse(key, "less than 2^31", value, "Counts are kept in 32 bits.")
    return int(value)


def real(
    key: str, value: Any, low: float, high: float = math.inf, *, open_low: bool = False, advice: str = ""
) -> float:
    """Checks a finite number in [low, high], or (low, high] with open_low."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < low or value > high or (open_low and value == low):
        least = f"{'greater than' if open_low else 'at least'} {low:g}"
        most = "" if high == math.inf else f" and at most {high:g}"
        raise refuse(key, f"a finite number, {least}{most}", value, advice)
    return float(value)


def seed(key: str, value: Any) -> int:
    """Checks a seed: 0 ... 2^32 - 1. Beyond, the generator sees the lower 32 bits only, and two seeds are one."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 0:
        raise refuse(key, "a whole number, at least 0", value)
    if value >= 2**32:
        raise refuse(key, "less than 2^32", value, "Larger seeds repeat the draws of smaller ones.")
    return int(value)


def as_tuple(key: str, value: Any) -> tuple[Any, ...]:
    """Takes a list, or a single value where a list is meant (so that `-m key=1,2,3` sweeps); a string is one value."""
    if isinstance(value, Iterable) and not isinstance(value, (str, dict)):
        return tuple(value)
    if value is None:
        raise refuse(key, "a value or a list of values", "null", f"Write {key}=[...].")
    return (value,)


def distinct(key: str, values: tuple[Any, ...], advice: str) -> None:
    """Checks that a list is not empty and repeats nothing."""
    if not values:
        raise refuse(key, "a list of at least one value", "[]", advice)
    repeated = [v for i, v in enumerate(values) if v in values[:i]]
    if repeated:
        raise refuse(key, "a list of distinct values", list(values), f"Remove the repeated {show(repeated[0])}.")
