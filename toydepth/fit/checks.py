"""What every fit refuses, in one wording, and numbers made ready for JSON."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np

from toydepth.errors import InputError


def refuse(argument: str, condition: str, got: object, advice: str) -> InputError:
    """Builds (does not raise) the one-line error `<argument> must be <condition>, got <got>. <advice>`.

    >>> print(refuse("confidence", "between 0 and 1", 95, "Give 0.95 for 95 %."))
    confidence must be between 0 and 1, got 95. Give 0.95 for 95 %.
    """
    return InputError(f"{argument} must be {condition}, got {got}. {advice}")


def check_confidence(confidence: float) -> float:
    """Returns `confidence` as a float, strictly between 0 and 1; raises InputError otherwise."""
    if not is_number(confidence) or not 0 < confidence < 1:
        raise refuse("confidence", "a number between 0 and 1", reprlib.repr(confidence), "Give 0.95 for 95 %.")
    return float(confidence)


def check_fit_options(
    *,
    offset: float,
    window: tuple[float, float] | None,
    noise_factor: float,
    confidence: float,
    num_bootstrap: int,
    seed: int,
) -> None:
    """Raises InputError for an option that no data could make right, so that a table of fits fails once and early."""
    check_confidence(confidence)
    if not is_number(offset) or not math.isfinite(offset):
        raise refuse("offset", "a finite number", reprlib.repr(offset), "Give 0 to fit against the depth itself.")
    if not is_number(noise_factor) or not (math.isfinite(noise_factor) and noise_factor >= 0):
        raise refuse("noise_factor", "a finite number, 0 or more", reprlib.repr(noise_factor), "Give 10, the default.")
    if not _is_count(num_bootstrap) or num_bootstrap < 10:
        raise refuse(
            "num_bootstrap", "an integer, 10 or more", reprlib.repr(num_bootstrap), "Give 2000 for a steady interval."
        )
    if not _is_count(seed) or seed < 0:
        raise refuse("seed", "an integer, 0 or more", reprlib.repr(seed), "Give 0 for the default draws.")
    if window is not None:
        advice = "Give two depths, such as (6, 48), or None for all."
        pair = isinstance(window, tuple | list) or (isinstance(window, np.ndarray) and window.ndim == 1)
        if not pair or len(window) != 2 or not all(is_number(edge) for edge in window):
            raise refuse("window", "a pair (lowest, highest) of depths", reprlib.repr(window), advice)
        if not window[0] <= window[1]:
            raise refuse("window", "a pair with lowest <= highest", reprlib.repr(window), advice)


def check_count(argument: str, value: object, least: int) -> int:
    """Returns an integer of at least `least`; raises InputError otherwise.

    >>> check_count("num_starts", 64, 2)
    64
    """
    if not _is_count(value) or value < least:  # pyright: ignore[reportOperatorIssue]
        raise refuse(argument, f"an integer, {least} or more", reprlib.repr(value), "Leave it out for the default.")
    return int(value)  # pyright: ignore[reportArgumentType]


def number_name(value: float) -> str:
    """Writes a depth or step as people do: 6 and not 6.0.

    >>> number_name(6.0), number_name(2.5)
    ('6', '2.5')
    """
    return str(whole(value))


def plain(value: Any) -> Any:
    """Turns numpy scalars, arrays, tuples and dicts into what JSON holds; NaN and infinities become None.

    >>> plain({"a": np.float64("nan"), "b": (np.int64(3), np.array([1.5, np.inf]))})
    {'a': None, 'b': [3, [1.5, None]]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, bool, np.bool_)):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return None if value != value else str(value)  # pandas' NaT and the like are not equal to themselves


def whole(value: float) -> int | float:
    """Returns an int where the number is one, so that depths read 6 and not 6.0 in tables and JSON."""
    return int(value) if float(value).is_integer() else float(value)


def is_number(value: object) -> bool:
    """Says whether a value is one real number that float64 holds; a bool is none, and NaN and infinities are.

    >>> is_number(3), is_number(True), is_number("3"), is_number(np.timedelta64(3, "s")), is_number(10**400)
    (True, False, False, False, False)
    """
    if not (_is_count(value) or isinstance(value, float | np.floating)):
        return False
    try:
        float(value)  # pyright: ignore[reportArgumentType]
    except OverflowError:
        return False
    return True


def _is_count(value: object) -> bool:
    # To Python a bool, and to numpy a span of time, is an integer.
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
