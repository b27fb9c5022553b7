"""What the weights of a student are called in files, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

# The nesting into stack, block and a single mlp tells nothing apart.
_SILENT = ("stack", "block", "mlp")


def student_name(arm: str, decay: float | None = None) -> str:
    """Returns what the names of a student's weights begin with: the raw ones, or those of an average.

    >>> student_name("depth=3,init=zero,replicate=0"), student_name("depth=3,init=zero,replicate=0", 0.998)
    ('student/depth=3,init=zero,replicate=0/raw', 'student/depth=3,init=zero,replicate=0/average=0.998')
    """
    return f"student/{arm}/{'raw' if decay is None else f'average={float(decay)!r}'}"


def name_weights(prefix: str, params: dict[str, Any]) -> dict[str, np.ndarray]:
    """Names every array of nested parameters by `prefix` and the words that tell it apart.

    >>> list(name_weights("teacher", {"stack": {"block": {"mlp": {"w1": np.ones(2), "b1": np.ones(1)}}}}))
    ['teacher/b1', 'teacher/w1']
    """
    return {"/".join([prefix, *words]): np.asarray(leaf) for words, leaf in _leaves(params)}


def _leaves(params: dict[str, Any]) -> Iterator[tuple[list[str], Any]]:
    for name in sorted(params):
        own = [] if name in _SILENT else [name]
        if isinstance(params[name], dict):
            yield from (([*own, *words], leaf) for words, leaf in _leaves(params[name]))
        else:
            yield own, params[name]


def count_parameters(width: int, depth: int, *, block: str = "euler", vocabulary: int = 0) -> int:
    """Returns how many trained numbers a student has: N = depth * mlps * (8 m^2 + 4 m) + m * V.

    Args:
        width: m.
        depth: number of blocks.
        block: euler (one mlp each) or rk2 (two).
        vocabulary: V of a head of the student's own; 0 for none, or the teacher's.

    Example:
        >>> count_parameters(8, 6), count_parameters(4, 2, block="rk2", vocabulary=5)
        (3264, 596)
    """
    mlps = {"euler": 1, "rk2": 2}[block]
    return depth * mlps * (8 * width**2 + 4 * width) + width * vocabulary
