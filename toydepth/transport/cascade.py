"""The cascade: what is above the threshold is shared among neighbours, all at once, until nothing is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from toydepth.errors import InputError
from toydepth.transport.checks import check_between, check_count, check_word
from toydepth.transport.graph import Graph

SignRule = Literal["signed", "absolute"]
SIGN_RULES = ("signed", "absolute")
# Active nodes relaxed at a time: bounds the memory of the first steps, in which a tenth of a large field is active.
BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Cascade:
    """What a field did on a graph.

    Attributes:
        threshold: tau, in units of the field.
        profile (duration,): active nodes of each step.
        final (num_nodes,): the field at the end.
        capped: nodes were still active after the last step allowed; size and duration are then lower bounds.
        conservation_error: |sum of final - sum of field| over sum of |field|; rounding alone.
    """

    threshold: float
    profile: np.ndarray
    final: np.ndarray
    capped: bool
    conservation_error: float

    @property
    def size(self) -> int:
        """Active nodes summed over steps: s = sum_k |A_k|."""
        return int(self.profile.sum())

    @property
    def duration(self) -> int:
        """Relaxation steps: n."""
        return len(self.profile)

    @property
    def efficiency(self) -> float:
        """v_rel = s / (N n); NaN where nothing was active."""
        return self.size / (len(self.final) * self.duration) if self.duration else math.nan


def find_threshold(field: np.ndarray, percentile: float = 90.0) -> float:
    """Returns the percentile of |u|, between neighbouring values linearly.

    Raises:
        InputError: for a percentile outside (0, 100).

    Example:
        >>> find_threshold(np.array([-3.0, 1.0, 2.0]), 50)
        2.0
    """
    check_between("percentile", percentile, 0, 100, "90 is the default.")
    return float(np.percentile(np.abs(field), percentile, method="linear", overwrite_input=True))


def run_cascade(
    graph: Graph,
    field: np.ndarray,
    *,
    percentile: float = 90.0,
    threshold: float | None = None,
    sign: SignRule = "signed",
    cap: int = 500,
) -> Cascade:
    """Relaxes a field until no node is above the threshold.

        tau    percentile of |u|, fixed for the cascade
        A_k    {i: |u_i| > tau}, strictly
        step   all of A_k at once: i gives u_i / degree_i to each neighbour, and becomes 0 plus what it receives

    A step costs what its active nodes have edges: only nodes that received can be active next.

    Args:
        graph: each node with a neighbour.
        field: u (num_nodes,), finite; one value a node, in the order of nodes.
        percentile: of |u|, in (0, 100).
        threshold: tau itself, above 0, in place of the percentile.
        sign: "signed" moves u, so that contributions of two signs cancel. "absolute" (ours; sources leave the rule
            open) puts |u| in place of u first.
        cap: relaxation steps allowed.

    Returns:
        The cascade, in float64 whatever the field's type.

    Raises:
        InputError: for a field of another length, not finite, or with threshold 0 (`check_field` names these); for a
            node without neighbours; for settings out of range.

    Example:
        >>> star = Graph(np.array([0, 3, 4, 5, 6]), np.array([1, 2, 3, 0, 0, 0]))
        >>> cascade = run_cascade(star, np.array([6.0, 0.0, -1.0, 0.0]), threshold=2.5)
        >>> cascade.profile.tolist(), cascade.final.tolist()
        ([1], [0.0, 2.0, 1.0, 2.0])

    Source: Wang, Du, arXiv 2605.02968.
    """
    check_word("sign", sign, SIGN_RULES)
    check_count("cap", cap, 1, "500 steps are the default.")
    start = np.asarray(field)
    if start.shape != (graph.num_nodes,):
        got = f"shape {start.shape}"
        raise InputError(f"field must be ({graph.num_nodes},), one value a node, got {got}. Make a graph of that size.")
    u = np.array(start, np.float64)
    if sign == "absolute":
        np.abs(u, out=u)
    # Finite only if all values are, unless it overflows, which is refused as well.
    with np.errstate(over="ignore"):
        weight = float(np.linalg.norm(u, 1))
    if not math.isfinite(weight):
        raise InputError("field must be finite, got NaN, infinities or a sum beyond float64. Ask check_field which.")
    tau = find_threshold(u, percentile) if threshold is None else float(threshold)
    if not tau > 0 or not math.isfinite(tau):
        raise InputError(f"threshold must be above 0, got {tau}. The field is zero almost everywhere: see check_field.")
    total = float(u.sum())
    profile: list[int] = []
    active = np.flatnonzero(np.abs(u) > tau)
    while active.size and len(profile) < cap:
        profile.append(int(active.size))
        active = _relax(graph, u, active, tau)
    error = abs(float(u.sum()) - total) / weight
    return Cascade(tau, np.array(profile, np.int64), u, bool(active.size), error)


def _relax(graph: Graph, u: np.ndarray, active: np.ndarray, tau: float) -> np.ndarray:
    """One step in place; returns the nodes active next, in order."""
    first, degrees = graph.indptr[active], graph.indptr[active + 1] - graph.indptr[active]
    if not degrees.all():
        node = int(active[degrees == 0][0])
        raise InputError(f"graph must give each node a neighbour, got node {node} without. Its value cannot move.")
    shares = u[active] / degrees
    u[active] = 0.0
    touched = []
    for a in range(0, len(active), BLOCK):
        part = slice(a, a + BLOCK)
        counts = degrees[part]
        # The places of all neighbours of these nodes: rows laid one behind the other.
        places = np.repeat(first[part] - (np.cumsum(counts) - counts), counts)
        places += np.arange(len(places))
        neighbours = graph.indices[places]
        np.add.at(u, neighbours, np.repeat(shares[part], counts))
        touched.append(neighbours)
    # A node is told apart only when all has arrived; those below are most, and leave before the sort.
    return np.unique(np.concatenate([nodes[np.abs(u[nodes]) > tau] for nodes in touched])).astype(np.int64)
