"""Known answers of fits: closed forms, a certified problem, published tables, and what must not matter."""

import json

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit.law import Law, Objective, Term, fit_law

ALL = {"m": "m", "ell": "ell", "D": "D"}


def test_a_certified_problem():
    """DanWood of NIST's StRD (y = b1 x^b2): certified values and standard errors."""
    x = [1.309, 1.471, 1.490, 1.565, 1.611, 1.680]
    y = [2.138, 3.421, 3.597, 4.340, 4.882, 5.660]
    law = Law("power", (Term("x"),), irreducible_loss=0.0)
    fit = fit_law(pd.DataFrame({"x": x, "loss": y}), law, objective="linear")
    c, alpha = fit.parameters["c_x"], fit.parameters["alpha_x"]
    assert c.estimate == pytest.approx(7.6886226176e-01, rel=1e-9)
    assert -alpha.estimate == pytest.approx(3.8604055871, rel=1e-9)
    assert c.standard_error == pytest.approx(1.8281973860e-02, rel=1e-8)
    assert alpha.standard_error == pytest.approx(5.1726610913e-02, rel=1e-8)
    assert fit.estimate.value == pytest.approx(4.3173084083e-03, rel=1e-9)
    assert fit.residual_std == pytest.approx(3.2853114039e-02, rel=1e-9)


def test_without_noise_the_law_comes_back(make_table):
    fit = fit_law(make_table(noise=0.0), "decomposed", ALL)
    known = {"c_m": 40, "c_ell": 2, "c_D": 400, "alpha_m": 1, "alpha_ell": 1.2, "alpha_D": 0.3, "L0": 1.7}
    assert fit.values == pytest.approx(known, rel=1e-6)
    assert fit.unidentified == {}


def test_shared_and_fixed_exponents(make_table):
    table = make_table({"alpha_ell": 1.0}, noise=0.0)
    fit = fit_law(table, "decomposed", ALL, fixed={"alpha_ell": "alpha_m", "alpha_D": 0.3, "L0": 1.7})
    assert fit.law.parameters == ("c_m", "c_ell", "c_D", "alpha_m")
    assert fit.values["alpha_ell"] == fit.values["alpha_m"] == pytest.approx(1, rel=1e-8)
    assert fit.parameters["alpha_ell"].shared_with == "alpha_m"
    assert fit.parameters["alpha_D"].fixed and fit.parameters["L0"].fixed


def test_an_offset_is_taken_off_the_depth(make_table):
    table = make_table(noise=0.0)
    table["ell"] += 1
    fit = fit_law(table, "decomposed", ALL, offsets={"ell": 1})
    assert fit.values["alpha_ell"] == pytest.approx(1.2, rel=1e-6)
    assert fit.predict(table.iloc[:3])["loss"].to_numpy() == pytest.approx(table["loss"][:3].to_numpy(), rel=1e-8)


@pytest.mark.parametrize("objective", ["log", "linear", "student", Objective("huber", 1e-2)])
def test_units_and_scales_do_not_matter(make_table, objective):
    table = make_table()
    plain = fit_law(table, "decomposed", ALL, objective=objective, intervals="covariance")
    exponents = {name: plain.values[name] for name in plain.law.free_exponents}
    for scale in (1e-6, 1e6):
        other = table.assign(m=table.m * scale, D=table.D * scale**2)
        fit = fit_law(other, "decomposed", ALL, objective=objective, intervals="covariance")
        assert {name: fit.values[name] for name in exponents} == pytest.approx(exponents, rel=1e-6)
        assert fit.values["c_m"] == pytest.approx(plain.values["c_m"] * scale ** exponents["alpha_m"], rel=1e-5)
        for name in exponents:
            error = plain.parameters[name].standard_error
            assert fit.parameters[name].standard_error == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("objective", [Objective("log"), Objective("huber", 1e-3), Objective("student")])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_weights_of_any_size_give_the_same_minimum(make_table, objective, scale):
    """The objective times a number, by weights that nobody has normalised."""
    from toydepth.fit.law.estimate import find_minimum

    problem = fit_law(make_table(), "decomposed", ALL, objective=objective, intervals="covariance").estimate.problem
    one = find_minimum(problem, np.ones(180))
    other = find_minimum(problem, np.full(180, scale))
    assert other.theta == pytest.approx(one.theta, rel=1e-6)
    assert other.share_agreeing == pytest.approx(one.share_agreeing, abs=0.05)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_the_scale_of_the_objective_does_not_matter(make_table, scale):
    """Of squares of L the objective grows with the square of the losses' unit."""
    table = make_table()
    plain = fit_law(table, "decomposed", ALL, objective="linear", intervals="covariance")
    fit = fit_law(table.assign(loss=table.loss * scale), "decomposed", ALL, objective="linear", intervals="covariance")
    assert fit.values["alpha_ell"] == pytest.approx(plain.values["alpha_ell"], rel=1e-7)
    assert fit.values["L0"] == pytest.approx(plain.values["L0"] * scale, rel=1e-7)
    assert fit.estimate.value == pytest.approx(plain.estimate.value * scale**2, rel=1e-9)


def test_neither_the_order_of_rows_nor_weights_that_repeat_rows_matter(make_table):
    table = make_table()
    plain = fit_law(table, "decomposed", ALL, intervals="covariance")
    mixed = fit_law(table.sample(frac=1, random_state=1), "decomposed", ALL, intervals="covariance")
    assert mixed.values == pytest.approx(plain.values, rel=1e-6)
    twice = pd.concat([table, table.iloc[:40]])
    weighted = table.assign(w=np.where(np.arange(len(table)) < 40, 2.0, 1.0))
    one = fit_law(twice, "decomposed", ALL, intervals="covariance")
    other = fit_law(weighted, "decomposed", ALL, weights="w", intervals="covariance")
    assert one.values == pytest.approx(other.values, rel=1e-6)


def test_the_jacobian_is_that_of_finite_differences(make_table):
    fit = fit_law(make_table(), "decomposed", ALL, fixed={"alpha_ell": "alpha_m"}, intervals="covariance")
    model, theta = fit.estimate.problem.model, fit.estimate.theta
    _, jacobian = model.jacobian(theta)
    for i in range(theta.size):
        step = np.zeros(theta.size)
        step[i] = 1e-6
        numeric = (model.log_loss(theta + step) - model.log_loss(theta - step)) / 2e-6
        assert jacobian[i] == pytest.approx(numeric, abs=1e-8)


@pytest.mark.parametrize("objective", [Objective("huber", 0.3), Objective("student", degrees=3)])
def test_psi_is_the_derivative_of_rho_and_kappa_bounds_it(objective):
    residuals = np.linspace(-1, 1, 41)
    weights = np.ones(41)
    psi, kappa = objective.derivatives(residuals, weights)
    numeric = np.empty(41)
    for i in range(41):
        step = np.zeros(41)
        step[i] = 1e-6
        numeric[i] = (objective.rho(residuals + step, weights) - objective.rho(residuals - step, weights)) / 2e-6
    assert psi == pytest.approx(numeric, abs=1e-6)
    assert (kappa > 0).all()


def test_student_finds_the_most_likely_scale():
    residuals = 0.3 * np.random.default_rng(0).standard_t(4, size=400)
    objective = Objective("student")
    scale = float(objective.scale(residuals, np.ones(400)))

    def value(s):
        return np.sum(np.log(s) + 2.5 * np.log1p((residuals / s) ** 2 / 4))

    around = [value(scale * f) for f in (0.99, 1.0, 1.01)]
    assert around[1] < min(around[0], around[2])
    assert objective.rho(residuals, np.ones(400)) == pytest.approx(around[1])


def test_json_and_report_hold_what_was_found(make_table):
    fit = fit_law(make_table(), "decomposed", ALL, exclude_highest=5)
    told = json.loads(fit.to_json())
    assert set(told["parameters"]) == {"c_m", "c_ell", "c_D", "alpha_m", "alpha_ell", "alpha_D", "L0"}
    one = told["parameters"]["alpha_ell"]
    assert one["low"] < one["value"] < one["high"] and one["identified"] and one["space"] == "plain"
    assert told["rows_used"] + sum(left["count"] for left in told["left_out"]) == told["rows_total"] == 180
    text = fit.report()
    assert "alpha_ell" in text and "left out: 5 rows: among the 5 highest losses" in text


def test_predictions_hold_the_truth(make_table):
    """At 95 %: the law's value, and a new run's loss, over 200 simulated tables."""
    point = {"m": 2000.0, "ell": 48.0, "D": 3e11}
    truth = 40 / 2000 + 2 / 48**1.2 + 400 / 3e11**0.3 + 1.7
    generator = np.random.default_rng(0)
    law, run = 0, 0
    for seed in range(200):
        fit = fit_law(make_table(seed=seed, shape=(4, 4, 4)), "decomposed", ALL, intervals="covariance", num_starts=4)
        told = fit.predict(point).iloc[0]
        law += told["low"] <= truth <= told["high"]
        told = fit.predict(point, new_run=True).iloc[0]
        run += told["low"] <= truth * np.exp(0.005 * generator.normal()) <= told["high"]
    assert 184 <= law <= 199 and 184 <= run <= 199


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"law": "decomposd"}, "law must be one of decomposed, universal, chinchilla, got decomposd."),
        ({"law": "chinchilla"}, "law chinchilla must be of N and D"),
        ({"fixed": {"alpha_x": 1}}, "fix must be one of alpha_m, alpha_ell, alpha_D, L0, got alpha_x"),
        ({"fixed": {"alpha_m": "alpha_k"}}, "alpha_m must be shared with a free exponent, got alpha_k"),
        ({"fixed": {"alpha_m": 0.0}}, "alpha_m must be other than 0"),
        ({"fixed": {"L0": -1}}, "L0 must be a finite number, 0 or more, got -1"),
        ({"objective": "lgo"}, "objective must be one of log, linear, huber, student, got lgo. Did you mean 'log'?"),
        ({"intervals": "boot"}, "intervals must be one of auto, all, covariance, profile, bootstrap, got boot"),
        ({"confidence": 95}, "confidence must be a number between 0 and 1, got 95"),
        ({"num_starts": 1}, "num_starts must be an integer, 2 or more, got 1"),
        ({"seed": -1}, "seed must be an integer, 0 or more, got -1"),
        ({"offsets": {"ell": "a"}}, "offset"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used(make_table, change, words):
    with pytest.raises(InputError) as caught:
        fit_law(make_table(), **({"law": "decomposed", "columns": ALL} | change))
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("objective", ["log", "linear", "huber", "student"])
def test_equal_losses(make_table, objective):
    with pytest.raises(InputError, match=r"the losses must be of more than one value, got 2\.5 in every row"):
        fit_law(make_table().assign(loss=2.5), "decomposed", ALL, objective=objective)


def test_student_has_no_answer_without_noise(make_table):
    with pytest.raises(InputError, match="objective must be other than student for losses without noise"):
        fit_law(make_table(noise=0.0), "decomposed", ALL, objective="student")


def test_fewer_groups_than_an_interval_needs(make_table):
    table = make_table().assign(run=np.arange(180) % 7)
    with pytest.raises(InputError, match="the number of groups must be 8 or more for 7 parameters, got 7"):
        fit_law(table, "decomposed", ALL, groups="run")


def test_three_rows_for_seven_parameters(make_table):
    with pytest.raises(InputError, match="the table must be of 8 rows or more for 7 parameters, got 3"):
        fit_law(make_table().iloc[:3], "decomposed", ALL)
