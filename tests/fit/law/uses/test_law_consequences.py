"""All that follows from one fit, as text and as JSON."""

import json
import time

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.fit.law import fit_law
from toydepth.fit.law.uses.compute import best_allocation
from toydepth.fit.law.uses.consequences import consequences
from toydepth.fit.law.uses.shape import best_shape

COLUMNS = {"m": "m", "ell": "ell", "D": "D"}


@pytest.fixture
def fit(make_table):
    return fit_law(make_table(), "decomposed", COLUMNS)


def test_parts_are_those_of_their_own_functions(fit):
    found = consequences(fit, budgets=[1e18], confidence=0.8, seed=2)
    assert found.shape == best_shape(fit, confidence=0.8, seed=2)
    assert found.compute == best_allocation(fit, budgets=[1e18], confidence=0.8, seed=2)
    assert found.confidence == 0.8


def test_report_and_json_say_the_same(fit):
    found = consequences(fit)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["shape"]["at"][0]["ratio"]["value"] == found.shape.at[0].ratio.value
    assert [one["budget"] for one in told["compute"]["at"]] == [one.budget for one in found.compute.at]
    report = found.report()
    assert found.shape.at[0].ratio.text() in report and "80 %" not in report and "95 % intervals" in report
    assert "percentiles of draws" in report and max(map(len, report.splitlines())) <= 150


def test_more_confidence_is_a_wider_interval(fit):
    wide, narrow = (consequences(fit, confidence=c).shape.at[0].ratio for c in (0.95, 0.5))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_a_default_cost_that_does_not_follow_says_why(make_table):
    fit = fit_law(make_table(), "universal", {"m": "m", "D": "D"})
    found = consequences(fit)
    assert found.compute.reason == "the cost 6*N*D needs N, which does not follow from m, D"
    assert found.report().count("none:") == 2 and "percentiles" not in found.report()
    with pytest.raises(InputError, match="got N"):
        consequences(fit, cost="N*D")
    assert consequences(fit, cost=lambda m, D: m**2 * D).compute.at[0].optimum["m"].value > 0


def test_resamples_of_the_fit_are_the_draws(make_table):
    fit = fit_law(make_table(), "universal", COLUMNS, intervals="bootstrap", num_bootstrap=300)
    found = consequences(fit)
    assert found.draws == "300: the fit's bootstrap"
    ratios = np.exp(fit.draws[:, 0] - fit.draws[:, 1]) / 2
    low, high = np.quantile(ratios, [0.025, 0.975])
    q = found.shape.at[0].ratio
    assert (q.low, q.high) == pytest.approx((low, high), rel=0.01)


def test_options_out_of_range(fit):
    for options in ({"confidence": 95}, {"seed": -1}, {"budgets": [0]}, {"cost": "N**"}):
        with pytest.raises(InputError):
            consequences(fit, **options)


def test_it_does_not_keep_one_waiting(chinchilla):
    fit = fit_law(chinchilla, "decomposed", {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}, exclude_highest=40)
    started = time.process_time()
    consequences(fit)
    assert time.process_time() - started < 3  # 0.35 s where nothing else runs
