"""Cascades by hand, against a plain loop, and what must not change them."""

import math

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.transport import Graph, find_threshold, make_graph, run_cascade
from toydepth.transport import cascade as module


def graph_of(*rows):
    """A graph from the neighbours of each node."""
    counts = [len(row) for row in rows]
    return Graph(np.cumsum([0, *counts]), np.concatenate([np.array(row, np.int32) for row in rows]))


PATH = graph_of([1], [0, 2], [1])
STAR = graph_of([1, 2, 3], [0], [0], [0])
TRIANGLE = graph_of([1, 2], [0, 2], [0, 1])


def steps_of(graph, field, threshold, sign="signed"):
    """(active nodes, field after) of each step, by stopping after one, two, ... steps."""
    whole = run_cascade(graph, np.array(field, float), threshold=threshold, sign=sign)
    seen = []
    for cap in range(1, whole.duration + 1):
        part = run_cascade(graph, np.array(field, float), threshold=threshold, sign=sign, cap=cap)
        assert part.capped == (cap < whole.duration)
        seen.append((int(part.profile[-1]), part.final.tolist()))
    return whole, seen


def test_path_by_hand():
    # 0 is active: its 4 goes to 1, which has 5. 1 is active: halves of 5 to both ends, below 3.
    whole, seen = steps_of(PATH, [4, 1, 0], 3.0)
    assert seen == [(1, [0.0, 5.0, 0.0]), (1, [2.5, 0.0, 2.5])]
    assert (whole.size, whole.duration, whole.capped) == (2, 2, False)
    assert whole.efficiency == pytest.approx(2 / (3 * 2))


def test_star_by_hand():
    # Hub, first and third leaf at once: the hub gives 1 to each leaf and gets -6 + 4; then the hub's -2 goes in thirds.
    whole, seen = steps_of(STAR, [3, -6, 0, 4], 1.5)
    assert seen[0] == (3, [-2.0, 1.0, 1.0, 1.0])
    assert seen[1][0] == 1 and seen[1][1] == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert (whole.size, whole.duration) == (4, 2)
    assert whole.efficiency == pytest.approx(4 / (4 * 2))
    whole, seen = steps_of(STAR, [3, -6, 0, 4], 2.5)
    assert seen == [(3, [-2.0, 1.0, 1.0, 1.0])]


def test_triangle_by_hand_strictly_above():
    # 2 stands at the threshold, and does not move. 0 gives 2 and 2, 1 gives -1 and -1. Then 1 and 2 give 1 each way.
    whole, seen = steps_of(TRIANGLE, [4, -2, 1], 1.0)
    assert seen == [(2, [-1.0, 2.0, 2.0]), (2, [1.0, 1.0, 1.0])]
    assert (whole.size, whole.duration, whole.conservation_error) == (4, 2, 0)


def test_capped_when_it_never_ends():
    # 2.5 goes back and forth between the middle of a path and its ends.
    cascade = run_cascade(PATH, np.array([4.0, 1.0, 0.0]), threshold=1.5, cap=20)
    assert cascade.capped and cascade.duration == 20
    assert cascade.profile.tolist() == [1] + [1, 2] * 9 + [1]
    assert not run_cascade(PATH, np.array([4.0, 1.0, 0.0]), threshold=3.0, cap=2).capped, "just enough steps"
    assert run_cascade(PATH, np.array([4.0, 1.0, 0.0]), threshold=1.5).duration == 500


def test_absolute_lets_nothing_cancel():
    _, seen = steps_of(STAR, [2, -3, 0, 0], 2.5, sign="absolute")
    assert seen[0] == (1, [5.0, 0.0, 0.0, 0.0])
    assert seen[1][0] == 1 and seen[1][1] == pytest.approx([0, 5 / 3, 5 / 3, 5 / 3])
    signed = run_cascade(STAR, np.array([2.0, -3.0, 0.0, 0.0]), threshold=2.5)
    assert signed.final.tolist() == [-1.0, 0.0, 0.0, 0.0]


def test_quiet_field():
    cascade = run_cascade(PATH, np.array([1.0, 1.0, 1.0]), threshold=1.0)
    assert (cascade.size, cascade.duration, cascade.capped) == (0, 0, False)
    assert math.isnan(cascade.efficiency)


def plain_loop(graph, field, tau, cap=500):
    """The definition, one node at a time over all of them."""
    u, profile = field.astype(float).copy(), []
    while (np.abs(u) > tau).any() and len(profile) < cap:
        active = [i for i in range(len(u)) if abs(u[i]) > tau]
        profile.append(len(active))
        shares = [u[i] / (graph.indptr[i + 1] - graph.indptr[i]) for i in active]
        u[active] = 0.0
        for i, share in zip(active, shares, strict=True):
            for j in graph.indices[graph.indptr[i] : graph.indptr[i + 1]]:
                u[j] += share
    return u, profile


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("percentile", [50, 90])
def test_equal_to_a_plain_loop_to_the_last_bit(m, percentile, monkeypatch):
    for seed in range(6):
        graph = make_graph(300, m, seed)
        field = np.random.default_rng(seed).standard_t(3, 300)
        tau = np.percentile(np.abs(field), percentile)
        cascade = run_cascade(graph, field, percentile=percentile, cap=60)
        final, profile = plain_loop(graph, field, tau, cap=60)
        assert cascade.threshold == tau and cascade.profile.tolist() == profile
        np.testing.assert_array_equal(cascade.final, final)
        monkeypatch.setattr(module, "BLOCK", 7)
        np.testing.assert_array_equal(run_cascade(graph, field, percentile=percentile, cap=60).final, final)
        monkeypatch.undo()


def test_the_signed_sum_is_conserved():
    for seed in range(5):
        field = np.random.default_rng(seed).standard_normal(20_000) + 0.3
        cascade = run_cascade(make_graph(20_000, 2, seed), field)
        assert cascade.conservation_error < 1e-14
        assert cascade.final.sum() == pytest.approx(field.sum(), rel=1e-12)
        assert np.abs(cascade.final).sum() <= np.abs(field).sum()


def test_labels_and_units_play_no_part():
    generator = np.random.default_rng(0)
    graph, field = make_graph(2000, 2, 0), generator.standard_normal(2000)
    cascade = run_cascade(graph, field)
    for scale in (2.0**-40, -(2.0**40)):
        scaled = run_cascade(graph, scale * field)
        assert scaled.profile.tolist() == cascade.profile.tolist()
        np.testing.assert_array_equal(scaled.final, scale * cascade.final)
    order = generator.permutation(2000)
    place = np.argsort(order)
    rows = [place[graph.indices[graph.indptr[i] : graph.indptr[i + 1]]] for i in order]
    assert run_cascade(graph_of(*rows), field[order]).profile.tolist() == cascade.profile.tolist()
    single = run_cascade(graph, field.astype(np.float32))
    assert single.final.dtype == np.float64 and single.size == pytest.approx(cascade.size, rel=0.05)


def test_only_rows_of_active_nodes_are_read():
    """What is not active has neighbours that do not exist: reading them would raise."""
    size = 5000
    graph = make_graph(size, 2, 0)
    field = np.zeros(size)
    field[[4000, 4500]] = 1.0, -1.0
    cascade = run_cascade(graph, field, threshold=0.3)
    assert 2 < cascade.size < 50
    active = set()
    for cap in range(cascade.duration):
        state = run_cascade(graph, field, threshold=0.3, cap=cap).final if cap else field
        active.update(np.flatnonzero(np.abs(state) > 0.3).tolist())
    poisoned = np.full_like(graph.indices, size + 7)
    for node in active:
        row = slice(graph.indptr[node], graph.indptr[node + 1])
        poisoned[row] = graph.indices[row]
    again = run_cascade(Graph(graph.indptr, poisoned), field, threshold=0.3)
    assert again.profile.tolist() == cascade.profile.tolist()
    assert field[[4000, 4500]].tolist() == [1.0, -1.0], "the field is left alone"


def test_threshold_as_numpy_has_it():
    values = np.array([-5.0, 1.0, 2.0, 3.0, -4.0, 0.0])
    assert find_threshold(values) == np.percentile(np.abs(values), 90, method="linear") == 4.5
    assert values[0] == -5


@pytest.mark.parametrize(
    ("field", "options", "message"),
    [
        ([1.0, 2.0], {}, r"field must be \(3,\), one value a node, got shape \(2,\)"),
        ([1.0, np.nan, 2.0], {}, "field must be finite"),
        ([1.0, -np.inf, np.inf], {}, "field must be finite"),
        ([1e308, 1e308, 1e308], {}, "field must be finite, got NaN, infinities or a sum beyond float64"),
        ([0.0, 0.0, 0.0], {}, "threshold must be above 0, got 0.0"),
        ([1.0, 0.0, 0.0], {"threshold": -1.0}, "threshold must be above 0, got -1.0"),
        ([1.0, 0.0, 0.0], {"percentile": 100}, "percentile must be between 0 and 100, got 100"),
        ([1.0, 0.0, 0.0], {"sign": "sined"}, "sign must be signed or absolute, got 'sined'. Did you mean 'signed'?"),
        ([1.0, 0.0, 0.0], {"cap": 0}, "cap must be an integer, 1 or more, got 0"),
    ],
)
def test_what_cannot_be_used(field, options, message):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        run_cascade(PATH, np.array(field), **options)


def test_a_node_without_neighbours():
    with pytest.raises(InputError, match="graph must give each node a neighbour, got node 2 without"):
        run_cascade(graph_of([1], [0], []), np.array([0.0, 0.0, 5.0]), threshold=1.0)
