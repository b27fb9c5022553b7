"""Pure error: analysis of variance by hand, its expectation, copies, and the F test's rate."""

# pyright: reportOptionalOperand=false

import numpy as np
import pytest
from scipy import stats

from toydepth.fit.law.choice.compare import compare_laws
from toydepth.fit.law.choice.replicates import find_pure_error, lack_of_fit
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.terms import LAWS, Law, Term

LOG, LINEAR = Objective("log"), Objective("linear")
LAW = LAWS["decomposed"]("N").with_exponents({"alpha_N": 1.0})


def repeats(seed: int, times: int = 3, noise: float = 0.01, bend: float = 0.0, **columns):
    N = np.repeat([1.0, 2.0, 4.0, 8.0, 16.0], times)
    loss = 2.0 + 1.0 / N + bend * np.log(N) ** 2
    loss = loss * np.exp(noise * np.random.default_rng(seed).normal(size=N.size))
    return {"N": N, "loss": loss, **columns}


def rows_of(table, **options):
    return choose_rows(table, {"N": "N"}, "loss", **options)


def test_pure_error_is_the_sum_of_squares_within_points():
    table = {"N": [1, 1, 2, 2, 2, 3], "loss": [1.0, 3.0, 5.0, 6.0, 7.0, 9.0]}
    found = find_pure_error(rows_of(table), LINEAR)
    assert (found.sum_squares, found.degrees, found.num_points, found.num_rows) == (4.0, 3, 2, 5)
    assert found.num_distinct == 3 and found.std == pytest.approx(np.sqrt(4 / 3))
    logs = find_pure_error(rows_of(table), LOG)
    assert logs.sum_squares == pytest.approx(np.var(np.log([1, 3])) * 2 + np.var(np.log([5, 6, 7])) * 3)


def test_weights_count():
    table = {"N": [1, 1, 2, 3], "loss": [1.0, 4.0, 5.0, 6.0], "w": [2.0, 1.0, 0.5, 0.5]}
    found = find_pure_error(rows_of(table, weights="w"), LINEAR)
    assert found.sum_squares == pytest.approx(2 * 1 + 1 * 4)  # about the weighted mean, 2


def test_points_are_of_all_variables_of_the_table():
    table = {"N": [1, 1, 2], "D": [1, 2, 2], "loss": [3.0, 2.0, 1.0]}
    found = find_pure_error(choose_rows(table, {"N": "N", "D": "D"}, "loss"), LOG)
    assert found.reason == "no row repeats another's point: no replicate noise to compare with"
    assert found.std is None and found.lines() == [found.reason]


def test_copies_are_counted_out_and_said():
    table = {"N": [1, 1, 1, 2, 2, 3], "loss": [3.0, 3.0, 3.1, 2.0, 2.0, 1.0]}
    found = find_pure_error(rows_of(table), LINEAR)
    assert found.copies == 2 and found.degrees == 1 and found.std == pytest.approx(0.1 / np.sqrt(2))
    assert found.lines()[0].startswith("2 rows have the point and the very loss of another")
    only = find_pure_error(rows_of({"N": [1, 1, 2], "loss": [3.0, 3.0, 2.0]}), LINEAR)
    assert only.reason == "no row repeats another's point with another loss: no replicate noise to compare with"


def test_copying_the_table_changes_no_test():
    table = repeats(0, bend=0.01)
    twice = {name: np.tile(values, 2) for name, values in table.items()}
    one, other = (compare_laws(rows_of(t), [LAW], {}, {}, LOG, num_starts=2) for t in (table, twice))
    assert other.misfit["decomposed"].statistic == pytest.approx(one.misfit["decomposed"].statistic, rel=1e-8)
    assert other.misfit["decomposed"].degrees == (3, 10) and other.pure_error.copies == 15


def test_f_of_a_constant_is_one_way_analysis_of_variance():
    table = repeats(3, bend=0.02)
    constant = Law("constant", (Term("x", 1.0),), 0.0)
    rows = choose_rows({**table, "x": np.ones(15)}, {"x": "x", "N": "N"}, "loss")
    found = compare_laws(rows, [constant], {}, {}, LINEAR, num_starts=2).misfit["constant"]
    expected = stats.f_oneway(*np.reshape(table["loss"], (5, 3)))
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-8)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6) and found.degrees == (4, 10)


def test_a_true_law_is_rejected_at_the_nominal_rate_and_a_wrong_one_is():
    rejected = [
        compare_laws(rows_of(repeats(seed)), [LAW], {}, {}, LOG, num_starts=2).misfit["decomposed"].p_value < 0.05
        for seed in range(200)
    ]
    assert 0.02 <= np.mean(rejected) <= 0.09
    wrong = compare_laws(rows_of(repeats(0, bend=0.1)), [LAW], {}, {}, LOG, num_starts=2)
    assert wrong.misfit["decomposed"].p_value < 1e-4 and "misses by more than repeats differ" in wrong.report()
    assert wrong.pure_error.std == pytest.approx(0.01, rel=0.6)


def test_no_test_without_least_squares_or_without_points_to_spare():
    pure = find_pure_error(rows_of(repeats(0)), LOG)
    assert "F is of least squares" in str(lack_of_fit(pure, 1.0, 2, Objective("huber")).reason)
    assert lack_of_fit(pure, 1.0, 5, LOG).reason == "5 distinct points for 5 parameters leave nothing to test"
    found = compare_laws(rows_of(repeats(0)), [LAW], {}, {}, Objective("student"), num_starts=2)
    assert "decomposed: no test, F is of least squares" in found.report()


def test_repeats_within_one_group_are_said():
    run = np.repeat(np.arange(5), 3)
    found = find_pure_error(rows_of(repeats(0, run=run), groups="run"), LOG)
    assert found.within_groups == 5 and "noise within a group may be less" in found.lines()[-1]
    apart = find_pure_error(rows_of(repeats(0, run=np.arange(15)), groups="run"), LOG)
    assert apart.within_groups == 0
