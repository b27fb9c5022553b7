"""Intervals of a simulated exponent hold the truth as often as they say."""

import numpy as np

from toydepth.fit import fit_depth_exponent

DEPTHS = np.array([6.0, 12, 16, 24, 32, 48])
SIMULATIONS = 500


def coverage(name, losses_of, alpha, **options):
    held = 0
    for seed in range(SIMULATIONS):
        fit = fit_depth_exponent(losses_of(np.random.default_rng(seed)), DEPTHS, seed=seed, **options)
        low, high = fit.intervals[name]
        held += low <= alpha <= high
    print(f"{name}: {held / SIMULATIONS:.3f}")
    return held / SIMULATIONS


def test_covariance_interval_covers_scatter_about_the_law():
    def losses(rng):
        return 2 * DEPTHS**-1.5 * np.exp(0.1 * rng.normal(size=6))

    assert 0.92 <= coverage("covariance", losses, 1.5, num_bootstrap=10) <= 0.98


def test_replicates_interval_covers_the_spread_between_three_teachers():
    def losses(rng):
        alpha, log_c = rng.normal(1.5, 0.2, (3, 1)), rng.normal(size=(3, 1))
        return np.exp(log_c - alpha * np.log(DEPTHS) + 0.05 * rng.normal(size=(3, 6)))

    assert 0.92 <= coverage("replicates", losses, 1.5, num_bootstrap=1000) <= 0.98
    # The covariance knows nothing of that spread: this is why it is not the headline.
    assert coverage("covariance", losses, 1.5, num_bootstrap=10) < 0.9


def test_replicates_interval_covers_with_points_missing():
    def losses(rng):
        alpha = rng.normal(1.5, 0.2, (3, 1))
        table = np.exp(-alpha * np.log(DEPTHS) + 0.05 * rng.normal(size=(3, 6)))
        table[0, 5] = table[2, 0] = np.nan
        return table

    assert 0.92 <= coverage("replicates", losses, 1.5, num_bootstrap=1000) <= 0.98


def test_covariance_interval_covers_with_a_floor():
    def losses(rng):
        return (2 * DEPTHS**-1.5 + 0.002) * np.exp(0.02 * rng.normal(size=6))

    assert 0.92 <= coverage("covariance", losses, 1.5, num_bootstrap=10, floor=True) <= 0.98


def test_replicates_interval_covers_with_a_floor():
    def losses(rng):
        alpha = rng.normal(1.5, 0.2, (3, 1))
        return (np.exp(-alpha * np.log(DEPTHS)) + 0.002) * np.exp(0.02 * rng.normal(size=(3, 6)))

    assert 0.92 <= coverage("replicates", losses, 1.5, num_bootstrap=200, floor=True) <= 0.98
