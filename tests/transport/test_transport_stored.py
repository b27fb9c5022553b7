"""Graphs on disk: read back alike, and never in part."""

import numpy as np
import pytest

from toydepth.transport import load_graph, make_graph
from toydepth.transport import stored as module


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TOYDEPTH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "LEAST_STORED", 100)
    return tmp_path / "cache"


def assert_right(graph, num_nodes=200, m=2, seed=0):
    expected = make_graph(num_nodes, m, seed)
    np.testing.assert_array_equal(graph.indptr, expected.indptr)
    np.testing.assert_array_equal(graph.indices, expected.indices)


def test_made_once_then_read(monkeypatch, folder):
    assert_right(load_graph(200))
    assert [path.name for path in (folder / "graphs").iterdir()] == ["ba-v1-n200-m2-seed0.npz"]
    monkeypatch.setattr(module, "make_graph", lambda *_: pytest.fail("it is there"))
    graph = load_graph(200)
    monkeypatch.undo()
    assert_right(graph)


def test_each_choice_has_a_file():
    paths = {module.graph_path(*key) for key in [(200, 2, 0), (201, 2, 0), (200, 3, 0), (200, 2, 1)]}
    assert len(paths) == 4
    assert_right(load_graph(200, 3, 1), m=3, seed=1)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text", "other graph", "other arrays"])
def test_damaged_files_are_made_anew(damage):
    load_graph(200)
    path = module.graph_path(200, 2, 0)
    whole = path.read_bytes()
    if damage == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "flipped":
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("not an archive")
    elif damage == "other graph":
        load_graph(300)
        path.write_bytes(module.graph_path(300, 2, 0).read_bytes())
    else:
        np.savez(path, other=np.zeros(3))
    assert_right(load_graph(200))
    assert path.read_bytes() == whole, "and kept"


def test_small_graphs_and_unwritable_folders(folder, monkeypatch, tmp_path):
    assert_right(load_graph(99), 99)
    assert_right(load_graph(200, keep=False))
    assert not folder.exists()
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TOYDEPTH_CACHE", str(blocked))
    assert_right(load_graph(200))
