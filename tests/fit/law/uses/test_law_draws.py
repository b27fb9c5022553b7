"""Draws of a law: those of its intervals, also in a bent valley; and what has no number in some of them."""

import numpy as np
import pytest

from toydepth.fit.law import fit_law
from toydepth.fit.law.uses.draws import draw_laws, laws_of, normal_draws, summarise

COLUMNS = {"m": "m", "ell": "ell", "D": "D"}


@pytest.mark.parametrize(("share", "low", "high"), [(0.02, True, True), (0.05, True, False)])
def test_an_end_exists_only_where_the_draws_do(share, low, high):
    values = np.arange(1001.0)
    values[1 : int(1000 * share) + 1] = np.inf
    found = summarise(values, 0.95, "")
    assert (found.low is not None, found.high is not None) == (low, high)
    assert found.lost == pytest.approx(share)


def test_a_draw_with_no_number_counts_in_both_tails():
    values = np.arange(1001.0)
    values[1:31] = np.nan
    found = summarise(values, 0.95, "")
    assert (found.low, found.high, found.value) == (None, None, 0.0)
    values[1:31] = 500.0
    assert summarise(values, 0.95, "").low is not None
    values[0] = np.nan
    assert summarise(values, 0.95, "why").reason == "why" and summarise(values, 0.95, "why").value is None


def test_draws_are_those_of_the_covariance_intervals(make_table):
    """Few rows: normal draws would be 20 % too narrow. It also fails if draws were stretched twice."""
    table = make_table({"alpha_ell": 1.0}, noise=0.001, shape=(2, 2, 3))
    fit = fit_law(table, "universal", COLUMNS, intervals="covariance")
    laws = draw_laws(fit, 0, 40_000)
    assert "Student" in laws.origin and fit.estimate.interval_degrees == 8
    for k, name in enumerate(["c_m", "c_ell", "c_D"]):
        ends = np.exp(np.quantile(laws.log_c[1:, k], [0.025, 0.975]))
        expected = fit.intervals["covariance"][name]
        centre = fit.values[name]
        np.testing.assert_allclose(np.log(ends / centre), np.log(np.array(expected) / centre), rtol=0.05)


def test_bent_valleys_are_resampled(make_table):
    """With free exponents and a short range, normal draws leave the valley: three of four losses there are too high."""
    table = make_table(noise=0.01).query("m < 600 and D < 2e10")
    fit = fit_law(table, "decomposed", COLUMNS, intervals="covariance")
    point = np.array([np.median(values) for values in fit.rows.variables.values()])

    def share_above(laws):
        loss = laws.floor + sum(np.exp(laws.log_terms(k, np.full(len(laws.floor), x))) for k, x in enumerate(point))
        return np.mean(loss[1:] > loss[0])

    laws = draw_laws(fit, 0)
    assert "bootstrap" in laws.origin
    assert share_above(laws) == pytest.approx(0.5, abs=0.1)
    assert (
        share_above(laws_of(fit, np.concatenate([fit.estimate.natural[None], normal_draws(fit.estimate, 1000, 0)])))
        > 0.7
    )
