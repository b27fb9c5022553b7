"""Columns made of others; tau against brute-force sums."""

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.derive import add_columns, non_embedding_parameters
from toydepth.fit.law.table.tau import tau_from_rates, tau_from_schedule

TABLE = pd.DataFrame(
    {
        "d_model": [1, 2, 3],
        "n layers": ["1", "x", "3"],
        "split": ["a", "b", "c"],
        "spoilt": ["12,288", "1", "2"],
        "lambda": [1, 2, 3],
        "big": [2**62, 2**62, 1],
        "gone": [None, None, None],
    },
    index=[1, 2, 3],
)


def message(call) -> str:
    """The one line of an InputError."""
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def brute_force(step, peak, total, kind, warmup=0, final=0.0, decay=0.0) -> float:
    """The sum as its definition has it, one update after the other."""
    tau = 0.0
    for s in range(1, step + 1):
        if s <= warmup:
            tau += peak * s / warmup
            continue
        if kind == "constant":
            shape = 1.0
        elif kind == "wsd":
            shape = min(1.0, 1 - (s - total + decay * total) / (decay * total))
        else:
            x = (s - warmup) / (total - warmup)
            shape = 1 - x if kind == "linear" else (1 + np.cos(np.pi * x)) / 2
        tau += peak * (shape if kind == "constant" else final + (1 - final) * shape)
    return tau


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("N = 12 * d_model**2 * `n layers`", [12, np.nan, 324]),
        ("N=log(exp(d_model)) + sqrt(4)", [3, 4, 5]),
        ("N = -d_model / 2 - +1", [-1.5, -2, -2.5]),
        ("N = `lambda` * 2", [2, 4, 6]),
        ("N = big * 4", [2.0**64, 2.0**64, 4]),
        ("N = 3e9", [3e9] * 3),
        ("N = 1 / (d_model - 1)", [np.inf, 1, 0.5]),
        ("N = log(1 - d_model)", [-np.inf, np.nan, np.nan]),
        ("N = d_model\n * 2", [2, 4, 6]),
    ],
)
def test_expressions(expression: str, values: list[float]):
    table = add_columns(TABLE, [expression])
    np.testing.assert_allclose(table["N"], values)
    assert table.index.tolist() == [1, 2, 3]
    assert "N" not in TABLE


def test_expressions_see_those_before_them_and_rows_count_what_they_lack():
    table = add_columns(TABLE, ["N = d_model * `n layers`", "C = 6 * N"])
    table["loss"] = 1.0
    rows = choose_rows(table, {"C": "C"}, "loss")
    assert rows.variables["C"].tolist() == [6, 54]
    assert [(left.reason, left.rows) for left in rows.left_out] == [("C is missing (NaN)", (2,))]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("N = d_modl", "Did you mean 'd_model'?"),
        ("N = `nope`", "got 'nope'"),
        ("N = log", "got 'log'"),
        ("d_model = 3", "got 'd_model', which the table has"),
        ("N = d_model^2", "Write ** for a power"),
        ("N == 3", "must be name = expression"),
        ("N", "must be name = expression"),
        ("= 3", "must be name = expression"),
        ("N =", "must be name = expression"),
        ("2N = 3", "must be name = expression"),
        ("N = (d_model", "which is no expression"),
        ("N = d_model; 3", "which is no expression"),
        ("N = n layers", "Put `backticks` around"),
        ("N = @x", "got '@'"),
        ("N = d_model.__class__", "got '__'"),
        ("N = __import__('os')", "got '__'"),
        ("N = d_model.T", "got attribute"),
        ("N = d_model.max()", "got a call of d_model.max"),
        ("N = sin(d_model)", "got a call of sin"),
        ("N = log(d_model, 2)", "got log of other than one number"),
        ("N = d_model[0]", "got subscript"),
        ("N = d_model > 2", "got compare"),
        ("N = 'a'", "got 'a'"),
        ("N = True", "got True"),
        ("N = 1e5j", "got 100000j"),
        ("N = 10**400 * d_model", "a power of numbers that is too large"),
        ("N = split * 2", "got split with 'a'"),
        ("N = spoilt * 2", "got spoilt with '12,288': give --thousands ,"),
        ("N = gone * 2", "got gone, which is all missing"),
    ],
)
def test_expressions_that_are_refused(expression: str, says: str):
    assert says in message(lambda: add_columns(TABLE, [expression]))


@pytest.mark.parametrize("expressions", ["N = 3", [3], None])
def test_expressions_are_a_list_of_texts(expressions):
    assert "expressions must be a list of texts" in message(lambda: add_columns(TABLE, expressions))


def test_non_embedding_parameters():
    # GPT-3 of 96 layers, 12288 wide: 173.9e9 of its 175e9 parameters.
    assert non_embedding_parameters(12288, 96) == 173_946_175_488
    np.testing.assert_array_equal(non_embedding_parameters([1, 2, np.nan], [1, 3, 1]), [12, 144, np.nan])
    assert non_embedding_parameters(np.array([2**31]), [100])[0] == 12.0 * 2.0**62 * 100  # beyond int64
    assert "width must be greater than 0, got -1 (number 2)" in message(lambda: non_embedding_parameters([1, -1], 1))
    assert "depth must be numbers, got 'a'" in message(lambda: non_embedding_parameters(1, "a"))
    assert "must be of one length" in message(lambda: non_embedding_parameters([1, 2], [1, 2, 3]))


def test_rates_logged_at_every_step_are_summed():
    rates = np.random.default_rng(0).random(50)
    np.testing.assert_allclose(tau_from_rates(np.arange(1, 51), rates), np.cumsum(rates))
    np.testing.assert_allclose(tau_from_rates(np.arange(50), rates), np.cumsum(rates) - rates[0])


def test_rates_between_logged_steps_lie_on_lines_in_each_run():
    draws = np.random.default_rng(1)
    steps = {"b": np.array([3, 10, 11, 40]), "a": np.array([0, 25])}
    rates = {run: draws.random(len(at)) for run, at in steps.items()}
    rows = [(run, s, r) for run in steps for s, r in zip(steps[run], rates[run], strict=True)]
    rows = [rows[i] for i in draws.permutation(len(rows))]
    tau = tau_from_rates([s for _, s, _ in rows], [r for _, _, r in rows], [run for run, _, _ in rows])
    for (run, step, _), found in zip(rows, tau, strict=True):
        # np.interp holds the first rate before the first logged step, as documented.
        np.testing.assert_allclose(found, np.interp(np.arange(1, step + 1), steps[run], rates[run]).sum())


def test_rates_of_a_linear_schedule_logged_rarely_give_its_exact_sum():
    total, peak = 1000, 3e-4
    steps = np.array([1, 70, 500, 1000])
    rates = peak * (1 - steps / total)
    exact = [brute_force(s, peak, total, "linear") for s in steps]
    np.testing.assert_allclose(tau_from_rates(steps, rates), exact)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1, 2, 1], [1, 1, 1], ["a", "a", "a"]), "steps must be distinct in each run, got run 'a', step 1 twice"),
        (([5, 5], [1, 1]), "got step 5 twice"),
        (([1, 2], [1, 1], ["a", None]), "runs must be a name for each step, got none (number 2)"),
        (([1, 2], [1, 1], ["a"]), "runs must be one name for each step, got 1 for 2 steps"),
        (([1], [1], [[[1]]]), "runs must be numbers or text"),
        (([1.5], [1]), "steps must be whole numbers, 0 or more, got 1.5"),
        (([-1], [1]), "steps must be whole numbers, 0 or more, got -1"),
        (([1, np.nan], [1, 1]), "steps must be whole numbers, 0 or more, got nan (number 2)"),
        (([1], ["x"]), "rates must be numbers, got 'x'"),
        (([1], [-0.1]), "rates must be finite and 0 or more, got -0.1"),
        (([1], [np.inf]), "rates must be finite and 0 or more, got inf"),
        (([1], [None]), "rates must be finite and 0 or more, got nan"),
        (([1, 2], [1, 2, 3]), "must be of one length"),
        (([[1, 2]], [[1, 2]]), "steps must be a list of numbers"),
    ],
)
def test_logged_rates_that_are_refused(arguments, says: str):
    assert says in message(lambda: tau_from_rates(*arguments))


def test_no_rates_give_no_tau():
    assert tau_from_rates([], []).shape == (0,)


@pytest.mark.parametrize("warmup", [0, 1, 13, 60])
@pytest.mark.parametrize("final", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(
    ("kind", "decay"),
    [("constant", None), ("linear", None), ("cosine", None), ("wsd", 0.25), ("wsd", 0.123), ("wsd", 0.005)],
)
def test_tau_of_schedules_is_the_sum_over_updates(kind: str, decay: float | None, final: float, warmup: int):
    total, peak = 97, 0.02
    options = {"kind": kind, "warmup_steps": warmup, "final_fraction": final, "decay_fraction": decay}
    tau = tau_from_schedule(np.arange(total + 1), peak=peak, total_steps=total, **options)
    exact = [brute_force(s, peak, total, kind, warmup, final, decay or 0.0) for s in range(total + 1)]
    np.testing.assert_allclose(tau, exact, rtol=1e-12, atol=1e-15)


def test_every_argument_of_a_schedule_may_be_of_each_run():
    steps, peak, total = np.array([5, 20, 9]), np.array([1.0, 0.5, 0.25]), np.array([10, 40, 9])
    warmup, final = np.array([2, 0, 9]), np.array([0.0, 0.5, 0.1])
    tau = tau_from_schedule(steps, peak=peak, total_steps=total, warmup_steps=warmup, final_fraction=final)
    exact = [brute_force(*one, "cosine", w, f) for *one, w, f in zip(steps, peak, total, warmup, final, strict=True)]
    np.testing.assert_allclose(tau, exact)
    assert tau_from_schedule(4, peak=1, total_steps=4, kind="constant") == 4
    np.testing.assert_allclose(
        tau_from_schedule(total, peak=2, total_steps=total, kind="wsd", decay_fraction=[0.1, 0.2, 0.3]),
        [brute_force(t, 2, t, "wsd", decay=d) for t, d in zip(total, [0.1, 0.2, 0.3], strict=True)],
    )


def test_a_long_schedule_keeps_its_digits():
    total = 10**9
    # The cosine's rates average peak / 2; the last update's rate is 0, not peak.
    tau = tau_from_schedule(total, peak=1.0, total_steps=total)
    np.testing.assert_allclose(tau, (total - 1) / 2, rtol=1e-12)


def test_tau_of_pythia(public):
    table = public("pythia_fineweb_loss_reconstructed.csv")
    tau = tau_from_schedule(table["step"], peak=1, total_steps=143_000, warmup_steps=1430, final_fraction=0.1)
    np.testing.assert_allclose(tau, table["tau_norm"], rtol=1e-4)


@pytest.mark.parametrize(
    ("steps", "options", "says"),
    [
        (11, {}, "steps must be at most total_steps, got 11"),
        ([1, 2.5], {}, "steps must be whole numbers, 0 or more, got 2.5 (number 2)"),
        (-1, {}, "steps must be whole numbers"),
        ("x", {}, "steps must be numbers, got 'x'"),
        (5, {"kind": "cosin"}, "Did you mean 'cosine'?"),
        (5, {"kind": 3}, "kind must be one of constant, linear, cosine, wsd, got 3"),
        (5, {"kind": "wsd"}, "decay_fraction must be given for wsd"),
        (5, {"decay_fraction": 0.2}, "got 0.2 with cosine"),
        (5, {"kind": "wsd", "decay_fraction": 0}, "decay_fraction must be in (0, 1], got 0"),
        (5, {"kind": "wsd", "decay_fraction": 0.5, "warmup_steps": 6}, "warmup_steps must be at most total_steps (1 -"),
        (5, {"warmup_steps": 11}, "warmup_steps must be at most total_steps, got 11"),
        (5, {"warmup_steps": 0.5}, "warmup_steps must be whole numbers"),
        (5, {"total_steps": np.nan}, "total_steps must be whole numbers"),
        (5, {"final_fraction": 1.5}, "final_fraction must be between 0 and 1, got 1.5"),
        (5, {"peak": -1}, "peak must be finite and 0 or more, got -1"),
        (5, {"peak": np.nan}, "peak must be finite and 0 or more, got nan"),
        ([1, 2, 3], {"peak": [1, 2]}, "must be of one length"),
    ],
)
def test_schedules_that_are_refused(steps, options, says: str):
    assert says in message(lambda: tau_from_schedule(steps, **{"peak": 1, "total_steps": 10, **options}))
