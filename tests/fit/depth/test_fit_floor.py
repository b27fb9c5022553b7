"""The power law with a floor: recovery, its bound, and the minimum scipy finds."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from toydepth.fit import fit_depth_exponent
from toydepth.fit.depth.floor import fit_floor

DEPTHS = np.array([6.0, 12, 16, 24, 32, 48])


def test_exact_floor_is_recovered():
    losses = np.array([[1.0], [3.0]]) * DEPTHS**-1.8 + 0.01
    fit = fit_depth_exponent(losses, DEPTHS, floor=True)
    assert fit.alpha == pytest.approx(1.8, rel=1e-6)
    assert fit.irreducible_loss == pytest.approx(0.01, rel=1e-6)
    assert fit.c == pytest.approx(np.sqrt(3), rel=1e-6)
    np.testing.assert_allclose(fit.alpha_by_replicate, 1.8, rtol=1e-6)
    np.testing.assert_allclose(fit.predict(DEPTHS), np.sqrt(3) * DEPTHS**-1.8 + 0.01, rtol=1e-6)
    assert fit.caveats == ()


def test_floor_at_zero_is_said_and_changes_nothing():
    x = np.log(DEPTHS)
    losses = np.exp(-1.2 * x - 0.1 * x**2)  # steepens with depth: a floor could only make it worse
    bound, plain = (fit_depth_exponent(losses, DEPTHS, floor=floor) for floor in (True, False))
    assert bound.irreducible_loss == 0
    assert bound.alpha == plain.alpha and bound.intervals == plain.intervals
    assert any("irreducible_loss ends at its bound 0" in caveat for caveat in bound.caveats)


def test_exact_power_law_has_no_floor():
    fit = fit_depth_exponent(DEPTHS**-1.2, DEPTHS, floor=True)
    assert fit.irreducible_loss == 0 and fit.alpha == pytest.approx(1.2)


@pytest.mark.parametrize("seed", range(8))
def test_minimum_is_that_of_scipy_from_many_starts(seed):
    rng = np.random.default_rng(seed)
    replicates = int(rng.integers(1, 4))
    alpha, level = rng.uniform(0.3, 3), rng.choice([0.3, 1, 5])
    scale = rng.normal(0, 0.5, (replicates, 1))
    clean = np.logaddexp(scale - alpha * np.log(DEPTHS), np.log(level) - alpha * np.log(16))
    y = clean + rng.choice([0.01, 0.2]) * rng.normal(size=clean.shape)

    def residual(p):
        return (y - np.logaddexp(p[2:, None] - p[0] * np.log(DEPTHS / 16), np.log(max(p[1], 1e-300)))).ravel()

    lowest = np.exp(y).min()
    costs = []
    for fraction in (1e-3, 0.5, 0.95):
        for guess in (0.5, 1.5, 4):
            start = [
                guess,
                fraction * lowest,
                *np.log(np.maximum(np.exp(y) - fraction * lowest, 0.05 * np.exp(y))).mean(1),
            ]
            bounds = ([-50, 0, *[-50] * replicates], [50, np.inf, *[50] * replicates])
            found = least_squares(residual, start, bounds=bounds, x_scale=[1, lowest, *[1] * replicates], ftol=1e-12)
            costs.append(2 * found.cost)
    ours = fit_floor(np.log(DEPTHS), y, np.ones((1, replicates))).sum_squares[0]
    assert ours <= min(costs) * (1 + 1e-6)


def test_weights_are_repeats():
    rng = np.random.default_rng(3)
    y = np.log(DEPTHS**-1.5 + 0.02) + 0.05 * rng.normal(size=(3, 6))
    counted = fit_floor(np.log(DEPTHS), y, np.array([[2, 1, 0]]))
    repeated = fit_floor(np.log(DEPTHS), y[[0, 0, 1]], np.ones((1, 3)))
    np.testing.assert_allclose(counted.alpha, repeated.alpha, rtol=1e-6)
    np.testing.assert_allclose(counted.floor, repeated.floor, rtol=1e-6)


def test_covariance_error_is_that_of_simulations():
    rng = np.random.default_rng(0)
    clean = np.log(DEPTHS**-1.5 + 0.005)
    fits = [
        fit_depth_exponent(np.exp(clean + 0.01 * rng.normal(size=6)), DEPTHS, floor=True, num_bootstrap=10)
        for _ in range(60)
    ]
    typical = np.median([fit.standard_errors["covariance"] for fit in fits])
    assert typical == pytest.approx(np.std([fit.alpha for fit in fits]), rel=0.35)


def test_what_cannot_be_told_apart_gets_no_number():
    # One depth above a flat rest: any alpha steep enough fits as well.
    fit = fit_depth_exponent([1.0, 0.1, 0.1, 0.1, 0.1, 0.1], [1, 64, 65, 66, 67, 68], floor=True)
    assert np.isnan(fit.alpha) and fit.low is None and fit.high is None
    assert fit.to_dict()["alpha"] is None
    assert any("not identified" in caveat for caveat in fit.caveats)
