"""Costs: what an expression may hold, what follows from m and ell, and what is refused."""

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.fit.law.table.derive import non_embedding_parameters
from toydepth.fit.law.uses.cost import make_cost, with_size

POINT = {"m": np.array([64.0, 128.0]), "ell": np.array([2.0, 4.0]), "D": np.array([1e9, 2e9])}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6*N*D", lambda m, ell, D: 6 * 12 * m**2 * ell * D),
        ("-m + +ell * 2 ** 0.5", lambda m, ell, D: -m + ell * np.sqrt(2)),
        ("log(D) + exp(-ell) + sqrt(m)", lambda m, ell, D: np.log(D) + np.exp(-ell) + np.sqrt(m)),
        ("minimum(m, 100) / 3", lambda m, ell, D: np.minimum(m, 100) / 3),
        ("maximum(D, 900*N) * 2", lambda m, ell, D: np.maximum(D, 10800 * m**2 * ell) * 2),
        ("2 ** 3 ** 0 * m", lambda m, ell, D: 2 * m),
    ],
)  # fmt: skip
def test_expression_is_what_numpy_makes_of_it(text, expected):
    np.testing.assert_allclose(make_cost(text)(with_size(POINT)), expected(**POINT), rtol=1e-14)


def test_size_is_that_of_the_tables():
    np.testing.assert_array_equal(with_size(POINT)["N"], non_embedding_parameters(POINT["m"], POINT["ell"]))
    assert with_size({**POINT, "N": np.ones(2)})["N"][0] == 1  # N of the law itself comes first


def test_function_gets_what_it_names_and_no_more():
    cost = make_cost(lambda N, D, factor=6: factor * N * D)
    np.testing.assert_allclose(cost(with_size(POINT)), make_cost("6*N*D")(with_size(POINT)))
    assert cost.names == ("N", "D")


def test_names_that_do_not_follow():
    assert make_cost("6*N*D").missing(["m", "ell"]) == ("D",)
    assert make_cost("6*N*D").missing(["m", "ell", "D"]) == ()
    assert make_cost("6*N*D").missing(["m", "D"]) == ("N",)
    assert make_cost("m * batch").missing(["N", "D"]) == ("m", "batch")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "N.__class__", "N[0]", "[N]", "(lambda: N)()", "N if N else D", "N > D",
        "N and D", "'N'", "True * N", "1j * N", "N ^ 2", "N // D", "N @ D", "f(N)", "log", "log(N, D)", "minimum(N)",
        "log(x=N)", "log(*N)", "N :=", "", "6", "6*N*", "N; D", "1e999 * N", "9" * 400 + " * N",
        "(" * 300 + "N" + ")" * 300, "-" * 200 + "N", "open(N)", "{N}", "f'{N}'", "(n for n in N)", "~N", "not N",
    ],
)  # fmt: skip
def test_anything_but_arithmetic_is_refused_in_one_line(text):
    with pytest.raises(InputError) as caught:
        make_cost(text)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("cost must be")


def test_a_tower_of_powers_costs_no_time():
    assert np.isinf(make_cost("9**9**9**9 * N")({"N": np.ones(1)}))


@pytest.mark.parametrize("cost", [3, None, lambda: 1, lambda *numbers: 1, max])
def test_what_is_no_cost(cost):
    with pytest.raises(InputError, match="cost must be"):
        make_cost(cost)


def test_a_function_that_fails_is_named():
    def broken(N):
        raise KeyError("price")

    with pytest.raises(InputError, match="broken: 'price'"):
        make_cost(broken)({"N": np.ones(2)})
    with pytest.raises(InputError, match="cost must be a function"):
        make_cost(lambda N: np.ones(7))({"N": np.ones(2)})
