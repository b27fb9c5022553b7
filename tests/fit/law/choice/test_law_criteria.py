"""Likelihoods of a law in closed form, by scipy and by quadrature."""

import numpy as np
import pytest
from scipy import stats

from toydepth.fit.law.choice.criteria import deviance
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law, Term

ONE = Law("one", (Term("x", 1.0),), 0.0)


def one_point(losses) -> Rows:
    return choose_rows({"x": np.ones(len(losses)), "loss": losses}, {"x": "x"}, "loss")


def test_deviance_of_a_constant_is_that_of_the_normal_law_by_scipy():
    y = np.random.default_rng(1).normal(2.0, 0.3, size=20)
    found = deviance(estimate_rows(one_point(np.exp(y)), ONE, Objective("log")))
    assert found == pytest.approx(-2 * stats.norm.logpdf(y, y.mean(), y.std()).sum(), rel=1e-9)
    linear = deviance(estimate_rows(one_point(y), ONE, Objective("linear")))
    assert linear == pytest.approx(found, rel=1e-9)  # the same numbers, now the losses themselves


def test_deviance_with_weights_is_that_of_rows_with_their_own_variance():
    y, w = np.array([1.0, 1.2, 0.7, 1.1]), np.array([0.5, 1.5, 0.8, 1.2])
    rows = choose_rows({"x": np.ones(4), "loss": np.exp(y), "w": w}, {"x": "x"}, "loss", weights="w")
    mean = np.average(y, weights=w)
    variance = np.mean(w * (y - mean) ** 2)
    expected = -2 * stats.norm.logpdf(y, mean, np.sqrt(variance / w)).sum()
    assert deviance(estimate_rows(rows, ONE, Objective("log"))) == pytest.approx(expected, rel=1e-9)


def test_deviance_of_student_is_scipys_best_with_the_location_and_scale():
    y = np.random.default_rng(2).standard_t(3, size=60)
    _, location, scale = stats.t.fit(y, fix_df=4)
    found = deviance(estimate_rows(one_point(np.exp(y)), ONE, Objective("student", degrees=4)))
    assert found == pytest.approx(-2 * stats.t.logpdf(y, 4, location, scale).sum(), rel=1e-7)


def test_deviance_of_huber_is_normal_for_a_large_delta_and_laplace_for_a_small_one():
    y = np.random.default_rng(3).normal(size=41)
    wide = deviance(estimate_rows(one_point(np.exp(y)), ONE, Objective("huber", delta=50.0)))
    assert wide == pytest.approx(-2 * stats.norm.logpdf(y, y.mean(), y.std()).sum(), rel=1e-6)
    spread = np.mean(np.abs(y - np.median(y)))
    narrow = deviance(estimate_rows(one_point(np.exp(y)), ONE, Objective("huber", delta=1e-6)))
    assert narrow == pytest.approx(-2 * stats.laplace.logpdf(y, np.median(y), spread).sum(), rel=1e-4)


def test_deviance_of_huber_by_quadrature_between_these_limits():
    y = np.random.default_rng(4).normal(size=30)
    estimate = estimate_rows(one_point(np.exp(y)), ONE, Objective("huber", delta=0.7))
    grid = np.linspace(-60, 60, 60_001)
    size = np.abs(grid)
    rho = np.where(size < 0.7, grid**2 / 2, 0.7 * (size - 0.35))
    rates = np.linspace(0.5, 4, 351)
    logs = [r * estimate.value + 30 * np.log(np.trapezoid(np.exp(-r * rho), grid)) for r in rates]
    assert deviance(estimate) == pytest.approx(2 * min(logs), abs=1e-3)
