"""A sample that is uniform, and the same however the stream was cut, ordered, shared out or interrupted."""

import numpy as np
import pytest
from scipy.stats import chi2

from toydepth.errors import InputError
from toydepth.hidden.reservoir import Reservoir

DOCUMENTS, LENGTH = 40, 50


def stream():
    """2000 tokens; each profile says which token it is."""
    document, position = (index.ravel() for index in np.indices((DOCUMENTS, LENGTH)))
    number = np.arange(document.size)
    columns = {"document": document, "position": position, "token": number % 7, "norm": 1.0 + number}
    return np.stack([number, -number]).astype(float), columns


def add(reservoir, chosen):
    profiles, columns = stream()
    return reservoir.add(profiles[:, chosen], **{name: value[chosen] for name, value in columns.items()})


def whole(capacity=100, seed=0):
    return add(Reservoir(2, capacity, seed), slice(None))


def assert_same(one, other):
    first, second = one.sample(), other.sample()
    np.testing.assert_array_equal(first.profiles, second.profiles)
    assert first.table.equals(second.table)
    assert (first.num_seen, first.num_left_out) == (second.num_seen, second.num_left_out)


def test_columns_stay_with_their_profiles():
    sample = whole().sample()
    table = sample.table
    assert sample.profiles.shape == (2, 100) and sample.num_seen == 2000
    number = sample.profiles[0]
    assert (table["document"] * LENGTH + table["position"]).tolist() == number.tolist()
    assert (table["norm"] == 1 + number).all() and (table["token"] == number % 7).all()
    assert sorted(set(number)) == number.tolist()


@pytest.mark.parametrize("cut", [1, 13, 64, 999])
def test_cuts_do_not_matter(cut):
    parts = Reservoir(2, 100)
    for first in range(0, 2000, cut):
        add(parts, slice(first, first + cut))
    assert_same(parts, whole())


def test_order_does_not_matter():
    shuffled = Reservoir(2, 100)
    for chosen in np.array_split(np.random.default_rng(1).permutation(2000), 30):
        add(shuffled, chosen)
    assert_same(shuffled, whole())


def test_workers_merge_to_the_whole():
    workers = [add(Reservoir(2, 100), slice(first, None, 3)) for first in range(3)]
    assert_same(workers[0].merge(workers[1]).merge(workers[2]), whole())


def test_stop_and_go_on_changes_nothing():
    state = add(Reservoir(2, 100), slice(0, 700)).state()
    assert_same(add(Reservoir.restore(state), slice(700, None)), whole())


def test_a_short_stream_is_kept_whole():
    sample = whole(capacity=5000).sample()
    assert sample.profiles[0].tolist() == list(range(2000))


def test_every_token_is_as_likely_as_any_other():
    """Chi-squared over 600 seeds, of single tokens and of positions. Fixed seeds: the test cannot fail by chance."""
    seeds, capacity = 600, 200
    drawn = np.zeros(2000)
    for seed in range(seeds):
        drawn[whole(capacity, seed).sample().profiles[0].astype(int)] += 1
    chance = capacity / 2000
    # Draws without replacement: the variance of each count is seeds p (1 - p), and they sum to a constant.
    statistic = ((drawn - seeds * chance) ** 2).sum() / (seeds * chance * (1 - chance)) * 1999 / 2000
    assert 0.001 < chi2.sf(statistic, 1999) < 0.999
    for axis in (0, 1):
        counts = drawn.reshape(DOCUMENTS, LENGTH).sum(axis=axis)
        size = 2000 / len(counts)
        statistic = ((counts - seeds * chance * size) ** 2).sum() / (seeds * chance * (1 - chance) * size)
        assert 0.001 < chi2.sf(statistic, len(counts) - 1) < 0.999


def test_pairs_are_drawn_independently():
    """Neighbours come together as often as chance has it."""
    together = []
    for seed in range(300):
        kept = np.zeros(2000)
        kept[whole(400, seed).sample().profiles[0].astype(int)] = 1
        together.append((kept[1:] * kept[:-1]).sum())
    expected = 1999 * (400 / 2000) * (399 / 1999)
    assert np.mean(together) == pytest.approx(expected, abs=4 * np.std(together) / np.sqrt(300))


def test_missing_angles_are_counted_and_never_drawn():
    profiles, columns = stream()
    profiles[1, ::4] = np.nan
    sample = Reservoir(2, 3000).add(profiles, **columns).sample()
    assert (sample.num_seen, sample.num_left_out) == (1500, 500)
    assert np.isfinite(sample.profiles).all()


def test_a_token_that_comes_twice_is_refused_and_nothing_changes():
    """As when a stopped run goes on too early in the stream."""
    reservoir = add(Reservoir(2, 5000), slice(0, 60))
    before = reservoir.sample()
    with pytest.raises(InputError, match="must name one token, got document 1, position 5 twice"):
        add(reservoir, slice(55, 56))
    with pytest.raises(InputError, match="must name one token"):
        reservoir.merge(add(Reservoir(2, 5000), slice(10, 20)))
    assert reservoir.num_seen == 60
    assert reservoir.sample().table.equals(before.table)


def test_memory_does_not_grow():
    reservoir = Reservoir(2, 50)
    sizes = set()
    for first in range(0, 2000, 100):
        state = add(reservoir, slice(first, first + 100)).state()
        sizes.add(
            state["profiles"].nbytes + state["priorities"].nbytes + sum(v.nbytes for v in state["columns"].values())
        )
    assert len(sizes) == 1


def test_what_cannot_be_used():
    with pytest.raises(InputError, match="capacity must be 1 or more, got 0"):
        Reservoir(2, 0)
    with pytest.raises(InputError, match="seed must be 0 or more, got -1"):
        Reservoir(2, seed=-1)
    with pytest.raises(InputError, match=r"norm must be \(3,\), one a token, got shape \(2,\)"):
        Reservoir(1).add(np.zeros((1, 3)), document=0, position=np.arange(3), token=0, norm=np.zeros(2))
    with pytest.raises(InputError, match="token must be whole numbers, got <U3"):
        Reservoir(1).add(np.zeros((1, 3)), document=0, position=np.arange(3), token="the", norm=1.0)
    with pytest.raises(InputError, match="seed must be that of both reservoirs, got 0 and 1"):
        Reservoir(1).merge(Reservoir(1, seed=1))
