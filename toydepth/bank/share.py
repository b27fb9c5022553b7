"""One device's share of the work of a step: which arms, for which teachers, on what part of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Share:
    """The arms of a depth that one of `parts` devices has, in equal runs of their order: replicate, temperature, init.

    Args:
        replicates: of these devices together; other replicates are on others.
        temperatures: of each replicate.
        inits: of each temperature.
        parts: devices of the mesh axis "arm".
        batches: devices of the mesh axis "batch", each with a part of every batch.
    """

    replicates: int
    temperatures: int
    inits: int
    parts: int
    batches: int

    @property
    def arms(self) -> int:
        """How many arms of a depth a device has."""
        return self.replicates * self._of_a_teacher // self.parts

    @property
    def teachers(self) -> int:
        """How many teachers a device needs at most: those of its own arms.

        Example:
            >>> Share(replicates=3, temperatures=1, inits=2, parts=2, batches=1).teachers  # arms 0 ... 2 and 3 ... 5
            2
        """
        runs = [(part * self.arms, (part + 1) * self.arms - 1) for part in range(self.parts)]
        return max(last // self._of_a_teacher - first // self._of_a_teacher + 1 for first, last in runs)

    def of_teachers(self, tree: Any) -> Any:
        """Returns what this device needs of arrays (replicates, ...): (teachers, ...). Inside the mesh only."""
        if self.teachers == self.replicates:
            return tree
        start = self._first_teacher()
        return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, self.teachers), tree)

    def of_arms(self, array: jax.Array) -> jax.Array:
        """Repeats (teachers, temperatures, ...), either of which may be 1, for all arms of this device: (arms, ...)."""
        rest = array.shape[2:]
        every = jnp.broadcast_to(array[:, :, None], (self.teachers, self.temperatures, self.inits, *rest))
        every = every.reshape(self.teachers * self._of_a_teacher, *rest)
        if self.parts == 1:
            return every
        start = self._first_arm() - self._first_teacher() * self._of_a_teacher
        return jax.lax.dynamic_slice_in_dim(every, start, self.arms)

    @property
    def _of_a_teacher(self) -> int:
        return self.temperatures * self.inits

    def _first_arm(self) -> jax.Array:
        return jax.lax.axis_index("arm") * self.arms

    def _first_teacher(self) -> jax.Array:
        # The last device may need fewer than the most: it begins earlier, so that the slice stays inside.
        return jnp.minimum(self._first_arm() // self._of_a_teacher, self.replicates - self.teachers)
