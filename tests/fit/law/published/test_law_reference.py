"""Published procedures: what they printed, on the table they were made for; and that nothing of it is typed in."""

import json
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit.law.published.adam import adam
from toydepth.fit.law.published.chinchilla import GRID, ChinchillaProblem, repeat_chinchilla
from toydepth.fit.law.published.depth import PUBLISHED, START, DepthProblem, repeat_depth
from toydepth.fit.law.published.reference import PROCEDURES, run_reference
from toydepth.fit.law.table.choose import choose_rows

DEPTH = {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}


@pytest.fixture(scope="module")
def depth(chinchilla):
    return run_reference("depth-paper", chinchilla)


@pytest.fixture(scope="module")
def epoch(chinchilla):
    return run_reference("chinchilla-epoch", chinchilla)


@pytest.fixture(scope="module")
def made():
    """Rows of a known law, with a little noise; not the published table."""
    axes = np.meshgrid([512.0, 1024, 2048, 4096], [8.0, 16, 32], [1e9, 1e10, 1e11])
    table = pd.DataFrame(dict(zip(("d_model", "n_layers", "num_tokens"), (axis.ravel() for axis in axes), strict=True)))
    table["model_size"] = 12 * table.d_model**2 * table.n_layers
    table["loss"] = 300 / table.d_model + 10 / table.n_layers + 8 / (table.num_tokens / 1e6) ** 0.3 + 1.7
    table["loss"] *= np.exp(0.003 * np.random.default_rng(0).normal(size=len(table)))
    return table


def test_adam_is_its_recursion():
    """Three steps by hand, of a constant gradient: g = 2, so v^ = 4, m^ = 2, and a step is the rate."""
    done = adam(lambda x: (0.0, np.array([2.0])), np.array([1.0]), np.array([0.1]), [1, 3])
    assert done.theta[1] == pytest.approx([1 - 0.1 * 2 / (2 + 1e-8)], rel=1e-14)
    assert done.theta[3] == pytest.approx([0.7], rel=1e-8)


def test_adam_against_plain_formulas_in_both_precisions():
    scale = np.array([1.0, 30.0])

    def bowl(x):
        return float(scale @ x**2), 2 * scale * x

    mean = square = np.zeros(2)
    theta = start = np.array([1.0, -0.5])
    for k in range(1, 201):
        slope = bowl(theta)[1]
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        theta = theta - 0.01 * (mean / (1 - 0.9**k)) / (np.sqrt(square / (1 - 0.999**k)) + 1e-8)
    done = adam(bowl, start, np.full(2, 0.01), [200])
    assert done.theta[200] == pytest.approx(theta, rel=1e-9)
    assert done.values[0] == bowl(start)[0] and len(done.values) == 200
    single = adam(bowl, start, np.full(2, 0.01), [200], np.array([True, False])).theta[200]
    assert single == pytest.approx(theta, rel=1e-4)
    assert single[0] == np.float32(single[0]) and single[1] == done.theta[200][1]


@pytest.mark.parametrize("problem", ["depth", "epoch"])
def test_gradients_are_those_of_the_objective(made, problem):
    if problem == "depth":
        function, at = DepthProblem(choose_rows(made, DEPTH, "loss")), START
    else:
        names = {"N": "model_size", "D": "num_tokens"}
        function, at = ChinchillaProblem(choose_rows(made, names, "loss")), np.array([6.0, 7.5, 0.55, 0.35, 0.36])
    gradient = function(at)[1].copy()
    for i in range(len(at)):
        ahead, behind = at.copy(), at.copy()
        ahead[i] += 1e-6
        behind[i] -= 1e-6
        assert (function(ahead)[0] - function(behind)[0]) / 2e-6 == pytest.approx(gradient[i], rel=1e-5, abs=1e-9)


def test_depth_objective_and_errors_by_brute_force(made):
    """The objective, from its words; and standard errors from finite differences of the residuals."""
    rows = choose_rows(made, DEPTH, "loss")
    problem = DepthProblem(rows)
    at = np.array([5.7, 6.9, 2.08, 1.0, 1.0, 0.3, 1.7])

    def fitted(x):
        m, ell, data = made.d_model, 100 * made.n_layers, made.num_tokens / 1e6
        return np.exp(x[0]) / m ** x[3] + np.exp(x[1]) / ell ** x[4] + np.exp(x[2]) / data ** x[5] + x[6]

    for of_log in (False, True):
        of = np.log if of_log else np.asarray
        residuals = of(made.loss) - of(fitted(at))
        steps = 1e-6 * np.eye(7)
        slopes = np.array([(of(fitted(at + h)) - of(fitted(at - h))) / 2e-6 for h in steps]).T
        variance = np.sum(residuals**2) / (len(made) - 7)
        wanted = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)) * variance)
        errors, found = problem.errors(at, of_log, True)
        assert found == pytest.approx(variance, rel=1e-10) and errors == pytest.approx(wanted, rel=1e-4)
        fewer = problem.errors(at, of_log, False)[0]
        assert fewer == pytest.approx(errors * np.sqrt(1 - 7 / len(made)), rel=1e-10)
        if of_log:
            assert problem(at)[0] == pytest.approx(100 * np.mean(residuals**2), rel=1e-12)


def test_depth_paper_is_repeated(depth):
    """To the digits published, and beyond: the last steps are on a burst of Adam, where rounding would show."""
    repeated = depth.to_dict()["repeated"]
    assert repeated["step"] == 50_000
    values = repeated["values"]
    assert values["alpha_m"] == pytest.approx(0.977, abs=6e-4)
    assert values["alpha_ell"] == pytest.approx(1.201, abs=6e-4)
    assert values["alpha_D"] == pytest.approx(0.299, abs=6e-4)
    assert values["L0"] == pytest.approx(1.750, abs=1.1e-3)
    assert values["c_ell"] == pytest.approx(1284, rel=5e-3)
    assert repeated["objective"] == pytest.approx(0.003035, abs=6e-5)


def test_depth_paper_is_not_at_the_minimum(depth):
    found = depth.to_dict()
    exact = found["exact"]
    assert exact["objective"] == pytest.approx(0.0030274, abs=5e-8)
    assert exact["values"]["alpha_ell"] == pytest.approx(1.325, abs=5e-4)
    assert exact["values"]["alpha_m"] == pytest.approx(0.945, abs=6e-4)
    assert exact["values"]["L0"] == pytest.approx(1.754, abs=6e-4)
    assert exact["unidentified"] == {}
    assert found["rows_used"] == 203 and found["rows_total"] == 245
    published = found["published"]
    assert published["of_this_table"] and published["objective"] == pytest.approx(0.0030578, abs=5e-8)
    assert 0 < published["delta_chi2"] < 3
    double = [one for one in found["path"] if one["precision"] == "double"]
    assert [one["step"] for one in double] == [1000, 10_000, 50_000, 100_000, 200_000]
    # More steps go on towards the minimum, and never below it.
    assert np.all(np.diff([one["values"]["alpha_ell"] for one in double]) > 0)
    assert double[-1]["values"]["alpha_ell"] == pytest.approx(exact["values"]["alpha_ell"], abs=0.01)
    assert all(one["objective"] >= exact["objective"] for one in found["path"])


def test_depth_papers_standard_errors_are_of_the_loss_itself(depth):
    first, *others = depth.to_dict()["standard_errors"]
    assert (first["residuals"], first["divisor"]) == ("L", "n - 7")
    assert first["largest_difference"] < 1e-3 and all(one["largest_difference"] > 0.015 for one in others)
    errors = first["errors"]
    published = {"alpha_m": 0.083, "alpha_ell": 0.269, "alpha_D": 0.014, "L0": 0.026}
    assert {name: round(errors[name], 3) for name in published} == published
    assert errors["ln c_ell"] == pytest.approx(1.824, abs=1e-3)
    assert "c_m = 333.4 +- 171" in depth.report()


def test_depth_papers_report(depth):
    report = depth.report()
    for part in (
        "0.977 +- 0.083",
        "1.201 +- 0.269",
        "0.0030274",
        "is not the minimum",
        "ln L were made small",
        "go on moving",
        "rounding shows",
    ):
        assert part in report
    assert json.loads(json.dumps(depth.to_dict(), allow_nan=False))["reference"] == "depth-paper"


def test_chinchilla_epoch(epoch):
    found = epoch.to_dict()
    assert found["rows_used"] == 240 and found["published"]["of_this_table"]
    exact = found["exact"]
    assert exact["objective"] == pytest.approx(0.00101827402, rel=1e-8)
    assert exact["values"] == pytest.approx(
        {"A": 477.8, "B": 2143, "E": 1.8172, "alpha": 0.3473, "beta": 0.3672}, rel=3e-4
    )
    for one in found["repeated"][:2]:
        assert one["of"] == "sum" and one["share_at_minimum"] > 0.02
        assert one["values"]["alpha"] == pytest.approx(0.3473, abs=2e-4)
        # As published, within a small part of its standard errors.
        for name, error in found["published"]["standard_errors"].items():
            assert abs(one["values"][name] - found["published"]["values"][name]) < 0.15 * error
    assert found["published"]["objective_on_this_table"] >= exact["objective"]
    assert 300 <= found["grid"]["starts"] < found["grid"]["of"] == 4500


def test_a_mean_of_huber_stops_early(epoch):
    found = epoch.to_dict()
    mean = found["repeated"][-1]
    assert (mean["method"], mean["of"]) == ("L-BFGS-B", "mean")
    assert mean["share_at_minimum"] == 0 and mean["above_exact"] > 0.03
    assert abs(mean["values"]["alpha"] - found["exact"]["values"]["alpha"]) > 0.02
    by_sum, by_mean = found["from_one_start"]["runs"]
    assert by_mean["values"]["alpha"] > 0.5 and by_mean["above_exact"] > 0.5 > by_sum["above_exact"]
    assert "stops early" in epoch.report() and "0 %" in epoch.report()


def test_every_value_of_the_grid_is_met():
    starts = np.array(list(product(*GRID))[::11])
    assert [len(np.unique(column)) for column in starts.T] == [6, 6, 5, 5, 5]


def test_on_another_table_nothing_published_is_compared(made):
    numbers, lines = repeat_depth(choose_rows(made, DEPTH, "loss"), DEPTH, steps=500, further=1000)
    text = "\n".join(lines)
    assert not numbers["published"]["of_this_table"] and "standard_errors" not in numbers
    assert "of another table" in text and "is not the minimum" not in text
    exact = numbers["exact"]
    assert exact["values"]["alpha_m"] == pytest.approx(1, abs=0.15)
    assert all(one["objective"] >= exact["objective"] for one in numbers["path"])
    assert numbers["repeated"]["values"]["alpha_ell"] != pytest.approx(PUBLISHED[4], abs=1e-3)

    names = {"N": "model_size", "D": "num_tokens"}
    numbers, lines = repeat_chinchilla(choose_rows(made, names, "loss"), names, every=500)
    assert "of another table" in "\n".join(lines)
    assert all(one["above_exact"] > -1e-9 for one in numbers["repeated"])


def test_what_the_rows_do_not_determine_gets_no_number(made):
    """Depth in proportion to width: the exact column is empty there, with the reason below."""
    flat = made.assign(n_layers=made.d_model / 64)
    numbers, lines = repeat_depth(choose_rows(flat, DEPTH, "loss"), DEPTH, steps=50, further=100)
    assert numbers["exact"]["values"]["alpha_ell"] is None and numbers["exact"]["values"]["c_m"] is None
    text = "\n".join(lines)
    assert "not identified: c_m" in text and "move together" in text and "where it stopped" in text


@pytest.mark.parametrize(
    ("name", "change", "columns", "message"),
    [
        ("depth-papr", {}, None, "Did you mean 'depth-paper'"),
        ("zzz", {}, None, "one of depth-paper, chinchilla-epoch"),
        ("depth-paper", {"d_model": None}, None, "d_model"),
        ("depth-paper", {}, {"m": "width"}, "width"),
        ("depth-paper", {}, {"N": "model_size"}, "for m, ell, D"),
        ("chinchilla-epoch", {"loss": None}, None, "loss"),
        ("depth-paper", {"rows": 40}, None, "exclude_highest"),
        ("depth-paper", {"rows": 46}, None, "of 8 rows or more"),
        ("chinchilla-epoch", {"rows": 10}, None, "of 6 rows or more"),
    ],
)
def test_refused_in_one_line(made, name, change, columns, message):
    table = pd.concat([made, made.assign(loss=made.loss * 1.01)], ignore_index=True)
    if rows := change.get("rows"):
        table = table.iloc[:rows]
    table = table.drop(columns=[column for column in change if column != "rows"])
    with pytest.raises(InputError) as error:
        run_reference(name, table, columns)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_descent_that_breaks_says_so(made):
    with pytest.raises(InputError, match="descent must be positive and finite"):
        repeat_depth(choose_rows(made.assign(loss=made.loss * 1e-9), DEPTH, "loss"), DEPTH, steps=5000, further=5000)


def test_a_path_will_do(made, tmp_path, monkeypatch):
    few = replace(PROCEDURES["chinchilla-epoch"], repeat=partial(repeat_chinchilla, every=500))
    monkeypatch.setitem(PROCEDURES, "chinchilla-epoch", few)
    file = tmp_path / "runs.csv"
    pd.concat([made] * 3).assign(loss=lambda x: x.loss * np.linspace(1, 1.01, len(x))).to_csv(file, index=False)
    done = run_reference("chinchilla-epoch", file)
    assert done.to_dict()["rows_total"] == 3 * len(made) and "model_size" in done.report()
