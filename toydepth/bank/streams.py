"""One seed, split once into named streams, so that no part's draws depend on how many another part made."""

from __future__ import annotations

from dataclasses import dataclass

import jax

# The order is part of the meaning of a seed: add names at the end only.
_NAMES = ("teacher", "student", "data", "test")


@dataclass(frozen=True)
class Streams:
    """teacher, student: folded with the replicate (and depth); data: with the step; test: the fixed test set."""

    teacher: jax.Array
    student: jax.Array
    data: jax.Array
    test: jax.Array


def make_streams(seed: int, teacher_seed: int | None = None) -> Streams:
    """Splits a seed into streams; teacher_seed sets the teacher's stream apart.

    The generator is named, so that a library's change of default changes no result.

    Example:
        >>> import jax
        >>> a, b = make_streams(0), make_streams(0, teacher_seed=1)
        >>> bool((jax.random.key_data(a.data) == jax.random.key_data(b.data)).all())
        True
    """
    seeds = {name: seed for name in _NAMES} | {"teacher": seed if teacher_seed is None else teacher_seed}
    root = {name: jax.random.key(value, impl="threefry2x32") for name, value in seeds.items()}
    return Streams(**{name: jax.random.fold_in(root[name], index) for index, name in enumerate(_NAMES)})
