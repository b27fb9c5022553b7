"""Predictions of rows left out: which they are, errors by brute force, bias of a true and of a wrong law."""

# pyright: reportOptionalSubscript=false, reportArgumentType=false

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.fit.law.choice.holdout import hold_out_largest
from toydepth.fit.law.choice.refit import start_at
from toydepth.fit.law.choice.scales import find_scales, leave_scales_out
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.model import make_model
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import LAWS, Law

CHINCHILLA = LAWS["chinchilla"]("N", "D")
NO_FLOOR = Law("no floor", CHINCHILLA.terms, 0.0)


def simulate(seed: int = 0, noise: float = 0.003, groups: bool = False) -> Rows:
    N, D = (x.ravel() for x in np.meshgrid([1e7, 1e8, 1e9, 1e10, 1e11], [1e9, 1e10, 1e11, 1e12], indexing="ij"))
    loss = 1.7 + 0.6 * (N / 1e9) ** -0.34 + 0.5 * (D / 3e10) ** -0.28
    loss = loss * np.exp(noise * np.random.default_rng(seed).normal(size=N.size))
    table = {"N": N, "D": D, "loss": loss, "run": N}
    return choose_rows(table, {"N": "N", "D": "D"}, "loss", groups="run" if groups else None)


def fitted(rows: Rows, *laws: Law, objective: str = "log"):
    return {law.name: estimate_rows(rows, law, Objective(objective), 8) for law in laws}


def hold(rows: Rows, *laws: Law, fraction: float = 0.2, objective: str = "log", offsets=None):
    labels = {name: name for name in rows.variables}
    return hold_out_largest(rows, fitted(rows, *laws, objective=objective), labels, offsets or {}, fraction, 8)


def test_scales_are_the_distinct_values_of_all_but_the_data():
    table = {"m": [64, 64, 128, 128], "ell": [2, 4, 2, 2], "D": [1, 2, 3, 4], "tau": [1, 2, 3, 4], "loss": [4, 3, 2, 1]}
    rows = choose_rows(table, {name: name for name in ("m", "ell", "D", "tau")}, "loss")
    found = find_scales(rows, {"ell": 1.0})
    assert found.names == ("m = 64, ell = 3", "m = 64, ell = 5", "m = 128, ell = 3")  # as they stand in the table
    assert found.codes.tolist() == [0, 1, 2, 2] and found.reason is None
    assert find_scales(rows, {}, ["m"]).codes.tolist() == [0, 0, 1, 1]
    with pytest.raises(InputError, match="scale must be of m, ell, D, tau, got M"):
        find_scales(rows, {}, ["M"])


def test_no_sizes_to_leave_out_is_said():
    data = choose_rows({"D": [1, 2, 3], "loss": [3, 2, 1]}, {"D": "D"}, "loss")
    assert find_scales(data, {}).reason == "no variable of model size among D"
    one = choose_rows({"N": [5, 5, 5], "D": [1, 2, 3], "loss": [3, 2, 1]}, {"N": "N", "D": "D"}, "loss")
    assert find_scales(one, {}).reason == "every row has N = 5"
    found = leave_scales_out(one, {}, find_scales(one, {}))
    assert found.lines() == ["one model size left out at a time: none, every row has N = 5"]


def test_many_sizes_are_binned_in_order_with_each_size_in_one_bin():
    generator = np.random.default_rng(0)
    N = np.repeat(np.arange(1, 101) * 1e6, generator.integers(1, 5, size=100))
    N = generator.permutation(N)
    rows = choose_rows({"N": N, "loss": 1 + 1e6 / N}, {"N": "N"}, "loss")
    found = find_scales(rows, {})
    assert len(found.names) == 10 and "100 distinct (N)" in found.words
    assert all(len(np.unique(found.codes[one == N])) == 1 for one in np.unique(N))
    order = np.argsort(N)
    assert np.all(np.diff(found.codes[order]) >= 0)
    assert np.ptp(np.bincount(found.codes)) <= 8


def test_leaving_a_size_out_is_a_fit_to_the_others():
    rows = simulate()
    found = leave_scales_out(rows, fitted(rows, CHINCHILLA), find_scales(rows, {}), 8)
    for i in range(5):
        out = found.scales.codes == i
        alone = estimate_rows(rows.take(~out), CHINCHILLA, Objective(), 32, 7)
        points = rows.take(out)
        expected = alone.problem.model.on(points.variables).log_loss(alone.theta) - np.log(points.loss)
        assert found.errors["chinchilla"][out] == pytest.approx(expected, abs=1e-6)
    errors = found.errors["chinchilla"].reshape(5, 4)
    one = found.summary("chinchilla")
    assert one["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    by_size = np.sqrt(np.mean(errors**2, axis=1))
    assert (one["low"], one["median"], one["high"]) == pytest.approx((by_size.min(), np.median(by_size), by_size.max()))
    assert one["worst"] == found.scales.names[int(by_size.argmax())]


def test_sizes_that_the_rest_does_not_determine_get_no_number_but_a_reason():
    rows = simulate()
    three = rows.take(rows.variables["N"] < 2e9)  # without one size two are left, of which the exponent is free
    fixed = Law("fixed", CHINCHILLA.terms).with_exponents({"alpha_N": 0.34})
    found = leave_scales_out(three, fitted(three, CHINCHILLA, fixed), find_scales(three, {}), 8)
    assert np.isnan(found.errors["chinchilla"]).all() and np.isfinite(found.errors["fixed"]).all()
    assert "have 2 values of N, and 3 are needed" in found.reasons["chinchilla"]["N = 1e+07"]
    assert found.summary("chinchilla")["rmse"] is None and found.summary("fixed")["scales_compared"] == 3
    assert "chinchilla: 3 of 3 not predicted" in "\n".join(found.lines())


def test_no_row_of_a_group_is_kept_while_another_is_predicted():
    rows = simulate()
    table = {**rows.frame(), "run": np.where(rows.variables["N"] <= 1e8, "both", rows.variables["N"].astype(str))}
    grouped = choose_rows(table, {"N": "N", "D": "D"}, "loss", groups="run")
    found = leave_scales_out(grouped, fitted(grouped, CHINCHILLA), find_scales(grouped, {}), 8)
    alone = estimate_rows(rows.take(rows.variables["N"] > 1e8), CHINCHILLA, Objective(), 16)
    first = rows.take(rows.variables["N"] < 2e7)
    expected = alone.problem.model.on(first.variables).log_loss(alone.theta) - np.log(first.loss)
    assert found.errors["chinchilla"][:4] == pytest.approx(expected, abs=1e-6)


def test_the_largest_rows_are_held_out_with_what_ties():
    rows = simulate()
    found = hold(rows, CHINCHILLA)  # 4 of 20 asked: N D of 1e23; 1e22 twice; 1e21 thrice
    compute = 6 * rows.variables["N"] * rows.variables["D"]
    assert found.words == "6 N D" and found.held.sum() == 6 and compute[found.held].min() > 5e21
    assert found.ratios == pytest.approx({"size": 1000, "N": 1, "D": 1})
    assert found.largest == pytest.approx((6e23, 6e20))


def test_size_is_what_the_variables_allow():
    def words(*names: str) -> str:
        generator = np.random.default_rng(0)
        table = {name: np.exp(generator.uniform(1, 5, size=40)) for name in names}
        table["loss"] = 1 + sum(1 / values for values in table.values())
        rows = choose_rows(table, {name: name for name in names}, "loss")
        law = LAWS["decomposed"](*names).with_exponents({f"alpha_{name}": 1.0 for name in names})
        return hold(rows, law).words

    assert words("N", "D") == "6 N D" and words("m", "ell", "D") == "6 N D, N = 12 m^2 ell"
    assert words("m", "ell", "tau") == "N tau, N = 12 m^2 ell" and words("m", "ell") == "12 m^2 ell"
    assert words("N") == "N" and words("m", "D") == "m x D" and words("a", "b") == "a x b"


def test_offsets_are_put_back_for_sizes_and_predictions():
    rows = simulate(noise=0.0)
    shifted = choose_rows({**rows.frame()}, {"N": "N", "D": "D"}, "loss", offsets={"D": -1e9})
    found = hold(shifted, CHINCHILLA, offsets={"D": -1e9})
    assert found.largest[0] == pytest.approx(6e23)


def test_the_true_law_has_no_bias_and_intervals_that_hold():
    bias, inside, total, errors = [], 0, 0, []
    for seed in range(40):
        found = hold(simulate(seed), CHINCHILLA).laws["chinchilla"]
        bias.append(found["bias"])
        inside, total = inside + found["within"], total + 6
        errors.append(found["rms"])
    assert abs(np.mean(bias)) < 3 * np.std(bias) / np.sqrt(40)
    assert 0.90 <= inside / total <= 0.99


def test_a_law_without_the_floor_is_too_low_beyond_the_table():
    found = hold(simulate(), CHINCHILLA, NO_FLOOR)
    wrong, right = found.laws["no floor"], found.laws["chinchilla"]
    assert wrong["bias"] < -0.01 and abs(right["bias"]) < 0.005 and wrong["rms"] > 3 * right["rms"]
    assert wrong["rms"] >= abs(wrong["bias"])


def test_whole_groups_are_held_out():
    found = hold(simulate(groups=True), CHINCHILLA, fraction=0.1)
    assert found.held.reshape(5, 4).all(axis=1).tolist() == [False] * 4 + [True]
    assert found.note == "held out as 1 whole group, by the largest row of each" and found.ratios["N"] == 10


def test_nothing_left_to_fit_and_equal_rows_are_said():
    rows = simulate()
    same = choose_rows({"N": [5.0] * 9, "D": [5.0] * 9, "loss": np.arange(1.0, 10)}, {"N": "N", "D": "D"}, "loss")
    found = hold_out_largest(same, {}, {}, {})
    assert found.reason == "every row is as large: 6 N D" and "none" in found.lines()[0]
    few = hold(rows, CHINCHILLA, fraction=0.8)
    assert few.laws["chinchilla"]["bias"] is None and few.laws["chinchilla"]["reason"] in "\n".join(few.lines())


def test_intervals_are_of_the_loss_when_the_objective_is():
    linear, log = (hold(simulate(1), CHINCHILLA, objective=kind).laws["chinchilla"] for kind in ("linear", "log"))
    assert linear["half_width"] == pytest.approx(log["half_width"], rel=0.5)


def test_a_minimum_carried_to_other_rows_and_other_laws_says_the_same():
    rows = simulate()
    estimate = fitted(rows, Law("fixed", CHINCHILLA.terms).with_exponents({"alpha_N": 0.3}))["fixed"]
    for law in (estimate.problem.model.law, CHINCHILLA, Law("turned", tuple(reversed(CHINCHILLA.terms)))):
        part = rows.take(np.arange(7, 20))
        model = make_model(law, part.variables)
        expected = estimate.problem.model.on(part.variables).log_loss(estimate.theta)
        assert model.log_loss(start_at(estimate, model))[0] == pytest.approx(expected, abs=1e-12)
