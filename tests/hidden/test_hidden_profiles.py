"""Components, sample and clusters of one stream together; a stop in between changes nothing."""

import numpy as np

from toydepth.hidden import ClusterRule, Profiles, measure_states


def turned(angles):
    """States (depth + 1, tokens, 2) that turn by angles (depth, tokens)."""
    direction = np.concatenate([np.zeros((1, angles.shape[1])), np.cumsum(angles, axis=0)])
    return np.stack([np.cos(direction), np.sin(direction)], axis=-1)


def make(documents=40, length=50, seed=0):
    generator = np.random.default_rng(seed)
    for document in range(documents):
        angles = 0.3 + 0.02 * generator.normal(size=(6, length))
        angles[:, 0] += 0.5
        states = turned(angles)
        states[:, 0] *= 100
        where = {"document": np.full(length, document), "position": np.arange(length)}
        yield measure_states(states), where | {"token": generator.integers(5, 9, size=length)}


def test_first_tokens_are_found_with_what_marks_them():
    profiles = Profiles(6)
    for part, where in make():
        profiles.add(part, **where)
    found = profiles.clusters()
    assert found.table["tokens"].tolist() == [1960, 40]
    first = found.table.iloc[1]
    assert (first["first_share"], first["share_of_first"], first["norm_rank"]) == (1, 1, 1)
    np.testing.assert_allclose(first["median_norm"], 100)
    assert found.table["norm_rank"][0] == 0
    assert profiles.components(9).axes.shape == (6, 6)


def test_a_stop_changes_nothing():
    whole, half = Profiles(6, capacity=300, seed=3), Profiles(6, capacity=300, seed=3)
    for number, (part, where) in enumerate(make()):
        whole.add(part, **where)
        if number == 17:
            half = Profiles.restore(half.state())
        half.add(part, **where)
    np.testing.assert_array_equal(half.covariance.scatter, whole.covariance.scatter)
    one, other = whole.clusters(), half.clusters()
    assert one.table.equals(other.table) and one.points.equals(other.points)


def test_more_gaussians_are_tried_where_the_limit_was_reached():
    profiles = Profiles(6)
    for part, where in make():
        profiles.add(part, **where)
    found = profiles.clusters(ClusterRule(most=1))
    assert (found.rule.most, found.mixture_components, found.capped) == (2, 2, True)


def test_typical_tokens_are_those_that_tell():
    """A token that is everywhere tells nothing, though it is the most frequent one in both."""
    from toydepth.hidden.clusters import _typical

    tokens = np.array([1] * 90 + [2] * 10)
    inside = np.zeros(100, bool)
    inside[85:95] = True  # five of the 90, five of the 10
    assert _typical(tokens, inside) == [(2, 5, 10), (1, 5, 90)]
    assert _typical(np.full(100, -1), inside) == []
