"""Planned runs: points in words, their loss, and what comes of it."""

import pytest

from toydepth.errors import InputError
from toydepth.fit.law import fit_law
from toydepth.fit.law.choice.rivals import usual_rivals
from toydepth.fit.law.uses.planned import plan_runs, predict_runs

ALL = {"m": "m", "ell": "ell", "D": "D"}


@pytest.fixture(scope="module")
def fit(make_fixed_table):
    return fit_law(make_fixed_table, "decomposed", {"m": "width", "ell": "ell", "D": "D"}, intervals="covariance")


@pytest.fixture(scope="module")
def make_fixed_table():
    from benchmarks.law_coverage import CASES, simulate

    return simulate(CASES[1], 0).rename(columns={"m": "width"})


def test_points_by_symbol_or_column(fit):
    one = predict_runs(fit, "m=4096 ell=32 D=1e12; width=64, ell=2, D=1e9").table
    same = fit.predict({"m": [4096, 64], "ell": [32, 2], "D": [1e12, 1e9]})
    assert one["loss"].to_numpy() == pytest.approx(same["loss"].to_numpy())
    assert (one["run_low"] < one["low"]).all() and (one["run_high"] > one["high"]).all()
    truth = 40 / 4096 + 2 / 32**1.2 + 400 / 1e12**0.3 + 1.7
    assert one["low"][0] < truth < one["high"][0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "predict must be a point such as m=4096 D=1e12"),
        ("m=4096", "predict must be with ell, D"),
        ("m=x ell=2 D=1e9", "predict must be of <variable>=<number>, got m=x"),
        ("m=1 el=2 D=1e9", "Did you mean 'ell'?"),
        ("m=-1 ell=2 D=1e9", "m must be finite and greater than 0, got -1"),
    ],
)
def test_points_that_cannot_be_read(fit, text, words):
    with pytest.raises(InputError) as caught:
        predict_runs(fit, text)
    assert words in str(caught.value)


def test_how_far_outside_the_rows(fit):
    inside, outside = predict_runs(fit, "m=128 ell=4 D=1e9; m=8192 ell=4 D=1e9").table["distance"]
    assert inside == 1 and outside == pytest.approx(2)


def test_a_plan_in_words(fit):
    plan = plan_runs(fit, "alpha_ell", count=2)
    assert plan.report().count("\n") == 3
    assert [run["run"] for run in plan.to_dict()["runs"]] == [1, 2]


def test_rivals_hold_the_law_itself_and_each_formula_once(fit):
    rivals = usual_rivals(fit.law)
    assert rivals[0] is fit.law
    assert [len(rival.parameters) for rival in rivals] == [7, 4, 6]
    assert len(usual_rivals(fit.law.with_exponents({"alpha_m": 1.0}))) == 4
