"""Drift of a known alpha(t), its window and its interval."""

import json
import math

import numpy as np
import pytest

from toydepth.fit import fit_drift

STEPS = np.array([0, 100, 200, 400, 600, 800, 1000])


def alphas(slope):
    return 1 + slope * np.log(np.maximum(STEPS, 1))


def test_slope_of_a_straight_line():
    drift = fit_drift(STEPS, alphas(0.3))
    assert drift.slope == pytest.approx(0.3)
    assert (drift.low, drift.high) == pytest.approx((0.3, 0.3), abs=1e-9)
    assert drift.change_per_doubling == pytest.approx(0.3 * math.log(2))
    assert drift.verdict == "still moving"
    assert drift.window == (400, 1000) and drift.num_evaluations == 4
    assert json.loads(json.dumps(drift.to_dict()))["window"] == [400, 1000]


@pytest.mark.parametrize(("slope", "verdict"), [(0.1, "settled"), (-0.1, "settled"), (-0.2, "still moving")])
def test_verdict(slope, verdict):
    assert fit_drift(STEPS, alphas(slope)).verdict == verdict
    assert fit_drift(STEPS, alphas(slope), tolerance=1).verdict == "settled"


def test_window_grows_to_three_evaluations():
    drift = fit_drift([1, 10, 100, 1000], [0.0, 1, 2, 3])
    assert drift.window == (10, 1000) and drift.num_evaluations == 3


def test_order_does_not_matter():
    order = [3, 0, 6, 2, 5, 1, 4]
    assert fit_drift(STEPS[order], alphas(0.3)[order]) == fit_drift(STEPS, alphas(0.3))


def test_replicates_give_the_interval():
    table = np.stack([alphas(0.1), alphas(0.2), alphas(0.3)], axis=1)
    drift = fit_drift(STEPS, table)
    assert drift.slope == pytest.approx(0.2)
    assert drift.high - drift.slope == pytest.approx(4.30265 * 0.1 / math.sqrt(3), rel=1e-5)


def test_single_replicate_interval_is_that_of_least_squares():
    y = alphas(0.3) + np.array([0, 0, 0, 0.01, -0.01, -0.01, 0.01])
    drift = fit_drift(STEPS, y)
    x = np.log(STEPS[3:])
    (slope, _), covariance = np.polyfit(x, y[3:], 1, cov=True)
    assert drift.slope == pytest.approx(slope)
    assert drift.high - drift.slope == pytest.approx(4.30265 * np.sqrt(covariance[0, 0]), rel=1e-5)


def test_nan_rows_are_dropped_and_a_short_replicate_has_no_say():
    table = np.stack([alphas(0.3), alphas(9)], axis=1)
    table[:5, 1] = np.nan
    assert fit_drift(STEPS, table).slope == pytest.approx(0.3)
    gap = alphas(0.3)
    gap[4] = np.nan
    assert fit_drift(STEPS, gap).num_evaluations == 3


@pytest.mark.parametrize(
    ("steps", "alpha"), [([], []), ([0], [1.0]), ([0, 5, 10], [1.0, 1, 1]), ([1, 2, 3], [1.0, np.nan, 1])]
)
def test_too_few_evaluations_are_unknown(steps, alpha):
    drift = fit_drift(steps, alpha)
    assert drift.verdict == "unknown"
    assert drift.slope is None and drift.low is None and drift.change_per_doubling is None
