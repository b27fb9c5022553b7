"""Counts in bins: every value once, at its place, however the stream is cut."""

import numpy as np
import pytest

from toydepth.hidden import QUANTITIES, Accumulator, measure_states
from toydepth.hidden.histogram import BINS, Bins, Histogram


@pytest.mark.parametrize("name", sorted(BINS))
def test_counts_are_those_of_numpy(name):
    bins = BINS[name]
    values = np.random.default_rng(0).normal(size=(3, 4000)) * (1 if name == "progress" else 3)
    values = np.abs(values) if name != "progress" else values
    found = Histogram(3, bins).add(values).counts
    for row, counts in zip(values, found, strict=True):
        edges = np.concatenate([[-np.inf], bins.edges, [np.inf]])
        np.testing.assert_array_equal(counts, np.histogram(row, edges)[0])


def test_ends_of_angles_have_bins():
    counts = Histogram(1, BINS["theta_states"]).add(np.array([[0.0, np.pi, np.nan]])).counts[0]
    assert (counts[1], counts[-2], counts.sum()) == (1, 1, 2)


def test_zero_and_negative_norms_are_below_all_bins():
    assert Histogram(1, Bins(-2.0, 1.0, 3, log=True)).add(np.array([[0.0, -1.0, 0.25, 2.0, 9.0]])).counts.tolist() == [
        [2, 1, 0, 1, 1]
    ]


def test_parts_add_up_and_come_back():
    values = np.random.default_rng(1).uniform(0, 3, size=(2, 500))
    whole = Histogram(2, BINS["norm"]).add(values)
    parts = Histogram(2, BINS["norm"]).add(values[:, :123]).merge(Histogram(2, BINS["norm"]).add(values[:, 123:]))
    np.testing.assert_array_equal(parts.counts, whole.counts)
    np.testing.assert_array_equal(Histogram.restore(whole.state(), BINS["norm"]).counts, whole.counts)


def test_the_table_of_an_accumulator_counts_every_token_of_every_layer():
    states = np.random.default_rng(2).normal(size=(5, 300, 8)).cumsum(axis=0)
    table = Accumulator(4).add(measure_states(states)).histogram_table()
    sums = table.groupby(["quantity", "layer"])["count"].sum()
    layers = {"theta_states": range(4), "theta_updates": range(1, 4), "update_norm": range(4)}
    for name in QUANTITIES:
        assert sums[name].to_dict() == dict.fromkeys(layers.get(name, range(5)), 300), name
    for row in table.query("quantity == 'theta_states' and layer == 2").itertuples():
        theta = measure_states(states).theta_states[2]
        assert row.count == ((theta >= row.left) & (theta < row.right)).sum()
