"""Known exponents, invariances, and what is left out of a depth fit."""

import json
import time

import numpy as np
import pytest

from toydepth.fit import fit_depth_exponent

DEPTHS = np.array([6, 12, 16, 24, 32, 48])


def noisy(num_replicates=3, alpha=1.3, scale=0.05, seed=0):
    rng = np.random.default_rng(seed)
    c = np.arange(1.0, num_replicates + 1)[:, None]
    return c * DEPTHS**-alpha * np.exp(scale * rng.normal(size=(num_replicates, len(DEPTHS))))


def test_exact_law_is_recovered():
    fit = fit_depth_exponent(3 * DEPTHS**-1.7, DEPTHS)
    assert fit.alpha == pytest.approx(1.7, abs=1e-12)
    assert fit.c == pytest.approx(3)
    assert fit.irreducible_loss is None
    assert fit.interval_source == "covariance"
    assert (fit.low, fit.high) == pytest.approx((1.7, 1.7), abs=1e-10)
    assert fit.intervals["replicates"] is None and fit.standard_errors["replicates"] is None
    assert fit.depths == tuple(DEPTHS) and fit.window == (6, 48)
    np.testing.assert_allclose(fit.predict([[10], [100]]), [[3 * 10**-1.7], [3 * 100**-1.7]])


def test_offset():
    fit = fit_depth_exponent(2 * (DEPTHS - 2.0) ** -1.1, DEPTHS, offset=2)
    assert fit.alpha == pytest.approx(1.1) and fit.c == pytest.approx(2)
    np.testing.assert_allclose(fit.predict(DEPTHS), 2 * (DEPTHS - 2.0) ** -1.1)
    np.testing.assert_allclose(fit.local_slopes["slope"], 1.1)


def test_against_plain_numpy_with_unequal_replicates():
    losses = noisy()
    losses[0, 1] = losses[2, 5] = np.nan
    fit = fit_depth_exponent(losses, DEPTHS)
    rows, target = [], []
    for r, d in np.argwhere(~np.isnan(losses)):
        rows.append([-np.log(DEPTHS[d]), *np.eye(3)[r]])
        target.append(np.log(losses[r, d]))
    design = np.array(rows)
    best, residual, *_ = np.linalg.lstsq(design, np.array(target), rcond=None)
    degrees = len(target) - 4
    covariance = np.linalg.inv(design.T @ design) * residual[0] / degrees
    assert fit.alpha == pytest.approx(best[0])
    assert fit.c == pytest.approx(np.exp(best[1:].mean()))
    assert fit.standard_errors["covariance"] == pytest.approx(np.sqrt(covariance[0, 0]))
    assert fit.residual_std == pytest.approx(np.sqrt(residual[0] / degrees))


def test_replicates_interval_is_the_t_interval_of_the_replicates():
    fit = fit_depth_exponent(noisy(5, scale=0.2), DEPTHS, num_bootstrap=200_000)
    alone = [fit_depth_exponent(row, DEPTHS).alpha for row in noisy(5, scale=0.2)]
    np.testing.assert_allclose(fit.alpha_by_replicate, alone)
    assert fit.alpha == pytest.approx(np.mean(alone))
    assert fit.interval_source == "replicates" and (fit.low, fit.high) == fit.intervals["replicates"]
    reach = 2.7764451 * np.std(alone, ddof=1) / np.sqrt(5)  # Student t, 4 degrees of freedom
    assert fit.high - fit.alpha == pytest.approx(reach, rel=0.01)


def test_identical_replicates_have_no_width():
    fit = fit_depth_exponent(np.tile(noisy(1), (3, 1)), DEPTHS)
    assert (fit.low, fit.high) == pytest.approx((fit.alpha, fit.alpha), abs=1e-12)


@pytest.mark.parametrize("floor", [False, True])
def test_unit_of_the_loss_changes_c_only(floor):
    losses = noisy() + (0.02 if floor else 0)
    one, other = (fit_depth_exponent(losses * unit, DEPTHS, floor=floor) for unit in (1, 1e-6))
    for name in ("alpha", "low", "high", "residual_std"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-7), name
    assert other.c == pytest.approx(1e-6 * one.c, rel=1e-7)
    if floor:
        assert other.irreducible_loss == pytest.approx(1e-6 * one.irreducible_loss, rel=1e-7)
    np.testing.assert_allclose(other.alpha_by_replicate, one.alpha_by_replicate, rtol=1e-6)


@pytest.mark.parametrize("floor", [False, True])
def test_order_of_depths_and_replicates_does_not_matter(floor):
    losses = noisy() + (0.02 if floor else 0)
    one = fit_depth_exponent(losses, DEPTHS, floor=floor, num_bootstrap=20_000)
    shuffled = np.random.default_rng(1).permutation(6)
    other = fit_depth_exponent(losses[:, shuffled], DEPTHS[shuffled], floor=floor, num_bootstrap=20_000)
    assert (other.alpha, other.low, other.depths) == (one.alpha, one.low, one.depths)
    turned = fit_depth_exponent(losses[::-1], DEPTHS, floor=floor, num_bootstrap=20_000)
    assert turned.alpha == pytest.approx(one.alpha, rel=1e-7)
    assert turned.low == pytest.approx(one.low, rel=0.02)  # the draws fall on other replicates
    np.testing.assert_allclose(turned.alpha_by_replicate, one.alpha_by_replicate[::-1], rtol=1e-6)


def test_seed_repeats_and_varies_the_bootstrap():
    lows = [fit_depth_exponent(noisy(), DEPTHS, num_bootstrap=50, seed=seed).low for seed in (1, 1, 2)]
    assert lows[0] == lows[1] != lows[2]


def test_left_out_points_carry_their_reason():
    depths = [0, 3, 6, 12, 24, 48, 96]
    losses = np.array([[9, 1, 0.5, 0.25, 0.125, np.nan, 1e-9], [9, 2, 1, 0.5, 0.25, 0.125, 0.0]])
    fit = fit_depth_exponent(losses, depths, noise_floor=1e-9, window=(4, 100))
    reasons = [(p.replicate, p.depth, p.reason) for p in fit.left_out]
    assert reasons == [
        (0, 0, "depth 0 has no power law"),
        (0, 3, "outside the window"),
        (0, 48, "missing or diverged"),
        (0, 96, "within 10x of the noise floor"),
        (1, 0, "depth 0 has no power law"),
        (1, 3, "outside the window"),
        (1, 96, "within 10x of the noise floor"),
    ]
    assert fit.depths == (6, 12, 24, 48) and fit.window == (6, 48)
    assert fit.alpha == pytest.approx(1)
    assert any(c.startswith("7 points left out: 2 depth 0 has no power law, 2 outside the window") for c in fit.caveats)
    assert fit.left_out[2].to_dict() == {"replicate": 0, "depth": 48, "loss": None, "reason": "missing or diverged"}


def test_noise_floor_broadcasts_and_may_be_unknown():
    losses = np.array([[1, 0.5, 0.25, 0.125]] * 2)
    depths = [3, 6, 12, 24]
    assert len(fit_depth_exponent(losses, depths, noise_floor=[0, 0, 0, 0.1]).left_out) == 2
    assert len(fit_depth_exponent(losses, depths, noise_floor=[[0], [0.0125]]).left_out) == 1
    assert not fit_depth_exponent(losses, depths, noise_floor=np.nan).left_out
    assert not fit_depth_exponent(losses, depths, noise_floor=0.1, noise_factor=1).left_out


def test_replicate_with_too_few_depths_is_left_out():
    losses = noisy()
    losses[1, 2:] = np.nan
    fit = fit_depth_exponent(losses, DEPTHS)
    assert fit.replicates == (0, 2) and fit.num_replicates == 2
    assert fit.left_out[0].reason == "replicate has fewer than 3 depths left"
    assert fit.alpha == pytest.approx(fit_depth_exponent(losses[[0, 2]], DEPTHS).alpha)


def test_local_slopes():
    losses = np.array([[1, 0.5, 0.125, 1 / 64], [1, 0.25, 0.0625, np.nan]])
    table = fit_depth_exponent(losses, [1, 2, 4, 8]).local_slopes
    assert list(table.columns) == ["depth_low", "depth_high", "depth_middle", "slope", "low", "high"]
    np.testing.assert_allclose(table["slope"], [1.5, 2, 3])
    np.testing.assert_allclose(table["depth_middle"], np.sqrt([2, 8, 32]))
    np.testing.assert_allclose(table["low"], [1.5 - 12.706205 / 2, 2, np.nan])  # t, 1 degree; s / sqrt(2) = 0.5


def test_caveats():
    assert fit_depth_exponent(noisy(), DEPTHS).caveats == ()
    assert "single replicate" in fit_depth_exponent(noisy(1), DEPTHS).caveats[0]
    x = np.log(DEPTHS)
    (caveat,) = fit_depth_exponent(noisy() * np.exp(-0.3 * (x - x[0]) ** 2), DEPTHS).caveats
    assert caveat.startswith("local slope changes from 1.")
    assert caveat.endswith("one exponent does not describe this window")


def test_curvature_is_seldom_seen_where_there_is_none():
    seen = sum(len(fit_depth_exponent(noisy(seed=seed), DEPTHS, num_bootstrap=10).caveats) for seed in range(200))
    assert 2 <= seen <= 20  # 10 expected at 95 %


def test_to_dict_is_json_without_nan():
    losses = noisy()
    losses[0, 3] = np.nan
    for floor in (False, True):
        text = json.dumps(fit_depth_exponent(losses, DEPTHS, floor=floor).to_dict(), allow_nan=False)
        assert json.loads(text)["depths"] == DEPTHS.tolist()
    assert json.loads(text)["left_out"][0]["loss"] is None


def test_a_call_is_fast():
    losses = noisy()
    fit_depth_exponent(losses, DEPTHS)
    times = []
    for _ in range(30):
        start = time.perf_counter()
        fit_depth_exponent(losses, DEPTHS)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.005


@pytest.mark.parametrize(
    "wrap",
    [
        lambda losses: losses,
        lambda losses: list(losses),
        lambda losses: losses.astype(object),
        lambda losses: [[np.ma.masked if loss is np.ma.masked else loss for loss in row] for row in losses],
        lambda losses: losses.filled(np.nan),
        lambda losses: [[None if np.isnan(loss) else loss for loss in row] for row in losses.filled(np.nan)],
    ],
)
def test_masked_entries_are_missing(wrap):
    depths = [3, 6, 12, 24]
    losses = np.ma.array([[1 / 3, 99.0, 1 / 12, 1 / 24], [1 / 3, 1 / 6, 1 / 12, 1 / 24]])
    losses[0, 1] = np.ma.masked
    fit = fit_depth_exponent(wrap(losses), depths)
    assert fit.alpha == pytest.approx(1, abs=1e-12)
    (out,) = fit.left_out
    assert (out.replicate, out.depth, out.reason) == (0, 6, "missing or diverged")
