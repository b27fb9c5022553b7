"""Graphs kept on disk by what they were made of, in TOYDEPTH_CACHE or the user's cache folder."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from toydepth.cache import cache_folder
from toydepth.runs.files import replacing
from toydepth.transport.graph import METHOD, Graph, make_graph

# Below, making a graph takes no longer than reading it.
LEAST_STORED = 50_000


def load_graph(num_nodes: int, m_BA: int = 2, seed: int = 0, *, keep: bool = True) -> Graph:
    """Returns `make_graph(num_nodes, m_BA, seed)`, read where it was made before, else made and kept.

    A file that is damaged, cut short or of another method is made anew; a folder that cannot be written only means to
    make the graph again. Files take 8 (m_BA + 1) bytes a node; below 50,000 nodes none is kept.

    Args:
        num_nodes, m_BA, seed: of `make_graph`.
        keep: False neither reads nor writes.

    Raises:
        InputError: for numbers that `make_graph` refuses.
    """
    if not keep or num_nodes < LEAST_STORED:
        return make_graph(num_nodes, m_BA, seed)
    path = graph_path(num_nodes, m_BA, seed)
    known = _read(path, num_nodes, m_BA)
    if known is not None:
        return known
    graph = make_graph(num_nodes, m_BA, seed)
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, indptr=graph.indptr, indices=graph.indices)
    except OSError:
        pass
    return graph


def graph_path(num_nodes: int, m_BA: int, seed: int) -> Path:
    """Returns the file of a graph; the method's number is in its name, so that an old one is never read."""
    return cache_folder() / "graphs" / f"ba-v{METHOD}-n{num_nodes}-m{m_BA}-seed{seed}.npz"


def _read(path: Path, num_nodes: int, m: int) -> Graph | None:
    """The graph in a file; None where there is none that is whole. The archive holds a checksum of each array."""
    try:
        # Opened here: of a damaged archive numpy leaves its own open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            indptr, indices = file["indptr"], file["indices"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    edges = 2 * m * (num_nodes - m)
    whole = indptr.shape == (num_nodes + 1,) and indices.shape == (edges,) and indptr[-1] == edges
    return Graph(indptr, indices) if whole and indptr.dtype == np.int64 else None
