"""Curves of runs: grouping, joining of jobs, what is refused, and the rows for JSON."""

import json

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit import fit_curves, fit_depth_exponent


def test_one_bank_gives_the_exponent_of_the_arrays(make_curves):
    curves = make_curves(noise=0.1)
    table = fit_curves(curves)
    (row,) = table.rows
    last = curves[curves["step"] == 1000].pivot(index="replicate", columns="depth", values="test_loss")
    direct = fit_depth_exponent(last.to_numpy(), last.columns.to_numpy(), noise_floor=1e-12)
    assert (row.alpha, row.low, row.high) == (direct.alpha, direct.low, direct.high)
    assert (row.step, row.replicates, row.depths, row.weights) == (1000, 2, [3, 6, 12, 24], "raw")
    assert row.last and row.interval_source == "replicates" and not table.refused


def test_many_jobs_equal_one_bank_in_any_order(make_curves):
    curves = make_curves(noise=0.1)
    jobs = [part for _, part in curves.groupby(["depth", "replicate"])]
    joined = pd.concat(jobs[::-1], ignore_index=True)
    one, many = fit_curves(curves, all_steps=True), fit_curves(joined, all_steps=True)
    assert [row.to_dict() for row in one.rows] == [row.to_dict() for row in many.rows]


def test_the_same_run_twice_counts_once(make_curves):
    curves = make_curves(noise=0.1, average=0.9)
    twice = pd.concat([curves, curves], ignore_index=True)
    assert [r.to_dict() for r in fit_curves(twice).rows] == [r.to_dict() for r in fit_curves(curves).rows]


def test_two_different_runs_of_one_arm_are_refused(make_curves):
    curves = make_curves(seeds=(0,))
    other = curves[curves["depth"] == 6].assign(test_loss=lambda frame: frame["test_loss"] * 2)
    with pytest.raises(InputError) as error:
        fit_curves(pd.concat([curves, other]))
    for part in ("one test_loss an arm and step", "teacher=tied", "depth=6", "step=0", "Give only one of these runs."):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("column", "values"),
    [("temperature", (0.1, np.nan)), ("init", ("zero", "euler")), ("rho", (0.5, np.nan)), ("recipe", ("a", "b"))],
)
def test_groups_keep_apart_what_differs_and_nan_is_a_value(make_curves, column, values):
    curves = pd.concat([make_curves(1.0, **{column: values[0]}), make_curves(3.0, **{column: values[1]})])
    rows = fit_curves(curves).rows
    assert [row.alpha for row in rows] == pytest.approx([1, 3])
    assert getattr(rows[0], column) == values[0]


def test_replicates_are_pairs_of_seed_and_replicate(make_curves):
    one = make_curves(seeds=(0, 1))
    shifted = one.assign(teacher_seed=5, test_loss=one["test_loss"] * 3)
    (row,) = fit_curves(pd.concat([one, shifted])).rows
    assert row.replicates == 4


def test_average_weights_have_their_own_row(make_curves):
    rows = fit_curves(make_curves(average=0.998)).rows
    assert [(row.weights, row.average_decay) for row in rows[1:]] == [("average", 0.998)]
    assert np.isnan(rows[0].average_decay) and rows[1].alpha == pytest.approx(2)
    assert rows[1].fit.c == pytest.approx(0.9 * rows[0].fit.c)
    assert [row.weights for row in fit_curves(make_curves(average=0.998), weights=("average",)).rows] == ["average"]


def test_several_decays_are_several_groups(make_curves):
    both = pd.concat([make_curves(average=0.9), make_curves(average=0.99)])
    assert [row.average_decay for row in fit_curves(both, weights=("average",)).rows] == [0.9, 0.99]
    assert len(fit_curves(both, weights=("raw",)).rows) == 1


def test_diverged_arms_are_out_of_every_step(make_curves):
    curves = make_curves()
    arm = (curves["depth"] == 24) & (curves["replicate"] == 0)
    curves.loc[arm & (curves["step"] == 1000), ["diverged", "test_loss"]] = [True, np.inf]
    for row in fit_curves(curves, all_steps=True).rows:
        left_out = row.to_dict()["left_out"]
        assert left_out == [
            {"replicate": 0, "depth": 24, "loss": None, "reason": "missing or diverged", "teacher_seed": 0}
        ]
        assert row.alpha == pytest.approx(2)


def test_zero_loss_is_noise(make_curves):
    curves = make_curves(noise_floor=np.nan)
    curves.loc[curves["depth"] == 24, "test_loss"] = 0.0
    (row,) = fit_curves(curves).rows
    assert row.depths == [3, 6, 12]
    assert {point.reason for point in row.fit.left_out} == {"within 10x of the noise floor"}
    assert "3 of 4 depths and 2 of 2 replicates of the group are in this fit" in row.caveats


def test_every_step_and_its_drift(make_curves):
    curves = make_curves(alpha=lambda step: 1 + 0.3 * np.log10(max(step, 1)), steps=(0, 1, 10, 100, 1000))
    table = fit_curves(curves, all_steps=True)
    assert [row.step for row in table.rows] == [0, 1, 10, 100, 1000]
    assert [row.alpha for row in table.rows] == pytest.approx([1, 1, 1.3, 1.6, 1.9])
    assert [row.verdict for row in table.rows] == ["unknown"] * 3 + ["settled"] * 2
    assert [row.last for row in table.rows] == [False] * 4 + [True]
    last = table.rows[-1]
    assert last.drift.slope == pytest.approx(0.3 / np.log(10)) and last.drift.window == (10, 1000)
    assert fit_curves(curves).rows[0].to_dict() == last.to_dict()


@pytest.mark.parametrize("all_steps", [True, False])
def test_early_is_the_nearest_step_in_log(make_curves, all_steps):
    curves = pd.concat([make_curves(lambda step: 1 + step / 1000), make_curves(3.0, init="euler", steps=(0, 50))])
    table = fit_curves(curves, all_steps=all_steps)
    assert [row.step for row in table.last] == [1000, 50]
    assert [row.step for row in table.early()] == [100, 50]
    assert [row.step for row in table.early(0.02)] == [10, 50]
    rows = [row for row in table.to_dict()["rows"] if row["last"]]
    assert rows[0]["alpha_early"] == pytest.approx(1.1) and rows[0]["step_early"] == 100
    with pytest.raises(InputError, match="fraction must be greater than 0 and at most 1, got 5"):
        table.early(5)


def test_jobs_with_other_steps_meet_where_they_can(make_curves):
    steps = {3: (10, 100, 500), 6: (10, 100), 12: (10, 100, 700)}
    curves = pd.concat([make_curves(depths=(depth,), steps=at) for depth, at in steps.items()])
    (row,) = fit_curves(curves).rows
    assert row.step == 100
    said = "not the end of training: fewer than 3 depths share a later step (they go on to 700)"
    assert said in row.caveats
    whole = pd.concat([make_curves(depths=(depth,), steps=(10, 100)) for depth in steps])
    assert not any("end of training" in caveat for caveat in fit_curves(whole).rows[0].caveats)


def test_a_group_that_cannot_be_fitted_does_not_stop_the_others(make_curves):
    curves = pd.concat([make_curves(), make_curves(depths=(3, 6), init="euler")])
    table = fit_curves(curves)
    assert len(table.rows) == 1
    (refused,) = table.refused
    assert refused["init"] == "euler" and "init=euler" in refused["group"]
    assert refused["reason"].startswith("curves must hold at least 3 distinct depths, got depths 3, 6 for experiment=")
    json.dumps(table.to_dict(), allow_nan=False)


def test_a_last_step_that_cannot_be_fitted_is_said(make_curves):
    curves = make_curves()
    curves.loc[curves["step"] == 1000, "noise_floor"] = 1.0
    table = fit_curves(curves)
    (row,) = table.rows
    assert row.step == 100 and row.last
    assert row.caveats[-1].startswith("step 1000 could not be fitted: depths must be at least 3 distinct depths")
    assert [entry["step"] for entry in table.refused] == [1000]


def test_refused_steps_are_listed_with_all_steps(make_curves):
    curves = make_curves()
    curves.loc[curves["step"] == 10, "noise_floor"] = 1.0
    assert [entry["step"] for entry in fit_curves(curves, all_steps=True).refused] == [10]
    assert fit_curves(curves).refused == []


def test_refused_when_nothing_can_be_fitted(make_curves):
    with pytest.raises(
        InputError, match="at least 3 distinct depths, got depths 6 for experiment=tied_mse, teacher=tied"
    ):
        fit_curves(make_curves(depths=(6,)))
    apart = pd.concat([make_curves(depths=(depth,), steps=(depth,)) for depth in (3, 6, 12)])
    with pytest.raises(InputError, match="at least 3 distinct depths at one step, got depths 3, 6, 12 for"):
        fit_curves(apart)
    with pytest.raises(InputError, match=r"within 10x of the noise floor.*\(experiment=tied_mse.*step 1000\)"):
        fit_curves(make_curves(noise_floor=9.0))
    two = pd.concat([make_curves(depths=(6,)), make_curves(depths=(6,), init="euler")])
    with pytest.raises(InputError, match=r"\(1 more group cannot be fitted either\.\)"):
        fit_curves(two)


def test_bad_tables_and_options(make_curves):
    curves = make_curves()
    with pytest.raises(InputError, match="curves must be a pandas DataFrame, got list"):
        fit_curves([])
    with pytest.raises(InputError, match=r"got no test_loss\. Add it\. Did you mean 'testloss'\?"):
        fit_curves(curves.rename(columns={"test_loss": "testloss"}))
    with pytest.raises(InputError, match="curves must be a table with at least one row, got 0 rows"):
        fit_curves(curves.iloc[:0])
    for weights in ("raw", (), ("ema",)):
        with pytest.raises(InputError, match="weights must be a tuple of 'raw', 'average' or both, got"):
            fit_curves(curves, weights=weights)
    with pytest.raises(InputError, match=r"weights must be weights that were evaluated, got \('average',\)"):
        fit_curves(curves, weights=("average",))
    with pytest.raises(InputError, match="confidence must be"):
        fit_curves(curves, confidence=2)


def test_rows_for_json(make_curves):
    curves = make_curves(noise=0.1, seeds=(0, 1, 2))
    text = json.dumps(fit_curves(curves, floor=True).to_dict(), allow_nan=False)
    row = json.loads(text)["rows"][0]
    needed = (
        "experiment teacher init block loss temperature weights step alpha low high replicates depths verdict rho head "
        "average_decay interval_source drift_per_log_step change_per_doubling local_slopes left_out caveats"
    )
    assert set(needed.split()) <= set(row)
    assert row["temperature"] is None and row["rho"] is None and row["depths"] == [3, 6, 12, 24]
    assert len(row["local_slopes"]) == 3
    assert row["irreducible_loss"] >= 0


def test_every_average_gets_an_exponent_of_its_own(make_curves):
    curves = make_curves()
    curves["test_loss_average"] = curves["test_loss"]
    curves["average_decay"] = 0.998
    curves["test_loss_average_0.9999"] = curves["test_loss"] * curves["depth"]
    curves["standard_error_average_0.9999"] = 0.0
    rows = {row.average_decay: row.alpha for row in fit_curves(curves, weights=("average",)).rows}
    assert set(rows) == {0.998, 0.9999}
    assert rows[0.9999] == pytest.approx(rows[0.998] - 1)


def test_arms_no_better_than_at_the_start_are_said(make_curves):
    # Blown up under a norm that bounds the loss, or stuck: finite, so nothing else would mark them.
    curves = make_curves(lambda step: 1 + step / 1000)
    (row,) = fit_curves(curves, weights=("raw",)).rows
    assert not any("step 0" in caveat for caveat in row.caveats)
    start = curves.loc[curves["step"] == 0].set_index(["replicate", "depth"])["test_loss"]
    stuck = (curves["replicate"] == 1) & curves["depth"].isin([6, 24]) & (curves["step"] > 0)
    curves.loc[stuck, "test_loss"] = [start[1, depth] for depth in curves.loc[stuck, "depth"]]
    table = fit_curves(curves, weights=("raw",), all_steps=True)
    said = "2 of 8 arms are not below their loss at step 0 (depths 6, 24)"
    assert [said in row.caveats for row in table.rows] == [row.step > 0 for row in table.rows]
    later = fit_curves(curves[curves["step"] > 0], weights=("raw",))
    assert not any("step 0" in caveat for caveat in later.last[0].caveats)
