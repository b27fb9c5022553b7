"""Trajectories of known shape, their statistics, and what must not matter."""

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.hidden import QUANTITIES, Accumulator, measure_states
from toydepth.hidden.regime import RegimeRule, find_regime


def straight(depth=8, tokens=5, width=6, seed=0):
    """States on a line: every update the same."""
    generator = np.random.default_rng(seed)
    start, step = generator.normal(size=(2, tokens, width))
    return start + np.arange(depth + 1)[:, None, None] * step


def walk(depth=64, tokens=200, width=64, seed=0):
    """A random walk from far off: updates in new directions."""
    generator = np.random.default_rng(seed)
    steps = generator.normal(size=(depth, tokens, width))
    return 30 * generator.normal(size=(tokens, width)) + np.concatenate(
        [np.zeros_like(steps[:1]), steps.cumsum(axis=0)]
    )


def test_a_straight_line():
    found = measure_states(straight())
    assert found.theta_updates == pytest.approx(np.zeros((7, 5)), abs=1e-7)
    assert found.progress == pytest.approx(np.broadcast_to(np.arange(9)[:, None] / 8, (9, 5)))
    assert found.update_norm == pytest.approx(np.broadcast_to(found.update_norm[0], (8, 5)))
    assert found.theta_final[-1] == pytest.approx(np.zeros(5), abs=1e-12)


def test_a_circle_turns_by_the_same_angle():
    turns = 0.1 * np.arange(11)
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=-1)[:, None, :]
    found = measure_states(circle)
    assert found.theta_states == pytest.approx(np.full((10, 1), 0.1))
    assert found.theta_updates == pytest.approx(np.full((9, 1), 0.1))
    assert found.theta_final[:, 0] == pytest.approx(turns[::-1], abs=1e-12)


def test_a_random_walk_is_near_orthogonal():
    found = measure_states(walk())
    assert found.theta_updates.mean() == pytest.approx(np.pi / 2, rel=0.01)


@pytest.mark.parametrize("cut", [1, 7, 64, 200])
def test_batches_do_not_matter(cut):
    stream = walk()
    whole = Accumulator(64).add(measure_states(stream)).table()
    parts = Accumulator(64)
    for first in range(0, 200, cut):
        parts.add(measure_states(stream[:, first : first + cut]))
    np.testing.assert_allclose(parts.table().to_numpy(float), whole.to_numpy(float), rtol=1e-9, atol=1e-12)


def test_moments_and_quantiles_are_those_of_numpy():
    found = measure_states(walk(tokens=5000, depth=4))
    table = Accumulator(4).add(found).table()
    for name in QUANTITIES:
        values = getattr(found, name)
        first = 1 if name == "theta_updates" else 0
        rows = table.iloc[first : first + len(values)]
        assert rows[name].to_numpy() == pytest.approx(values.mean(axis=1), rel=1e-10)
        assert rows[f"{name}_std"].to_numpy() == pytest.approx(values.std(axis=1, ddof=1), rel=1e-9, abs=1e-12)
        for share in (5, 50, 95):
            exact = np.quantile(values, share / 100, axis=1, method="inverted_cdf")
            assert rows[f"{name}_q{share:02d}"].to_numpy() == pytest.approx(exact, rel=0.006, abs=1e-8), name


def test_stop_and_go_on_changes_nothing():
    stream = walk()
    first = Accumulator(64).add(measure_states(stream[:, :90]))
    again = Accumulator.restore(first.state()).add(measure_states(stream[:, 90:]))
    straight_on = first.add(measure_states(stream[:, 90:]))
    np.testing.assert_array_equal(again.table().to_numpy(float), straight_on.table().to_numpy(float))


def test_two_halves_can_be_merged():
    stream = walk()
    halves = [Accumulator(64).add(measure_states(part)) for part in (stream[:, :70], stream[:, 70:])]
    whole = Accumulator(64).add(measure_states(stream)).table()
    np.testing.assert_allclose(
        halves[0].merge(halves[1]).table().to_numpy(float), whole.to_numpy(float), rtol=1e-9, atol=1e-12
    )


def test_zero_vectors_and_values_that_are_not_finite_are_counted():
    stream = straight(depth=3, tokens=4)
    stream[1, 0] = 0
    stream[2, 1, 0] = np.nan
    stream[2, 2, 3] = np.inf
    found = measure_states(stream)
    assert found.num_zero.tolist() == [0, 1, 0, 0] and found.num_not_finite.tolist() == [0, 0, 2, 0]
    assert np.isnan(found.theta_states[[0, 1], 0]).all() and np.isfinite(found.theta_states[2, 0])
    with pytest.raises(InputError, match="hidden states must be finite, got 2 tokens with NaN or inf after block 2"):
        Accumulator(3).add(found)
    table = Accumulator(3, allow_non_finite=True).add(found).table()
    assert table["num_not_finite"].tolist() == [0, 0, 2, 0] and np.isfinite(table["norm"]).all()


def test_shapes_that_are_no_stream():
    with pytest.raises(InputError, match=r"hidden must be \(depth \+ 1, tokens, width\)"):
        measure_states(np.zeros((3, 4)))
    with pytest.raises(InputError, match="one block or more"):
        measure_states(np.zeros((1, 4, 2)))


def test_regimes():
    def regime(stream):
        return find_regime(Accumulator(len(stream) - 1).add(measure_states(stream)).table())

    assert regime(walk()).verdict == "ensemble averaging"
    turns = 0.05 * np.arange(33)
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=-1)[:, None, :]
    assert regime(circle).verdict == "procedural"
    early = walk()
    early[8:] = early[8] + 1e-3 * (early[8:] - early[8])
    assert regime(early).verdict == "compositional"
    assert regime(straight(depth=2)).verdict == "unknown"
    with pytest.raises(InputError, match="middle must be two relative depths"):
        RegimeRule(middle=(0.8, 0.2))
    with pytest.raises(InputError, match="aligned must be below orthogonal"):
        RegimeRule(aligned=0.9, orthogonal=0.5)


def made(theta_states, theta_updates):
    """A table of nine layers, of which five are the middle."""
    place = np.arange(9) / 8
    updates = np.full(9, theta_updates * np.pi / 2)
    return pd.DataFrame({"relative_depth": place, "theta_states": theta_states, "theta_updates": updates})


@pytest.mark.parametrize(
    ("states", "updates", "rule", "verdict"),
    [
        (np.full(9, 0.2), 0.81, {}, "ensemble averaging"),
        (np.full(9, 0.2), 0.79, {}, "mixed"),
        (np.full(9, 0.2), 0.79, {"orthogonal": 0.75}, "ensemble averaging"),
        (np.full(9, 0.2), 0.49, {}, "procedural"),
        (np.full(9, 0.2), 0.51, {}, "mixed"),
        # Standard deviation over mean of 1, 1, 1, 1, 6: exactly 1.
        (np.r_[1, 1, 1, 1, 1, 1, 6, 1, 1] / 10, 1.0, {}, "mixed"),
        (np.r_[1, 1, 1, 1, 1, 1, 6, 1, 1] / 10, 1.0, {"even": 1.01}, "ensemble averaging"),
        # Three, then two, of the five have stopped.
        (np.r_[1, 1, 1, 1, 0.09, 0.09, 0.09, 0.09, 0.09], 1.0, {}, "compositional"),
        (np.r_[1, 1, 1, 1, 1, 0.09, 0.09, 0.09, 0.09], 1.0, {"even": 2.0}, "ensemble averaging"),
        (np.r_[1, 1, 1, 1, 1, 0.09, 0.09, 0.09, 0.09], 1.0, {"stopped_share": 0.4}, "compositional"),
        (np.r_[1, 1, 1, 1, 0.11, 0.11, 0.11, 0.11, 0.11], 1.0, {"even": 2.0}, "ensemble averaging"),
    ],
)
def test_each_threshold_decides(states, updates, rule, verdict):
    assert find_regime(made(states, updates), RegimeRule(**rule)).verdict == verdict


def test_zero_updates_are_counted():
    """Nine of ten tokens stand still in the third block: the angle is of the tenth alone, and the table says so."""
    states = np.random.default_rng(0).normal(size=(5, 10, 4)).cumsum(axis=0)
    states[3, :9] = states[2, :9]
    table = Accumulator(4).add(measure_states(states)).table()
    assert table["num_zero_updates"].tolist() == [0, 0, 9, 0, 0]
    assert table["theta_updates_tokens"].tolist() == [0, 10, 1, 1, 0] and table["tokens"].tolist() == [10] * 5
    assert table["theta_states_tokens"].tolist() == [10, 10, 10, 10, 0]


def test_memory_does_not_grow_with_the_stream():
    total = Accumulator(8)
    sizes = []
    for seed in range(50):
        total.add(measure_states(straight(seed=seed)))
        sizes.append(
            sum(v.nbytes for q in QUANTITIES for v in (*total.moments[q].state().values(), total.sketches[q].counts))
        )
    assert len(set(sizes)) == 1
