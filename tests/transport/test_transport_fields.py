"""Fields that have no cascade are named; nodes are drawn fairly, and alike at every step."""

import numpy as np
import pytest
from scipy.stats import chi2

from toydepth.errors import InputError
from toydepth.transport import FieldProblem, check_field, place_nodes

GOOD = np.random.default_rng(0).normal(size=100)


def with_values(*values):
    field = GOOD.copy()
    field[: len(values)] = values
    return field


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (GOOD, None),
        (np.zeros(100), FieldProblem.ZERO),
        (-np.zeros(100), FieldProblem.ZERO),
        (np.full(100, 0.3), FieldProblem.CONSTANT),
        (with_values(np.nan), FieldProblem.NOT_FINITE),
        (with_values(np.inf), FieldProblem.NOT_FINITE),
        (np.where(np.arange(100) < 91, 0, GOOD), FieldProblem.MOSTLY_ZERO),
        (np.where(np.arange(100) < 89, 0, GOOD), None),
        (np.sign(GOOD), FieldProblem.TIED),
        (GOOD[:9], FieldProblem.TOO_SHORT),
        (GOOD[:10], None),
        (np.zeros(0), FieldProblem.TOO_SHORT),
        (np.arange(100), None),
    ],
)
def test_each_problem_is_named(field, problem):
    assert check_field(field).problem is problem


def test_counts_and_words():
    check = check_field(with_values(np.nan, np.inf, 0.0, 0.0, 0.0))
    assert (check.num_nodes, check.num_not_finite, check.num_zeros, check.threshold) == (100, 2, 3, None)
    assert str(check) == "NaN or infinities (100 values, 3 zeros, 2 not finite)"
    assert str(check_field(GOOD)) == "usable (100 values, 0 zeros, 0 not finite)"
    assert check_field(GOOD).threshold == np.percentile(np.abs(GOOD), 90)


@pytest.mark.parametrize("num_nodes", range(10, 60))
def test_more_than_ninety_per_cent_zeros_is_threshold_zero(num_nodes):
    for num_zeros in range(num_nodes):
        field = np.arange(num_nodes) * np.where(np.arange(num_nodes) < num_zeros, 0.0, 1.0) + 0.0
        field[num_zeros:] += 1
        if 10 * num_zeros > 9 * num_nodes:
            assert check_field(field).problem is FieldProblem.MOSTLY_ZERO
        elif 10 * (num_zeros + 1) < 9 * num_nodes:
            assert check_field(field).problem is None


def test_the_percentile_decides():
    field = np.where(np.arange(100) < 60, 0, GOOD)
    assert check_field(field, 90).problem is None
    assert check_field(field, 50).problem is FieldProblem.MOSTLY_ZERO


def test_placing():
    values = np.arange(1000.0)
    permuted = place_nodes(values)
    assert sorted(permuted.tolist()) == values.tolist() and not np.array_equal(permuted, values)
    np.testing.assert_array_equal(place_nodes(values, order="as_is"), values)
    np.testing.assert_array_equal(place_nodes(2 * values), 2 * permuted)  # the same parameter at the same node
    assert not np.array_equal(place_nodes(values, seed=1), permuted)
    some = place_nodes(values, 200, order="as_is")
    assert len(set(some)) == 200 and (np.diff(some) > 0).all()
    assert len(set(place_nodes(values, 200))) == 200
    assert place_nodes(values.astype(np.float32), 5).dtype == np.float32
    together = set(place_nodes(values, 300)) & set(place_nodes(values, 301))
    assert len(together) == pytest.approx(90, abs=30), "samples of two lengths share what chance has them share"


@pytest.mark.parametrize("order", ["permuted", "as_is"])
def test_each_value_is_as_likely_as_any_other(order):
    drawn, seeds = np.zeros(100), 2000
    for seed in range(seeds):
        drawn[place_nodes(np.arange(100), 20, order=order, seed=seed)] += 1
    statistic = ((drawn - seeds * 0.2) ** 2).sum() / (seeds * 0.2 * 0.8) * 99 / 100
    assert 0.001 < chi2.sf(statistic, 99) < 0.999


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_field(np.zeros((3, 4))), r"field must have one axis, got shape \(3, 4\)"),
        (lambda: check_field(np.array(["a"])), "field must hold real numbers, got <U1"),
        (lambda: check_field(np.ones(10, complex)), "field must hold real numbers, got complex128"),
        (lambda: check_field(GOOD, 0), "percentile must be between 0 and 100, got 0"),
        (lambda: place_nodes(GOOD, 101), "num_nodes must be 1 ... 100, the field's length, got 101"),
        (lambda: place_nodes(GOOD, order="permute"), r"order must be .* Did you mean 'permuted'\?"),  # pyright: ignore
        (lambda: place_nodes(GOOD, seed=-1), "seed must be an integer, 0 or more, got -1"),
    ],
)
def test_what_cannot_be_used(call, message):
    with pytest.raises(InputError, match=message):
        call()
