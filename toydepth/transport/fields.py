"""What a field must be to have a cascade, and how its values come onto the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from toydepth.errors import InputError
from toydepth.transport.cascade import find_threshold
from toydepth.transport.checks import check_count, check_seed, check_word

NodeOrder = Literal["permuted", "as_is"]
NODE_ORDERS = ("permuted", "as_is")
LEAST_NODES = 10


class FieldProblem(StrEnum):
    """Why a field has no cascade. The first that holds, in this order, is named."""

    TOO_SHORT = "fewer than 10 nodes"
    NOT_FINITE = "NaN or infinities"
    ZERO = "zero field"
    CONSTANT = "constant field"
    MOSTLY_ZERO = "too many zeros: threshold 0"
    TIED = "no value above the threshold"


@dataclass(frozen=True)
class FieldCheck:
    """What was found in a field.

    Attributes:
        problem: None for a field that has a cascade.
        num_nodes, num_not_finite, num_zeros: counts of its values.
        threshold: the percentile of |u|; None where some value is not finite, or there are too few.
    """

    problem: FieldProblem | None
    num_nodes: int
    num_not_finite: int
    num_zeros: int
    threshold: float | None

    def __str__(self) -> str:
        counts = f"{self.num_nodes} values, {self.num_zeros} zeros, {self.num_not_finite} not finite"
        return f"{self.problem or 'usable'} ({counts})"


def check_field(values: np.ndarray, percentile: float = 90.0) -> FieldCheck:
    """Says whether a field has a cascade, and why not.

    Too many zeros: more than the percentile, 90 % by default; any value at all would then be active. No value above the
    threshold: more than what the percentile leaves share the largest |u|, as in a field of signs.

    Args:
        values: (num_nodes,), real.
        percentile: that of the cascade.

    Raises:
        InputError: for an array of several axes, or of no real numbers.

    Example:
        >>> str(check_field(np.zeros(20)))
        'zero field (20 values, 20 zeros, 0 not finite)'
    """
    u = as_field(values)
    num_zeros = int(u.size - np.count_nonzero(u))
    num_not_finite = int(u.size - np.count_nonzero(np.isfinite(u)))
    threshold = None if num_not_finite or u.size < LEAST_NODES else find_threshold(u, percentile)
    problem = None
    if u.size < LEAST_NODES:
        problem = FieldProblem.TOO_SHORT
    elif threshold is None:
        problem = FieldProblem.NOT_FINITE
    elif num_zeros == u.size:
        problem = FieldProblem.ZERO
    elif u.min() == u.max():
        problem = FieldProblem.CONSTANT
    elif threshold == 0:
        problem = FieldProblem.MOSTLY_ZERO
    elif max(-u.min(), u.max()) <= threshold:
        problem = FieldProblem.TIED
    return FieldCheck(problem, int(u.size), num_not_finite, num_zeros, threshold)


def as_field(values: np.ndarray) -> np.ndarray:
    """Returns values in float64; raises InputError for an array of several axes, or of no real numbers."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"field must have one axis, got shape {array.shape}. Flatten the parameters first.")
    if array.dtype.kind not in "fiu":
        raise InputError(f"field must hold real numbers, got {array.dtype}. Give floats.")
    return array.astype(np.float64)


def place_nodes(
    values: np.ndarray, num_nodes: int | None = None, *, order: NodeOrder = "permuted", seed: int = 0
) -> np.ndarray:
    """Returns the values of nodes 0, 1, ...: all of a field or a uniform sample of it, in a drawn order.

    Old nodes of a Barabasi-Albert graph are its hubs, so the order matters where neighbouring parameters are alike.
    Which parameter stands at which node depends on the seed and the two lengths alone: it is the same at each step of a
    training. Samples of several lengths are drawn independently.

    Args:
        values: (length,), flattened parameters in a fixed order.
        num_nodes: how many to draw, without replacement; None takes all.
        order: "permuted" (ours; sources name no order) or "as_is", which keeps the flattened order.
        seed: of the draw.

    Raises:
        InputError: for more nodes than values, and for settings out of range.

    Example:
        >>> place_nodes(np.arange(5.0), order="as_is").tolist()
        [0.0, 1.0, 2.0, 3.0, 4.0]
        >>> sorted(place_nodes(np.arange(5.0), seed=3).tolist())
        [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    check_word("order", order, NODE_ORDERS)
    check_seed(seed)
    length = len(values)
    count = length if num_nodes is None else check_count("num_nodes", num_nodes, 1, "Leave it out to take all.")
    if not 1 <= count <= length:
        raise InputError(
            f"num_nodes must be 1 ... {length}, the field's length, got {count}. Leave it out to take all."
        )
    if order == "as_is" and count == length:
        return np.array(values)
    generator = np.random.default_rng([seed, length, count])
    chosen = generator.choice(length, count, replace=False, shuffle=order == "permuted")
    return np.asarray(values)[np.sort(chosen) if order == "as_is" else chosen]
