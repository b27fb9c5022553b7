"""Known answers of fits: closed forms, a certified problem, published tables, and what must not matter."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.fit.law.conftest import CHINCHILLA
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
        other = table.assign(m=table.m * scale, D=table.D * scale**2, w=np.full(len(table), scale))
        fit = fit_law(other, "decomposed", ALL, objective=objective, intervals="covariance", weights="w")
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


@pytest.mark.parametrize(
    ("excluded", "ties", "alpha", "error"),
    [(0, "below", 1.19, 0.60), (5, "below", 0.93, 0.22), (20, "below", 1.04, 0.21), (40, "below", 1.325, 0.29),
     (60, "below", 1.66, 0.35), (40, "rank", 1.451, None)],
)  # fmt: skip
def test_exclusions_of_the_chinchilla_table(chinchilla, excluded, ties, alpha, error):
    fit = fit_law(chinchilla, "decomposed", CHINCHILLA, exclude_highest=excluded, ties=ties, intervals="covariance")
    one = fit.parameters["alpha_ell"]
    assert one.estimate == pytest.approx(alpha, abs=0.006)
    if error:
        assert one.standard_error == pytest.approx(error, abs=0.006)


def test_the_exact_minimum_on_the_chinchilla_table(chinchilla):
    fit = fit_law(chinchilla, "decomposed", CHINCHILLA, exclude_highest=40, intervals="all")
    assert fit.estimate.num_rows == 203
    assert 100 * fit.estimate.value / 203 == pytest.approx(0.0030274, abs=1e-7)
    values = fit.parameters
    assert values["alpha_m"].estimate == pytest.approx(0.945, abs=0.001)
    assert values["alpha_m"].standard_error == pytest.approx(0.085, abs=0.001)
    assert values["alpha_ell"].estimate == pytest.approx(1.325, abs=0.001)
    assert values["alpha_ell"].standard_error == pytest.approx(0.287, abs=0.001)
    assert values["alpha_D"].estimate == pytest.approx(0.299, abs=0.001)
    assert values["L0"].estimate == pytest.approx(1.754, abs=0.001)
    assert fit.correlations.loc["alpha_m", "alpha_ell"] == pytest.approx(-0.86, abs=0.006)
    low, high = fit.intervals["bootstrap"]["alpha_ell"]
    assert low == pytest.approx(0.98, abs=0.03) and high == pytest.approx(1.79, abs=0.03)
    assert fit.estimate.share_agreeing > 0.9


def test_the_profile_on_the_chinchilla_table(chinchilla):
    from toydepth.fit.law.profile import profile_curve

    fit = fit_law(chinchilla, "decomposed", CHINCHILLA, exclude_highest=40, intervals="covariance")
    chi2 = profile_curve(fit.estimate, "alpha_ell", np.array([0.7, 1.0, 1.2, 2.0]))
    assert chi2 == pytest.approx([10.1, 2.7, 0.4, 10.1], abs=0.06)


def test_fixed_exponents_on_the_chinchilla_table(chinchilla):
    table = chinchilla.assign(num_tokens=chinchilla["num_tokens"] / 1e9)
    fit = fit_law(table, "universal", CHINCHILLA, exclude_highest=40)
    known = {
        "c_m": (388, 9, 0.5),
        "c_ell": (3.25, 0.20, 0.005),
        "c_D": (1.064, 0.009, 0.0005),
        "L0": (1.778, 0.005, 0.0005),
    }
    for name, (value, error, digit) in known.items():
        assert fit.parameters[name].estimate == pytest.approx(value, abs=digit), name
        assert fit.parameters[name].standard_error == pytest.approx(error, abs=digit), name


def test_farseer_tells_n_and_d_but_not_width_and_depth(public):
    table = public("farseer_nd.csv")
    table[["N", "D"]] /= 1e9
    known = {"N": "N", "D": "D"}
    fit = fit_law(
        table,
        "chinchilla",
        known,
        loss="loss_bpc",
        query="split == 'train'",
        fixed=dict.fromkeys(("alpha_N", "alpha_D"), 1 / 3),
    )
    assert fit.estimate.num_rows == 404
    for name, value, error in (("c_N", 0.0723, 0.0005), ("c_D", 0.2118, 0.0011), ("L0", 0.3877, 0.0008)):
        assert fit.parameters[name].estimate == pytest.approx(value, abs=5e-5)
        assert fit.parameters[name].standard_error == pytest.approx(error, abs=5e-5)
    shape = {"m": "width", "ell": "depth", "D": "D"}
    fit = fit_law(table, "universal", shape, loss="loss_bpc", query="split == 'train'")
    assert set(fit.unidentified) == {"c_m", "c_ell"}
    assert "width and depth move together" in fit.unidentified["c_m"]
    assert fit.to_dict()["parameters"]["c_m"]["value"] is None
    assert fit.to_dict(show_all=True)["parameters"]["c_m"]["value"] > 0


@pytest.mark.parametrize(
    ("model", "rows", "alpha", "error"),
    [("pythia-70m", 1, 0.3407, 0.028), ("pythia-410m", 2, 0.3670, 0.013), ("pythia-2.8b", 2, 0.3374, 0.013),
     ("pythia-12b", 2, 0.3074, 0.016)],
)  # fmt: skip
def test_training_time_of_the_pythia_models(public, model, rows, alpha, error):
    table = public("pythia_fineweb_loss_reconstructed.csv")
    table = table[table["model"].str.lower() == model].sort_values("step").iloc[rows:]
    fit = fit_law(table, "decomposed", {"tau": "tau_norm"}, loss="loss_reconstructed")
    assert fit.parameters["alpha_tau"].estimate == pytest.approx(alpha, abs=5e-4)
    assert fit.parameters["alpha_tau"].standard_error == pytest.approx(error, abs=1e-3)


def test_four_pythia_models_do_not_tell_depth(public):
    table = public("pythia_fineweb_loss_reconstructed.csv").sort_values(["model", "step"])
    table = table[table.groupby("model").cumcount() >= 2]
    fit = fit_law(table, "universal", {"tau": "tau_norm", "m": "width", "ell": "depth"}, loss="loss_reconstructed")
    assert "c_ell" in fit.unidentified
    assert fit.parameters["c_ell"].value is None


@pytest.mark.parametrize(
    ("variables", "delta", "least"),
    [("ND", 1e-3, 0.00198161), ("ND", 1e-4, 0.000207505), ("mlND", 1e-4, 0.000111404)],
)
def test_gemstones_minima_are_at_or_below_the_published_ones(public, variables, delta, least):
    table = public("gemstones_hot.jsonl")
    columns = {"N": "params_active_precise", "D": "tokens"}
    if variables == "mlND":
        columns = {"m": "width", "ell": "depth"} | columns
    huber = Objective("huber", delta)
    fit = fit_law(table, "decomposed", columns, loss="final_loss", objective=huber, intervals="covariance")
    assert fit.estimate.value <= least * (1 + 5e-6)
    assert fit.estimate.value == pytest.approx(least, rel=1e-3)


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


def test_pythia_models_jointly(public):
    """Exponents fixed, the first three points of each left out (step > 512): c_ell .14 +- .31 says nothing."""
    table = public("pythia_fineweb_loss_reconstructed.csv")
    columns = {"tau": "tau", "m": "width", "ell": "depth"}
    fit = fit_law(table, "universal", columns, loss="loss_reconstructed", query="step > 512")
    one = fit.parameters["c_ell"]
    assert (one.estimate, one.standard_error) == pytest.approx((0.14, 0.31), abs=0.005)
    assert one.value is None and not one.identified


def test_three_rows_for_seven_parameters(make_table):
    with pytest.raises(InputError, match="the table must be of 8 rows or more for 7 parameters, got 3"):
        fit_law(make_table().iloc[:3], "decomposed", ALL)
