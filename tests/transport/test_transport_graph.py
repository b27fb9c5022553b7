"""The graph: its exact law, three times over; and that it is simple."""

from collections import Counter

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import zeta
from scipy.stats import chi2

from toydepth.errors import InputError
from toydepth.transport import Graph, make_graph
from toydepth.transport import graph as module


def edges_of(graph: Graph) -> list[tuple[int, int]]:
    """Each edge in both directions."""
    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    return list(zip(sources.tolist(), graph.indices.tolist(), strict=True))


@pytest.mark.parametrize(("num_nodes", "m"), [(2, 1), (6, 5), (7, 5), (500, 1), (3000, 2), (3000, 7)])
def test_simple_undirected_and_connected_by_design(num_nodes, m):
    graph = make_graph(num_nodes, m, seed=3)
    edges = edges_of(graph)
    assert graph.num_nodes == num_nodes and graph.num_edges == m * (num_nodes - m)
    assert len(set(edges)) == len(edges) == 2 * graph.num_edges, "no edge is doubled"
    assert all(a != b for a, b in edges), "no loop"
    assert {(b, a) for a, b in edges} == set(edges)
    older = Counter(a for a, b in edges if b < a)
    assert all(older[node] == m for node in range(m + 1, num_nodes))
    assert graph.indptr.dtype == np.int64 and graph.indices.dtype == np.int32


def one_by_one(num_nodes, m, seed):
    """The list of ends as it is defined, grown node by node from the same random numbers."""
    generator = np.random.default_rng([seed, num_nodes, m])
    ends = [node for edge in range(m) for node in (0, edge + 1)]
    first = m + 1
    while first < num_nodes:
        last = min(num_nodes, first + min(first, module.BLOCK))
        counts = 2 * m * (np.arange(first, last) - m)
        slots = generator.integers(0, counts[:, None], size=(last - first, m))
        for node in range(first, last):
            end = len(ends)
            more = np.random.default_rng([seed, num_nodes, m, node])
            stream = iter(slots[node - first].tolist())
            targets = []
            while len(targets) < m:
                slot = next(stream, None)
                target = ends[int(more.integers(end)) if slot is None else slot]
                if target not in targets:
                    targets.append(target)
            ends += [end for target in targets for end in (target, node)]
        first = last
    return np.array(ends[::2])


@pytest.mark.parametrize("m", [1, 2, 5, 12])
@pytest.mark.parametrize("block", [7, 500, 2**18])
def test_blocks_and_redraws_give_what_growth_one_by_one_gives(m, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    for seed in range(3):
        np.testing.assert_array_equal(module._grow(1500, m, seed), one_by_one(1500, m, seed))


def exact_law(num_nodes, m):
    """Probability of every sequence of target sets, by following all of them."""
    law = {((frozenset([0]),) * m): 1.0}
    for node in range(m + 1, num_nodes):
        grown = Counter()
        for history, chance in law.items():
            degree = Counter({0: m, **{i: 1 for i in range(1, m + 1)}})
            for offset, targets in enumerate(history[m:]):
                degree.update(targets)
                degree[m + 1 + offset] += m
            for targets, part in draws_by_degree(degree, m).items():
                grown[(*history, targets)] += chance * part
        law = grown
        assert len(next(iter(law))) == node
    return law


def draws_by_degree(degree, m, taken=frozenset()):
    """Sets of m nodes drawn by degree without replacement."""
    if len(taken) == m:
        return {taken: 1.0}
    left = {node: weight for node, weight in degree.items() if node not in taken}
    total, found = sum(left.values()), Counter()
    for node, weight in left.items():
        for targets, part in draws_by_degree(degree, m, taken | {node}).items():
            found[targets] += part * weight / total
    return found


@pytest.mark.parametrize(("num_nodes", "m"), [(6, 1), (5, 2), (6, 3)])
def test_small_graphs_come_as_often_as_they_should(num_nodes, m):
    """Chi-squared against the exact law of whole graphs. Fixed seeds: it cannot fail by chance."""
    law, draws = exact_law(num_nodes, m), 6000
    assert sum(law.values()) == pytest.approx(1)
    seen = Counter()
    for seed in range(draws):
        targets = module._grow(num_nodes, m, seed)
        seen[(frozenset([0]),) * m + tuple(frozenset(row.tolist()) for row in targets[m:].reshape(-1, m))] += 1
    assert set(seen) <= set(law)
    common = [key for key, chance in law.items() if chance * draws >= 5]
    observed = np.array([seen[key] for key in common] + [draws - sum(seen[key] for key in common)])
    chances = np.array([law[key] for key in common])
    expected = draws * np.append(chances, 1 - chances.sum())
    observed, expected = observed[expected > 1e-6], expected[expected > 1e-6]
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, len(expected) - 1) > 0.001


@pytest.mark.parametrize("m", [1, 2, 5])
def test_degrees_follow_the_limit_law(m):
    """P(degree = k) = 2 m (m + 1) / (k (k + 1) (k + 2)) for many nodes (Bollobas et al. 2001); exponent 3."""
    degrees = make_graph(200_000, m, seed=1).degrees
    k = np.arange(m, 15 * m)
    expected = 2 * m * (m + 1) / (k * (k + 1) * (k + 2))
    found = np.array([(degrees == one).mean() for one in k])
    assert found == pytest.approx(expected, abs=5 * np.sqrt(expected.max() / 200_000))
    # Maximum likelihood of (k + 1)^-g, which is k (k + 1) (k + 2) to 1 / k^2; a line through a histogram, or a fit of
    # k^-g from a small k on, is biased.
    tail = degrees[degrees >= 10 * m] + 1.0
    least = 10 * m + 1
    fit = minimize_scalar(lambda g: g * np.log(tail).mean() + np.log(zeta(g, least)), bounds=(1.5, 5), method="bounded")
    assert fit.x == pytest.approx(3, abs=4 * 2 / np.sqrt(len(tail)))


@pytest.mark.parametrize("m", [1, 2, 4])
def test_as_networkx_has_it(m):
    """Degree counts, largest degree and clustering of 80 graphs of each."""
    networkx = pytest.importorskip("networkx")
    numbers = {}
    for name in ("ours", "theirs"):
        rows = []
        for seed in range(80):
            if name == "ours":
                graph = networkx.Graph(edges_of(make_graph(300, m, seed)))
            else:
                graph = networkx.barabasi_albert_graph(300, m, seed=seed)
            degrees = np.array([degree for _, degree in graph.degree()])
            assert graph.number_of_edges() == m * (300 - m)
            counts = [(degrees == m + extra).sum() for extra in range(6)]
            rows.append([*counts, degrees.max(), 1000 * networkx.transitivity(graph)])
        numbers[name] = np.array(rows, float)
    ours, theirs = numbers["ours"], numbers["theirs"]
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / 80)
    apart = np.abs(ours.mean(axis=0) - theirs.mean(axis=0))
    assert (apart <= 3.5 * error).all(), apart / error
    if m > 1:
        assert ours[:, -1].mean() > 5, "preferential attachment clusters at this size"


def test_seeds_sizes_and_m_are_independent():
    first = make_graph(1000, 2, 0)
    again = make_graph(1000, 2, 0)
    np.testing.assert_array_equal(first.indices, again.indices)
    assert (make_graph(1000, 2, 1).indices != first.indices).mean() > 0.5
    shorter = module._grow(500, 2, 0)
    assert (module._grow(1000, 2, 0)[: len(shorter)] != shorter).mean() > 0.5, "sizes must not share their old nodes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 0), "m_BA must be an integer, 1 or more, got 0"),
        ((10, 2.5), "m_BA must be an integer, 1 or more, got 2.5"),
        ((10, True), "m_BA must be an integer, 1 or more, got True"),
        ((3, 3), "num_nodes must be an integer, 4 or more, got 3. 4 nodes, m_BA"),
        ((10, 2, -1), "seed must be an integer, 0 or more, got -1"),
    ],
)
def test_what_cannot_be_used(arguments, message):
    with pytest.raises(InputError, match=message):
        make_graph(*arguments)
