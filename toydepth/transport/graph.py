"""The Barabasi-Albert graph that a field lives on: an exact sample, as arrays, in linear time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from toydepth.transport.checks import check_count, check_seed

# Of `make_graph`: raised whenever another graph comes out of the same arguments, so that stored ones are built anew.
METHOD = 1
# Nodes grown at a time. What a block needs stays in the processor's cache; the graph depends on it (METHOD).
BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph in compressed rows: neighbours of i are indices[indptr[i]:indptr[i + 1]].

    Attributes:
        indptr (num_nodes + 1,): int64.
        indices (2 num_edges,): int32 where nodes can be numbered by it.
    """

    indptr: np.ndarray
    indices: np.ndarray

    @property
    def num_nodes(self) -> int:
        """How many nodes."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """How many undirected edges."""
        return len(self.indices) // 2

    @property
    def degrees(self) -> np.ndarray:
        """(num_nodes,) int64."""
        return np.diff(self.indptr)


def make_graph(num_nodes: int, m_BA: int = 2, seed: int = 0) -> Graph:
    """Grows a Barabasi-Albert graph: each new node is joined to m_BA distinct nodes, drawn by degree.

    The start is a star of m_BA + 1 nodes; nodes m_BA + 1, m_BA + 2, ... then come one by one. A target is an entry of
    the list of ends of all edges so far, drawn uniformly, and drawn again while the new node has that target already:
    m_BA (num_nodes - m_BA) edges, no loops, none doubled. This is the variant of networkx (sources of the probe name
    none), sampled from the same law, not by the same random numbers.

    Args:
        num_nodes: N, m_BA + 1 or more.
        m_BA: edges a new node, 1 or more. 2 is ours: sources do not say.
        seed: graphs of different seeds, sizes or m_BA are independent.

    Returns:
        The graph. A node's own targets come first among its neighbours, then newer nodes in order.

    Raises:
        InputError: for numbers out of range.

    Example:
        >>> graph = make_graph(1000, m_BA=3, seed=1)
        >>> graph.num_edges, int(graph.degrees.sum())
        (2991, 5982)

    Source: Barabasi, Albert, Science 1999; the list of ends, Batagelj, Brandes, Physical Review E 2005. Growing it in
    blocks, and exact redraws, are ours.
    """
    m = check_count("m_BA", m_BA, 1, "2 is the default.")
    nodes = check_count("num_nodes", num_nodes, m + 1, f"{m + 1} nodes, m_BA + 1, are the star it starts from.")
    return _adjacency(_grow(nodes, m, check_seed(seed)), nodes, m)


def _grow(num_nodes: int, m: int, seed: int) -> np.ndarray:
    """The targets of all edges, (m (num_nodes - m),), in the order in which edges come.

    Edge e has two slots in the list of ends: 2e, its target, and 2e + 1, its source, which is known without drawing:
    e + 1 in the star, m + e // m after it. Node v draws among the 2m (v - m) slots before its own.
    """
    targets = np.zeros(m * (num_nodes - m), np.int32 if num_nodes <= 2**31 else np.int64)
    generator = np.random.default_rng([seed, num_nodes, m])
    first = m + 1
    while first < num_nodes:
        # As many as there are at most: then chains of slots within a block are short.
        last = min(num_nodes, first + min(first, BLOCK))
        ends = 2 * m * (np.arange(first, last, dtype=np.int64) - m)
        slots = generator.integers(0, ends[:, None], size=(last - first, m))
        _settle(targets, slots, first, m, [seed, num_nodes, m])
        first = last
    return targets


def _settle(targets: np.ndarray, slots: np.ndarray, first: int, m: int, seeds: list[int]) -> None:
    """Writes the targets of nodes first, first + 1, ... from their drawn slots (nodes, m), without doubled ones.

    Exact: each node has a stream of draws of its own (those of `slots`, then more), and takes its first m distinct
    targets. A redraw may change what later nodes have drawn, so those that were ever doubled are replayed from the
    start of their streams until nothing changes; node by node, that can only be what one-by-one growth gives.
    """
    _resolve(targets, slots, first, m)
    block = targets[m * (first - m) :][: slots.size].reshape(slots.shape)
    streams: dict[int, _Stream] = {}
    while True:
        for row in np.flatnonzero(_doubled(block)).tolist():
            if row not in streams:
                streams[row] = _Stream(slots[row], 2 * m * (first + row - m), [*seeds, first + row])
        changed = False
        for row, stream in streams.items():
            taken = stream.first_distinct(targets, m)
            if taken != slots[row].tolist():
                slots[row] = taken
                changed = True
        if not changed:
            return
        _resolve(targets, slots, first, m)


def _resolve(targets: np.ndarray, slots: np.ndarray, first: int, m: int) -> None:
    """Looks up the node at each slot; slots of targets in the same block wait until these are known."""
    edges, flat = (slots >> 1).ravel(), slots.ravel()
    block = targets[m * (first - m) :][: flat.size]
    block[:] = np.where(flat & 1, _source(edges, m), -1)
    waiting = np.flatnonzero(~flat & 1)
    while waiting.size:  # half of the slots are sources, so each round settles half of the rest, or more
        found = targets[edges[waiting]]
        known = found >= 0
        block[waiting[known]] = found[known]
        waiting = waiting[~known]


def _source(edges: np.ndarray, m: int) -> np.ndarray:
    """The node that came with an edge."""
    return np.where(edges < m, edges + 1, m + edges // m)


def _doubled(block: np.ndarray) -> np.ndarray:
    """Rows (nodes, m) that hold a node twice; by columns, since m is small and sorting short rows is slow."""
    twice = np.zeros(len(block), bool)
    for column in range(1, block.shape[1]):
        for other in range(column):
            twice |= block[:, column] == block[:, other]
    return twice


class _Stream:
    """The draws of one node: those it has, and as many more as it takes."""

    def __init__(self, slots: np.ndarray, end: int, seeds: list[int]):
        self.slots: list[int] = slots.tolist()
        self.end = end
        self.generator = np.random.default_rng(seeds)

    def first_distinct(self, targets: np.ndarray, m: int) -> list[int]:
        """The first m slots that hold distinct nodes, as targets stand now."""
        taken: list[int] = []
        seen: set[int] = set()
        place = 0
        while len(taken) < m:
            if place == len(self.slots):
                self.slots.append(int(self.generator.integers(self.end)))
            edge, is_source = divmod(self.slots[place], 2)
            node = (edge + 1 if edge < m else m + edge // m) if is_source else int(targets[edge])
            if node not in seen:
                seen.add(node)
                taken.append(self.slots[place])
            place += 1
        return taken


def _adjacency(targets: np.ndarray, num_nodes: int, m: int) -> Graph:
    """Rows of targets and sources of each node, by counting."""
    own = np.full(num_nodes, m, np.int64)
    own[: m + 1] = 1
    own[0] = 0
    kind = np.int32 if len(targets) < 2**31 else np.int64
    starts = np.zeros(num_nodes + 1, kind)
    np.cumsum(own, out=starts[1:])
    # The transpose of the matrix of targets is that of sources; scipy counts and scatters in linear time.
    ones = np.ones(len(targets), np.int8)
    incoming = sparse.csr_array((ones, targets, starts), shape=(num_nodes, num_nodes)).tocsc()
    sources, ends = incoming.indices, incoming.indptr
    indptr = starts.astype(np.int64) + ends
    indices = np.empty(2 * len(targets), targets.dtype)
    for a in range(0, num_nodes, BLOCK):
        b = min(a + BLOCK, num_nodes)
        row = indices[indptr[a] : indptr[b]]
        mine = np.repeat(indptr[a:b] - indptr[a] - (starts[a:b] - starts[a]), own[a:b])
        mine += np.arange(len(mine))
        others = np.ones(len(row), bool)
        others[mine] = False
        row[mine] = targets[starts[a] : starts[b]]
        row[others] = sources[ends[a] : ends[b]]
    return Graph(indptr, indices)
