"""Planned runs: the formula against the information matrix, and against simulated refits."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

from toydepth.errors import InputError
from toydepth.fit.law import Objective, fit_law
from toydepth.fit.law.solve import Problem, solve
from toydepth.fit.law.uses.plan import jacobian_at, next_runs

COLUMNS = {"m": "m", "ell": "ell", "D": "D"}
TRUTH = {"alpha_ell": 1.0, "alpha_D": 1 / 3}


@pytest.fixture
def fit(make_table):
    table = make_table(TRUTH, noise=0.01, shape=(3, 3, 3))
    return fit_law(table, "universal", COLUMNS, intervals="covariance")


@pytest.fixture
def candidates():
    m, ell, data = (x.ravel() for x in np.meshgrid([64.0, 512.0, 4096.0], [2.0, 8.0, 64.0], [1e9, 1e12]))
    return pd.DataFrame({"m": m, "ell": ell, "D": data})


def _variances(fit, runs, gradient):
    """Before, and after all of the runs, with the information matrix put together afresh."""
    information = np.linalg.inv(fit.estimate.own_covariance)
    after = information + jacobian_at(fit, runs).T @ jacobian_at(fit, runs) / fit.estimate.noise_variance
    return [float(gradient @ np.linalg.inv(matrix) @ gradient) for matrix in (information, after)]


def test_widths_are_those_of_the_information_matrix(fit, candidates):
    table = next_runs(fit, "m/ell", candidates=candidates, count=4)
    gradient = np.array([1.0, -1.0, 0.0, 0.0])  # ln(m / ell) = ln c_m - ln c_ell - ln 2
    ratio = fit.values["c_m"] / (2 * fit.values["c_ell"])
    degrees = fit.estimate.interval_degrees
    for k in range(4):
        before, after = _variances(fit, table[["m", "ell", "D"]].iloc[: k + 1], gradient)
        assert table["half_width"].iloc[k] == pytest.approx(
            ratio * stdtrit(degrees + k + 1, 0.975) * np.sqrt(after), rel=1e-6
        )
    assert table["half_width_before"].iloc[0] == pytest.approx(ratio * stdtrit(degrees, 0.975) * np.sqrt(before))
    np.testing.assert_allclose(table["half_width_before"][1:], table["half_width"][:-1])
    np.testing.assert_allclose(table["ratio"], table["half_width"] / table["half_width_before"].iloc[0])
    np.testing.assert_allclose(table["cost"], 72 * table.m**2 * table.ell * table.D)
    assert len(table[["m", "ell", "D"]].drop_duplicates()) == 4


def test_first_run_is_the_best_of_all(fit, candidates):
    gradient = np.array([1.0, -1.0, 0.0, 0.0])
    chosen = next_runs(fit, "m/ell", candidates=candidates, count=1).iloc[0]
    after = [_variances(fit, candidates.iloc[[i]], gradient)[1] for i in range(len(candidates))]
    best = candidates.iloc[int(np.argmin(after))]
    assert all(chosen[name] == best[name] for name in COLUMNS)
    assert min(after) < 0.98 * np.median(after)


@pytest.mark.parametrize("law", ["universal", "decomposed"])
def test_simulated_refits_shrink_as_planned(make_table, candidates, law):
    """The true law, 600 tables with and without the planned run: standard deviations agree to 4 standard errors."""
    table = make_table(TRUTH, noise=0.004, shape=(3, 3, 3))
    fit = fit_law(table, law, COLUMNS, intervals="covariance")
    name = "c_ell" if law == "universal" else "alpha_ell"
    place = fit.law.parameters.index(name)
    plan = next_runs(fit, name, candidates=candidates, count=1)
    e = fit.estimate
    worst = candidates.iloc[[int(np.argmax([
        _variances(fit, candidates.iloc[[i]], e.problem.model.to_natural()[0][place])[1] for i in range(len(candidates))
    ]))]]  # fmt: skip
    every = pd.concat([table, plan, worst])
    model = e.problem.model.on({v: every[v].to_numpy(float) for v in fit.law.variables})
    truth, random = model.log_loss(e.theta), np.random.default_rng(1)
    matrix, shift = e.problem.model.to_natural()
    sets = [np.arange(27), np.arange(28), np.append(np.arange(27), 28)]
    found = np.empty((600, 3))
    for i in range(600):
        log_loss = truth + fit.residual_std * random.normal(size=29)
        for j, rows in enumerate(sets):
            problem = Problem(model.take(rows), e.problem.objective, log_loss[rows])
            found[i, j] = (matrix @ solve(problem, e.theta[None], np.ones(len(rows))).theta[0] + shift)[place]
    spread = found.std(axis=0)
    degrees = e.interval_degrees
    planned = plan["ratio"].iloc[0] * stdtrit(degrees, 0.975) / stdtrit(degrees + 1, 0.975)
    # Both spreads are of the same noise: the error of their ratio is at most that of one, 1 / sqrt(2 * 600).
    assert spread[1] / spread[0] == pytest.approx(planned, rel=4 / np.sqrt(1200))
    assert planned < 0.95 and spread[1] < spread[2]


def test_targets_are_in_their_own_units(fit):
    point = {"m": 8192, "ell": 80, "D": 1.4e12}
    told = fit.predict(point).iloc[0]
    plan = next_runs(fit, "L(m=8192, ell=80, D=1.4e12)", count=1)
    middle = np.sqrt(told["high"] / told["low"])
    assert plan["half_width_before"].iloc[0] == pytest.approx(told["loss"] * np.log(middle), rel=1e-6)
    one = fit.parameters["c_ell"]
    reach = stdtrit(fit.estimate.interval_degrees, 0.975)
    assert next_runs(fit, "c_ell", count=1)["half_width_before"].iloc[0] == pytest.approx(one.standard_error * reach)
    whole = next_runs(fit, lambda v: v["c_ell"], count=3)
    named = next_runs(fit, "c_ell", count=3)
    pd.testing.assert_frame_equal(whole, named, rtol=1e-6)


@pytest.mark.parametrize("objective", [Objective("log"), Objective("linear"), Objective("huber", delta=0.005),
                                       Objective("student")])  # fmt: skip
def test_noise_is_that_of_the_covariance(make_table, objective):
    fit = fit_law(make_table(TRUTH, noise=0.01), "universal", COLUMNS, objective=objective, intervals="covariance")
    e = fit.estimate
    jacobian = jacobian_at(fit, pd.DataFrame(fit.rows.variables))
    np.testing.assert_allclose(jacobian, e.jacobian, rtol=1e-10)
    inverse = np.linalg.inv(jacobian.T @ (e.weights[:, None] * jacobian))
    np.testing.assert_allclose(fit.estimate.noise_variance * inverse, e.own_covariance, rtol=1e-6, atol=1e-12)


def test_default_candidates_reach_an_octave_beyond(fit):
    table = next_runs(fit, "c_m", count=340)
    for name in COLUMNS:
        known = fit.rows.variables[name]
        assert table[name].min() == pytest.approx(max(known.min() / 2, 1), rel=0.01)
        assert table[name].max() == pytest.approx(2 * known.max(), rel=0.01)
    assert np.all(table["m"] == np.round(table["m"]))
    assert np.all(np.diff(table["half_width"]) <= 1e-12)


def test_offsets_and_columns(make_table):
    table = make_table(TRUTH, noise=0.01)
    table["layers"] = table.pop("ell") + 1
    fit = fit_law(table, "universal", {"m": "m", "ell": "layers", "D": "D"}, offsets={"ell": 1}, intervals="covariance")
    plan = next_runs(fit, "m/ell", candidates=table.head(9), count=2)
    assert set(plan["ell"]) <= set(table["layers"])
    assert next_runs(fit, "c_ell", count=300)["ell"].min() > 1
    same = next_runs(fit, "L(m=512, layers=9, D=1e10)", count=1)
    assert same["half_width"].iloc[0] == next_runs(fit, "L(m=512, ell=9, D=1e10)", count=1)["half_width"].iloc[0]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("alpha_m", "fixed"), ("alpha_k", "target must be one of"), ("m/D", "target must be one of"), (3, "target"),
        ("L(m=512)", "ell"), ("L(512)", "such as"), ("L(m=x, ell=2, D=3)", "such as"), ("L(m=1, m=2)", "such as"),
        (lambda v: 3.0, "the same for all"), (lambda v: np.nan, "none there"),
    ],
)  # fmt: skip
def test_targets_that_are_none(fit, target, message):
    with pytest.raises(InputError, match=message) as caught:
        next_runs(fit, target)
    assert "\n" not in str(caught.value)


def test_unidentified_targets_are_refused(make_table):
    table = make_table(TRUTH)
    table["ell"] = table.m / 32
    fit = fit_law(table, "universal", COLUMNS)
    for target in ("c_m", "m/ell", "L(m=512, ell=16, D=1e10)", lambda v: v["c_m"] / v["c_ell"]):
        with pytest.raises(InputError, match="move together"):
            next_runs(fit, target)
    assert len(next_runs(fit, "c_D", count=2)) == 2


def test_more_runs_than_candidates(fit, candidates):
    with pytest.raises(InputError, match="at most the number of candidates, 3"):
        next_runs(fit, "c_m", candidates=candidates.head(3), count=4)
    with pytest.raises(InputError, match="with ell"):
        next_runs(fit, "c_m", candidates=candidates[["m", "D"]])
