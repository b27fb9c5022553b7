"""Principal components in a stream against numpy on the whole data; cuts, merges and stops change nothing."""

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.hidden.covariance import ProfileCovariance


def profiles(layers=12, tokens=3000, seed=0):
    """Three directions over noise, far from zero."""
    generator = np.random.default_rng(seed)
    mixed = generator.normal(size=(layers, 3)) @ (np.array([[1.0], [0.4], [0.2]]) * generator.normal(size=(3, tokens)))
    return 1.5 + mixed + 0.01 * generator.normal(size=(layers, tokens))


def test_components_are_those_of_numpy_on_the_whole_data():
    values = profiles()
    found = ProfileCovariance(12).add(values).components(3)
    centred = values - values.mean(axis=1, keepdims=True)
    vectors, singular, _ = np.linalg.svd(centred, full_matrices=False)
    assert found.mean == pytest.approx(values.mean(axis=1), rel=1e-12)
    assert found.variances == pytest.approx(singular[:3] ** 2 / 2999, rel=1e-9)
    assert found.shares == pytest.approx(singular[:3] ** 2 / (singular**2).sum(), rel=1e-9)
    assert np.abs((found.axes * vectors[:, :3].T).sum(axis=1)) == pytest.approx(np.ones(3), rel=1e-9)
    scores = found.project(values)
    assert scores.var(axis=1, ddof=1) == pytest.approx(found.variances, rel=1e-9)
    assert scores.mean(axis=1) == pytest.approx(np.zeros(3), abs=1e-12)
    np.testing.assert_allclose(ProfileCovariance(12).add(values).covariance, np.cov(values), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_batches_and_merges_do_not_matter(cut):
    values = profiles(tokens=1500)
    whole = ProfileCovariance(12).add(values)
    parts, halves = ProfileCovariance(12), [ProfileCovariance(12), ProfileCovariance(12)]
    for turn, first in enumerate(range(0, 1500, cut)):
        parts.add(values[:, first : first + cut])
        halves[turn % 2].add(values[:, first : first + cut])
    for other in (parts, halves[0].merge(halves[1])):
        assert other.count == 1500
        np.testing.assert_allclose(other.covariance, whole.covariance, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(other.components().axes, whole.components().axes, atol=1e-10)


def test_a_large_mean_costs_no_digits():
    """Sums of squares would: 1e12 + 1 has four digits left for the 1."""
    values = profiles()
    shifted = ProfileCovariance(12)
    for first in range(0, 3000, 100):
        shifted.add(values[:, first : first + 100] + 1e6)
    np.testing.assert_allclose(shifted.covariance, np.cov(values), rtol=1e-7, atol=1e-9)


def test_stop_and_go_on_changes_nothing():
    values = profiles()
    first = ProfileCovariance(12).add(values[:, :700])
    again = ProfileCovariance.restore(first.state()).add(values[:, 700:])
    first.add(values[:, 700:])
    np.testing.assert_array_equal(again.scatter, first.scatter)
    np.testing.assert_array_equal(again.components().axes, first.components().axes)


def test_profiles_with_a_missing_angle_are_left_out_and_counted():
    values = profiles(tokens=100)
    holed = values.copy()
    holed[3, 5], holed[:, 9] = np.nan, np.nan
    found = ProfileCovariance(12).add(holed)
    assert (found.count, found.num_left_out) == (98, 2)
    np.testing.assert_allclose(found.covariance, np.cov(np.delete(values, [5, 9], axis=1)), rtol=1e-10)
    assert ProfileCovariance(12).add(np.full((12, 4), np.nan)).merge(found).num_left_out == 6
    assert np.isnan(found.components().project(holed)[:, 5]).all()


def test_signs_are_fixed():
    """The largest entry is positive, also where mirrored data would have it the other way."""
    values = profiles()
    one, mirrored = (ProfileCovariance(12).add(v).components(3).axes for v in (values, -values))
    np.testing.assert_allclose(one, mirrored, atol=1e-10)
    assert (one[np.arange(3), np.abs(one).argmax(axis=1)] > 0).all()
    # Entries of one size: the first decides.
    line = np.array([[1.0], [-1.0]]) * np.arange(5)
    assert ProfileCovariance(2).add(line).components(1).axes[0] == pytest.approx([0.5**0.5, -(0.5**0.5)])


def test_no_variance_has_no_shares():
    found = ProfileCovariance(3).add(np.full((3, 5), 0.25)).components()
    assert np.isnan(found.shares).all() and found.variances.tolist() == [0, 0]
    assert (found.project(np.full((3, 2), 0.25)) == 0).all()


def test_memory_does_not_grow():
    total = ProfileCovariance(12)
    sizes = []
    for seed in range(20):
        total.add(profiles(tokens=50, seed=seed))
        sizes.append(total.scatter.nbytes + total.mean.nbytes)
    assert len(set(sizes)) == 1


def test_what_cannot_be_used():
    with pytest.raises(InputError, match=r"profiles must be \(3, tokens\), got shape \(4, 2\)"):
        ProfileCovariance(3).add(np.zeros((4, 2)))
    with pytest.raises(InputError, match="of 3 angles each, got 4"):
        ProfileCovariance(3).merge(ProfileCovariance(4))
    with pytest.raises(InputError, match=r"whole profiles must be 2 or more, got 1, and 1 with a missing angle"):
        ProfileCovariance(2).add(np.array([[1.0, np.nan], [1.0, 1.0]])).components()
    with pytest.raises(InputError, match=r"count must be 1 ... 2, got 3"):
        ProfileCovariance(2).add(np.eye(2)).components(3)
