"""Rank correlations of series with known answers: independent, associated, confounded, only trending."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import spearmanr

from toydepth.errors import InputError
from toydepth.transport import associate
from toydepth.transport.association import holm
from toydepth.transport.ranks import block_length, draw_blocks, rank_correlation


def ar(generator, phi, steps, num=1):
    """Series of autocorrelation phi, variance 1."""
    noise = generator.normal(size=(num, steps + 200)) * np.sqrt(1 - phi**2)
    return lfilter([1], [1, -phi], noise, axis=1)[:, 200:]


def test_rank_correlation_is_scipys():
    generator = np.random.default_rng(0)
    x, y = generator.integers(0, 9, size=(2, 50))  # with ties
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, rel=1e-12)
    many = generator.normal(size=(7, 2, 30))
    found = rank_correlation(many[:, 0], many[:, 1])
    assert found == pytest.approx([spearmanr(*pair).statistic for pair in many], rel=1e-10)


def test_partial_rank_correlation_by_the_textbook():
    """One control: (r_xy - r_xc r_yc) / sqrt((1 - r_xc^2) (1 - r_yc^2)); two: by residuals of ranks."""
    x, y, c, d = np.random.default_rng(1).normal(size=(4, 40))
    x, y = x + c, y + c - d
    xy, xc, yc = (spearmanr(*pair).statistic for pair in ((x, y), (x, c), (y, c)))
    expected = (xy - xc * yc) / np.sqrt((1 - xc**2) * (1 - yc**2))
    assert rank_correlation(x, y, c[None]) == pytest.approx(expected, rel=1e-10)
    inverse = np.linalg.inv(spearmanr(np.stack([x, y, c, d], axis=1)).statistic)
    expected = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
    assert rank_correlation(x, y, np.stack([c, d])) == pytest.approx(expected, rel=1e-10)


def test_controls_that_add_nothing():
    x, y, c = np.random.default_rng(2).normal(size=(3, 40))
    once = rank_correlation(x, y, c[None])
    assert rank_correlation(x, y, np.stack([c, c, np.exp(c), np.ones(40)])) == pytest.approx(once, rel=1e-9)
    assert rank_correlation(x, y, np.ones((1, 40))) == pytest.approx(rank_correlation(x, y), rel=1e-12)


def test_blocks_keep_order_and_are_fair():
    places = draw_blocks(50, 7, 4000, np.random.default_rng(0))
    assert places.shape == (4000, 50) and places.min() == 0 and places.max() == 49
    assert (np.diff(places[:, :7], axis=1) == 1).all() and (np.diff(places[:, 42:49], axis=1) == 1).all()
    starts = np.bincount(places[:, 0], minlength=44)
    assert starts == pytest.approx(4000 / 44, abs=5 * np.sqrt(4000 / 44)) and len(starts) == 44


def test_slow_series_get_long_blocks():
    generator = np.random.default_rng(3)
    fast, slow = ar(generator, 0.0, 200, 2), ar(generator, 0.95, 200, 2)
    assert block_length(*fast) == 6 and block_length(fast[0], slow[0]) == 6, "one fast series is enough"
    assert 15 < block_length(*slow) <= 50


@pytest.mark.parametrize(("phi", "least"), [(0.0, 0.91), (0.6, 0.9), (0.9, 0.84)])
@pytest.mark.parametrize("common", [0.0, 0.7])
def test_intervals_hold_the_truth(phi, least, common):
    """Gaussian series of correlation r have a rank correlation of 6 / pi asin(r / 2), whatever their memory."""
    generator, hits = np.random.default_rng(4), []
    truth = 6 / np.pi * np.arcsin(common / 2)
    for _ in range(80):
        x, own = ar(generator, phi, 100, 2)
        found = associate({"x": x}, common * x + np.sqrt(1 - common**2) * own, num_bootstrap=200)[0]
        hits.append(found.raw.interval[0] <= truth <= found.raw.interval[1])
    assert least <= np.mean(hits)


def test_confounded_by_the_schedule():
    """Both follow the learning rate, and nothing else: raw yes, partial no. A tie of their own stays."""
    generator = np.random.default_rng(5)
    hits = {"raw": 0, "partial": 0, "kept": 0}
    for _ in range(40):
        rate = ar(generator, 0.8, 80)[0]
        noise = generator.normal(size=(2, 80))
        loss = rate + 0.6 * noise[0]
        channels = {"confounded": rate + 0.6 * noise[1], "tied": rate + 0.6 * noise[0] + 0.4 * noise[1]}
        confounded, tied = associate(channels, loss, {"learning_rate": rate}, num_bootstrap=200)
        hits["raw"] += confounded.raw.excludes_zero
        hits["partial"] += confounded.partial.excludes_zero
        hits["kept"] += tied.partial.excludes_zero
    assert hits["raw"] == 40 and hits["partial"] <= 5 and hits["kept"] >= 38


def test_two_trends_are_flagged_and_a_tie_is_not():
    generator = np.random.default_rng(6)
    step = np.arange(80)
    flagged = spared = 0
    for _ in range(30):
        noise = generator.normal(size=(3, 80))
        loss = 5 * np.exp(-step / 40) + 0.2 * noise[0]
        trending = np.sqrt(step) + 0.5 * noise[1]
        tied = trending - 2 * 0.5 * noise[0]
        one, other = associate({"trending": trending, "tied": tied}, loss, num_bootstrap=200)
        assert one.raw.excludes_zero and other.raw.excludes_zero
        flagged += one.is_trend_driven
        spared += not other.is_trend_driven
    assert flagged >= 29 and spared >= 29


def test_words_of_the_flag():
    step = np.arange(40.0)
    noise = np.random.default_rng(7).normal(size=(2, 40))
    found = associate({"v": step + noise[0]}, step + noise[1])[0]
    assert found.trend == "given step and in differences"
    perfect = associate({"v": step}, -(step**3))[0]
    assert perfect.raw.rho == pytest.approx(-1) and perfect.raw.interval is None
    assert perfect.raw.problem == "resamples do not vary" and perfect.given_step.rho is None
    assert perfect.is_trend_driven, "perfect, and no more than two trends"
    assert not associate({"v": noise[0]}, noise[1])[0].is_trend_driven


def test_undefined_ones_are_named():
    step, noise = np.arange(40.0), np.random.default_rng(8).normal(size=40)
    constant, gone, short = associate(
        {"constant": np.ones(40), "gone": step**2, "short": np.where(step < 30, np.nan, noise)},
        noise,
        {"learning_rate": -step},
        num_bootstrap=100,
    )
    assert constant.raw.rho is None and constant.raw.problem == "a constant series"
    assert gone.raw.rho is not None and gone.partial.rho is None
    assert gone.partial.problem == "nothing is left of a series"
    assert short.raw.problem == "fewer than 12 steps" and (short.num_steps, short.num_left_out) == (10, 30)


def test_missing_steps_are_left_out_and_counted():
    x, y = np.random.default_rng(9).normal(size=(2, 50))
    x[[3, 20]] = np.nan
    found = associate({"x": x}, y)[0]
    known = np.isfinite(x)
    assert found.raw.rho == pytest.approx(spearmanr(x[known], y[known]).statistic)
    assert (found.num_steps, found.num_left_out) == (48, 2)


def test_many_channels_are_corrected():
    assert holm([0.01, 0.02, 0.03, 0.5]) == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == []
    generator = np.random.default_rng(10)
    wrong = 0
    for _ in range(60):
        series = ar(generator, 0.5, 60, 6)
        found = associate({str(i): x for i, x in enumerate(series[1:])}, series[0], num_bootstrap=150)
        assert all(one.raw.p_holm >= one.raw.p_value for one in found)
        wrong += any(one.raw.p_holm < 0.05 for one in found)
    assert wrong <= 8, "of 60 families without any association"


def test_units_play_no_part():
    x, y, c = np.random.default_rng(11).normal(size=(3, 40))
    once = associate({"x": x}, y, {"c": c}, num_bootstrap=100)[0]
    again = associate({"x": np.exp(x)}, 3 * y**3, {"c": 5 + c}, num_bootstrap=100)[0]
    assert (again.raw, again.partial, again.given_step) == (once.raw, once.partial, once.given_step)
    assert associate({"x": 4 * x}, y / 2, num_bootstrap=100)[0].differences == once.differences


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (({}, np.ones(20)), {}, "channels must be one or more, got none"),
        (({"v": np.ones(19)}, np.ones(20)), {}, r"channel v must be \(20,\), as the curve is, got \(19,\)"),
        (({"v": np.ones(20)}, np.ones(20), {"lr": np.ones(2)}), {}, r"control lr must be \(20,\)"),
        (({"v": np.ones(11)}, np.ones(11)), {}, "curve must have 12 steps or more, got 11"),
        (({"v": np.ones(20)}, np.ones(20)), {"block": 11}, "block must be 1 ... half of the 20 steps, got 11"),
        (
            ({"v": np.ones(20)}, np.ones(20)),
            {"num_bootstrap": 10},
            "num_bootstrap must be an integer, 100 or more",
        ),
        (({"v": np.ones(20)}, np.ones(20)), {"confidence": 2}, "confidence must be between 0 and 1, got 2"),
    ],
)
def test_what_cannot_be_used(arguments, options, message):
    with pytest.raises(InputError, match=message):
        associate(*arguments, **options)
