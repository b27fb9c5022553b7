"""One blob is one cluster, of whatever form; planted ones are found with their members; intervals hold the truth."""

import numpy as np
import pytest
from scipy.stats import binom

from toydepth.errors import InputError
from toydepth.hidden.clusters import ClusterRule, find_clusters, share_interval
from toydepth.hidden.covariance import ProfileCovariance
from toydepth.hidden.mixture import find_heaps, fit_mixture
from toydepth.hidden.reservoir import Reservoir

LAYERS = 8


def clusters_of(profiles, position=None, seed=0, rule=None, token=3, norm=1.0, capacity=20_000):
    count = profiles.shape[1]
    position = np.arange(1, count + 1) if position is None else position
    # A document a token: any position may then repeat.
    reservoir = Reservoir(len(profiles), capacity).add(
        profiles, document=np.arange(count), position=position, token=token, norm=norm
    )
    return find_clusters(reservoir.sample(), ProfileCovariance(len(profiles)).add(profiles).components(), rule, seed)


def blob(generator, count, spread=0.05):
    """Profiles around 0.3 rad, spread unequally over layers."""
    return 0.3 + spread * np.geomspace(1, 0.2, LAYERS)[:, None] * generator.normal(size=(LAYERS, count))


def with_first_tokens(generator, count, few, apart=0.6):
    """A blob of which the last `few` tokens turn elsewhere: much in early layers, little in late ones."""
    profiles = blob(generator, count)
    shape = np.where(np.arange(LAYERS) < 3, apart, -0.2)[:, None]
    profiles[:, count - few :] += shape * (1 + 0.1 * generator.normal(size=few))
    return profiles


def test_one_gaussian_is_one_cluster():
    """No false split in 100 seeds: a rate below 3.0 % with 95 % confidence."""
    found = [len(clusters_of(blob(np.random.default_rng(seed), 2000), seed=seed).table) for seed in range(100)]
    assert found == [1] * 100


@pytest.mark.parametrize("form", ["skewed", "long tails", "flat", "ring"])
def test_one_blob_of_another_form_is_one_cluster(form):
    """BIC gives such a blob several Gaussians; no valley lies between them."""
    draw = {
        "skewed": lambda g: g.gamma(2, size=(2, 4000)),
        "long tails": lambda g: g.standard_t(4, size=(2, 4000)),
        "flat": lambda g: g.uniform(-1, 1, size=(2, 4000)),
        "ring": lambda g: (
            (1 + 0.1 * g.normal(size=4000)) * np.stack([np.cos(t := g.uniform(0, 2 * np.pi, 4000)), np.sin(t)])
        ),
    }[form]
    for seed in range(2):
        found = clusters_of(draw(np.random.default_rng(seed)), seed=seed)
        assert len(found.table) == 1 and found.mixture_components > 1
        assert found.table["share"].tolist() == [1.0] and found.table["valley"].isna().all()


def test_a_far_cluster_of_four_in_a_thousand_is_found_with_its_members():
    for seed in range(10):
        generator = np.random.default_rng(seed)
        profiles = with_first_tokens(generator, 10_000, 40)
        first = np.arange(10_000) >= 9960
        position = np.where(first, 0, generator.integers(1, 500, 10_000))
        norm, token = np.where(first, 2e4, 150.0), np.where(first, generator.choice([11, 12], 10_000), 3)
        found = clusters_of(profiles, position, seed, token=token, norm=norm)
        assert found.points["cluster"].to_numpy().tolist() == first.astype(int).tolist()
        bulk, rest = found.table.to_dict("records")
        assert (bulk["tokens"], rest["tokens"], bulk["share"]) == (9960, 40, 0.996)
        assert bulk["share_low"] < 0.996 < bulk["share_high"]
        assert (rest["first_share"], rest["share_of_first"], rest["mean_position"]) == (1.0, 1.0, 0.0)
        assert rest["valley"] < 0.01 and bulk["valley"] < 0.01
        assert (rest["median_norm"], bulk["median_norm"], bulk["first_share"]) == (2e4, 150.0, 0.0)
        assert {id for id, *_ in rest["typical_tokens"]} == {11, 12} and bulk["typical_tokens"] == [(3, 9960, 9960)]
        assert sum(count for _, count, _ in rest["typical_tokens"]) == 40


def test_a_far_cluster_beside_a_skewed_bulk():
    for seed in (0, 1):
        generator = np.random.default_rng(seed)
        profiles = generator.gamma(3, size=(2, 10_000)) * np.array([[0.05], [0.03]])
        profiles[:, :40] = [[1.5], [0.1]] + 0.1 * generator.normal(size=(2, 40))
        found = clusters_of(profiles, seed=seed)
        assert found.points["cluster"].to_numpy().tolist() == [1] * 40 + [0] * 9960


def test_equal_first_tokens_are_a_cluster():
    """Before any context, tokens of one id have one profile: a heap without width."""
    profiles = blob(np.random.default_rng(0), 5000)
    profiles[:, :20] = 1.2
    found = clusters_of(profiles)
    assert found.table["tokens"].tolist() == [4980, 20]


def test_three_planted_clusters():
    for seed in range(3):
        generator = np.random.default_rng(seed)
        truth = np.repeat([0, 1, 2], [1500, 1000, 500])
        centres = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        profiles = centres[:, truth] + 0.08 * generator.normal(size=(2, 3000))
        found = clusters_of(profiles, seed=seed)
        assert found.table["tokens"].tolist() == [1500, 1000, 500]
        assert found.points["cluster"].to_numpy().tolist() == truth.tolist()


def test_profiles_of_clusters_are_means_over_their_tokens():
    profiles = with_first_tokens(np.random.default_rng(0), 5000, 25)
    found = clusters_of(profiles)
    for cluster, own in ((0, profiles[:, :-25]), (1, profiles[:, -25:])):
        rows = found.profiles.query(f"cluster == {cluster}")
        assert rows["theta"].to_numpy() == pytest.approx(own.mean(axis=1))
        assert rows["theta_q95"].to_numpy() == pytest.approx(np.quantile(own, 0.95, axis=1))
        assert rows["relative_depth"].to_numpy() == pytest.approx((np.arange(LAYERS) + 0.5) / LAYERS)


def test_the_same_seed_gives_the_same_clusters_and_units_play_no_part():
    profiles = with_first_tokens(np.random.default_rng(3), 5000, 25)
    one, again, larger = (clusters_of(p) for p in (profiles, profiles, 4 * profiles - 1))
    assert clusters_of(profiles, rule=ClusterRule(most=2)).capped
    assert one.points.equals(again.points) and one.bic == again.bic
    assert larger.points["cluster"].equals(one.points["cluster"])


def test_profiles_that_do_not_differ_are_one_cluster():
    assert clusters_of(np.full((3, 500), 0.2)).table["tokens"].tolist() == [500]
    # Rounding of float32 is no cluster either.
    rounding = 0.2 + 1e-7 * np.random.default_rng(0).choice([-1, 1], size=(3, 500))
    assert clusters_of(rounding).table["tokens"].tolist() == [500]


def test_fewer_than_the_least_are_no_cluster():
    profiles = with_first_tokens(np.random.default_rng(0), 5000, 5)
    found = clusters_of(profiles)
    assert found.table["tokens"].tolist() == [5000] and not found.capped
    assert clusters_of(profiles, rule=ClusterRule(least_tokens=4)).table["tokens"].tolist() == [4995, 5]


def test_without_first_tokens_or_ids_there_is_nothing_to_say():
    row = clusters_of(blob(np.random.default_rng(0), 500), token=-1).table.iloc[0]
    assert np.isnan(row["share_of_first"]) and row["typical_tokens"] == [] and row["first_share"] == 0


@pytest.mark.parametrize("apart", [1.0, 2.0, 3.0, 3.6, 5.0])
def test_two_equal_gaussians_are_two_from_3_3_deviations(apart):
    generator = np.random.default_rng(0)
    points = generator.normal(size=(2, 20_000))
    points[0, :10_000] += apart
    heaps, valleys = find_heaps(fit_mixture(points, 6, 10, 0.2)[0], 0.5)
    assert heaps.max() + 1 == (2 if apart > 3.3 else 1)
    if apart > 3.3:
        # Of (phi(x) + phi(x - apart)) / 2, halfway and at a peak.
        known = 2 * np.exp(-(apart**2) / 8) / (1 + np.exp(-(apart**2) / 2))
        assert valleys == pytest.approx([known, known], abs=0.06)
    else:
        assert np.isnan(valleys).all()


@pytest.mark.parametrize("total", [500, 5000, 20_000])
@pytest.mark.parametrize("share", [0.004, 0.5, 0.9, 0.996, 0.9999])
def test_intervals_hold_the_true_share_at_least_as_often_as_they_say(total, share):
    counts = np.arange(total + 1)
    counts = counts[binom.pmf(counts, total, share) > 1e-9]
    low, high = np.array([share_interval(int(count), total) for count in counts]).T
    covered = binom.pmf(counts, total, share)[(low <= share) & (share <= high)].sum()
    assert covered > 0.95 - 1e-6


def test_intervals_of_the_bulk_hold_the_share_of_the_stream():
    """The stream has 0.4 % far tokens exactly; 60 samples of an eighth of it."""
    profiles = with_first_tokens(np.random.default_rng(0), 40_000, 160)
    components = ProfileCovariance(LAYERS).add(profiles).components()
    held = 0
    for seed in range(60):
        reservoir = Reservoir(LAYERS, 5000, seed)
        reservoir.add(profiles, document=0, position=np.arange(40_000), token=1, norm=1.0)
        bulk = find_clusters(reservoir.sample(), components).table.iloc[0]
        held += bulk["share_low"] <= 0.996 <= bulk["share_high"]
    assert held >= 57


def test_what_cannot_be_used():
    assert share_interval(0, 10)[0] == 0 and share_interval(10, 10)[1] == 1
    with pytest.raises(InputError, match=r"successes must be 0 \.\.\. total, and total 1 or more, got 11 of 10"):
        share_interval(11, 10)
    with pytest.raises(InputError, match="sampled tokens must be 20 or more, got 19"):
        clusters_of(blob(np.random.default_rng(0), 19))
    with pytest.raises(InputError, match="most must be 1 or more, got 0"):
        ClusterRule(most=0)
    with pytest.raises(InputError, match="least_tokens must be 3 or more, got 1"):
        ClusterRule(least_tokens=1)
    with pytest.raises(InputError, match=r"valley must be in \(0, 1\), got 1.5. 0.5 is the default"):
        ClusterRule(valley=1.5)
