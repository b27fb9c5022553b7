"""The draws: intervals against quadrature and profiles, groups, seeds; jax is left as it was."""

import importlib.util

import jax
import numpy as np
import pytest

from toydepth.bayes import sample_law

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("numpyro") is None, reason="numpyro is not installed: pip install 'toydepth[bayes]'"
    ),
    # Compiling NUTS is nearly all of the time.
    pytest.mark.usefixtures("quick_compilation"),
]


def test_a_linear_law_against_quadrature(one_term):
    fit = one_term(0.1)
    found = [sample_law(fit, num_draws=3000, seed=seed) for seed in range(4)]
    assert not any(one.verdict or one.reasons for one in found)
    # ln c and ln sigma on a grid, from the definition of the posterior.
    table = fit.rows.frame()
    residuals = np.log(table.loss) + np.log(table.x)
    log_c, log_sigma = np.linspace(0.2, 2.1, 1901), np.linspace(-6, 3, 901)
    sigma = np.exp(log_sigma)
    squares = ((residuals.to_numpy()[:, None] - log_c) ** 2).sum(axis=0)
    # In the model's own parameters: the term at the geometric mean of x, around the median loss.
    own = log_c - np.log(table.x).mean()
    density = -len(table) * log_sigma[:, None] - squares / (2 * sigma[:, None] ** 2)
    density -= (own - np.median(np.log(table.loss))) ** 2 / 18 + (log_sigma[:, None] - np.log(0.01)) ** 2 / 18
    density = np.exp(density - density.max())
    for values, marginal, draws in (
        (log_c, density.sum(axis=0), np.concatenate([one.draws[:, 0] for one in found])),
        (log_sigma, density.sum(axis=1), np.log(np.concatenate([one.sigma for one in found]))),
    ):
        below = (np.cumsum(marginal) - marginal / 2) / marginal.sum()
        width = np.interp(0.975, below, values) - np.interp(0.025, below, values)
        for level in (0.025, 0.25, 0.5, 0.75, 0.975):
            exact = np.interp(level, below, values)
            # Over seeds the ends of four runs together scatter by 0.006 of the width.
            assert np.quantile(draws, level) == pytest.approx(exact, abs=0.025 * width)


def test_where_the_rows_say_enough_the_ends_are_those_of_the_profile(well_known):
    assert well_known.verdict is None and not well_known.reasons
    assert max(well_known.r_hat.values()) < 1.01
    for name, (low, high) in well_known.fit.intervals["profile"].items():
        if name != "L0" and not name.startswith("alpha"):
            low, high = np.log([low, high])
        found = np.log(well_known.intervals[name]) if name.startswith("c_") else well_known.intervals[name]
        assert np.abs(np.subtract(found, (low, high))).max() < 0.15 * (high - low), name


def test_the_same_seed_gives_the_same_draws_and_jax_stays_as_it_was(
    well_known, make_table, quick, capfd: pytest.CaptureFixture[str]
):
    before = {name: value for name, value in jax.config.values.items()}
    fit = quick(make_table())  # whose minimum is that of well_known
    one, again, other = well_known, sample_law(fit), sample_law(fit, seed=4)
    assert np.array_equal(one.draws, again.draws) and np.array_equal(one.sigma, again.sigma)
    assert not np.array_equal(one.draws, other.draws)
    assert one.draws.shape == (4000, 5) and one.draws.dtype == one.sigma.dtype == np.float64
    # Draws of float32 would be multiples of about 1e-7.
    assert np.any(one.draws != one.draws.astype(np.float32))
    assert dict(jax.config.values) == before
    assert jax.numpy.zeros(1).dtype == np.float32
    assert capfd.readouterr() == ("", "")


def test_intercepts_of_runs_widen_what_differs_between_runs(make_table, quick):
    table = make_table(noise=0.002)
    shift = np.random.default_rng(5).normal(0, 0.01, 6)
    table["loss"] *= np.exp(shift[table.group])
    alone, grouped = (sample_law(quick(table, groups=g)) for g in (None, "group"))
    assert grouped.verdict is None and grouped.group_std is not None and alone.group_std is None
    low, _, high = grouped.quantiles["group_std"]
    assert low < 0.01 < high
    assert grouped.quantiles["sigma"][2] < alone.quantiles["sigma"][0]
    width = {p: np.subtract(*p.quantiles["alpha_m"][::2]) for p in (alone, grouped)}
    # Width is crossed with groups: within a group its exponent is seen without the groups' spread.
    assert abs(width[grouped]) < abs(width[alone])
    wide = {p: np.ptp(p.quantiles["alpha_D"]) for p in (alone, grouped)}
    assert wide[grouped] > 0.9 * wide[alone]
