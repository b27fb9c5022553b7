"""Which rows of a table enter a fit; nothing goes uncounted."""

import json
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.reading import read_table
from toydepth.fit.law.table.rows import Rows

SMALL = {"m": [64, 128, 256, 512], "loss": [4.0, 3.0, 2.5, 2.0]}


def message(call) -> str:
    """The one line of an InputError."""
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def reasons(rows: Rows) -> dict[str, tuple[int, ...]]:
    assert rows.num_rows + sum(left.count for left in rows.left_out) == rows.total
    assert all(left.count == len(left.rows) for left in rows.left_out)
    return {left.reason: left.rows for left in rows.left_out}


@pytest.mark.parametrize(("ties", "kept"), [("below", 203), ("rank", 205)])
def test_the_40_highest_losses_of_chinchilla(chinchilla: pd.DataFrame, ties: str, kept: int):
    columns = {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}
    rows = choose_rows(chinchilla, columns, "loss", exclude_highest=40, ties=ties)
    assert (rows.num_rows, rows.total) == (kept, 245)
    assert rows.left_out[0].count == 40
    assert set(reasons(rows)) == {"among the 40 highest losses"} | (
        {"as high as the lowest of the 40 highest losses (ties=rank keeps it)"} if ties == "below" else set()
    )
    np.testing.assert_array_equal(rows.frame()["m"], chinchilla.loc[rows.numbers, "d_model"])
    np.testing.assert_array_equal(rows.frame()["loss"], chinchilla.loc[rows.numbers, "loss"])


def test_the_clean_rows_are_all_kept_in_order():
    rows = choose_rows({**SMALL, "extra": ["x"] * 4}, {"m": "m"}, "loss")
    assert rows.variables["m"].tolist() == SMALL["m"]
    assert rows.loss.tolist() == SMALL["loss"]
    assert rows.numbers.tolist() == [1, 2, 3, 4]
    assert (rows.weights, rows.groups, rows.group_names, rows.left_out, rows.notes) == (None, None, (), (), ())


def test_three_rows_and_columns_that_are_all_equal_are_fine():
    rows = choose_rows({"m": [64] * 3, "loss": [3.0, 2.0, 1.0]}, {"m": "m"}, "loss")
    assert rows.variables["m"].tolist() == [64] * 3


def test_each_fault_has_its_reason_and_the_numbers_of_its_rows():
    table = {
        "d_model": [64, "12,288", "1,024", -3, 0, np.inf, "abc", True, None, "nan", " 3e2 ", 9, 9, 9, 9, 9, "12k"],
        "n_layers": [3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 2, 1, 9, 9, 9, "x"],
        "loss": [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, np.nan, -1.0, "-inf", 3],
    }
    rows = choose_rows(table, {"m": "d_model", "ell": "n_layers"}, "loss", offsets={"ell": 2})
    assert reasons(rows) == {
        "loss is missing (NaN)": (14,),
        "d_model is missing (NaN)": (9, 10),
        "d_model is not a number ('12,288': give --thousands ,)": (2, 3),
        "d_model is not a number ('abc')": (7, 8, 17),
        "loss is infinite": (16,),
        "d_model is infinite": (6,),
        "loss is zero or negative": (15,),
        "d_model is zero or negative": (4, 5),
        "n_layers is not greater than the offset 2": (12, 13),
    }
    assert rows.numbers.tolist() == [1, 11]
    assert rows.variables["m"].tolist() == [64, 300]
    assert rows.variables["ell"].tolist() == [1, 7]
    assert json.loads(json.dumps(rows.left_out[1].to_dict())) == {
        "reason": "d_model is missing (NaN)",
        "count": 2,
        "rows": [9, 10],
    }


def test_thousands_separators_of_a_file(tmp_path: Path):
    path = tmp_path / "runs.csv"
    path.write_text('m,loss\n"12,288",2\n64,3\n')
    assert reasons(choose_rows(read_table(path), {"m": "m"}, "loss")) == {
        "m is not a number ('12,288': give --thousands ,)": (1,)
    }
    rows = choose_rows(read_table(path, thousands=","), {"m": "m"}, "loss")
    assert rows.variables["m"].tolist() == [12288, 64]


def test_integers_and_decimals_that_overflow_numpy():
    table = pd.DataFrame({"N": [2**62, 2**70, 10**400], "D": [Decimal("1e30"), 5, 6], "loss": [3, 2, 1]}, dtype=object)
    rows = choose_rows(table, {"N": "N", "D": "D"}, "loss", offsets={"N": -(2.0**62)})
    assert rows.variables["N"].tolist() == [2.0**63, 2.0**70 + 2.0**62]
    assert rows.variables["D"].tolist() == [1e30, 5]
    assert reasons(rows) == {"N is infinite": (2,)}  # numbered from 0, as the DataFrame is


def test_missing_columns_are_named_with_a_guess_and_what_there_is():
    text = message(lambda: choose_rows(SMALL, {"m": "n"}, "los"))
    assert text == "the column for m must be a column of the table, got 'n'. The table has: m, loss."
    assert "Did you mean 'loss'?" in message(lambda: choose_rows(SMALL, {"m": "m"}, "los"))
    assert "Did you mean 'm'?" in message(lambda: choose_rows(SMALL, {"m": "M"}, "loss"))
    assert "the column for weights" in message(lambda: choose_rows(SMALL, {"m": "m"}, "loss", weights="w"))
    assert "the column for groups" in message(lambda: choose_rows(SMALL, {"m": "m"}, "loss", groups="g"))
    indexed = pd.DataFrame(SMALL).set_index("m")
    assert "reset_index" in message(lambda: choose_rows(indexed, {"m": "m"}, "loss"))
    twice = pd.DataFrame([[1, 2, 3]], columns=["m", "loss", "loss"])
    assert "'loss', which 2 have" in message(lambda: choose_rows(twice, {"m": "m"}, "loss"))


@pytest.mark.parametrize(
    ("columns", "loss", "says"),
    [
        ({}, "loss", "columns must be a dict of symbol to column"),
        ("m", "loss", "columns must be a dict of symbol to column"),
        ({"m": 3}, "loss", "the column for m must be the name of a column, got 3"),
        ({"m": "m"}, None, "the column for loss must be the name of a column, got None"),
        ({3: "m"}, "loss", "the symbols of columns must be text"),
        ({"loss": "m"}, "loss", "the symbols of columns must be text other than 'loss'"),
        ({"m": "m", "ell": "m"}, "loss", "got 'm', as for m"),
        ({"m": "loss"}, "loss", "got 'loss', as for m"),
    ],
)
def test_columns_that_make_no_sense(columns, loss, says: str):
    assert says in message(lambda: choose_rows(SMALL, columns, loss))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"exclude_highest": 4}, "exclude_highest must be less than the number of rows that can be used, got 4 of 4"),
        ({"exclude_highest": -1}, "exclude_highest must be an integer, 0 or more, got -1"),
        ({"exclude_highest": 1.0}, "exclude_highest must be an integer"),
        ({"exclude_highest": True}, "exclude_highest must be an integer"),
        ({"ties": "rnk"}, "Did you mean 'rank'?"),
        ({"duplicates": None}, "duplicates must be 'keep' or 'drop', got None"),
        ({"offsets": {"ell": 2}}, "offsets must be for variables that have a column, got 'ell'"),
        ({"offsets": {"m": np.nan}}, "the offset of m must be a finite number, got nan"),
        ({"offsets": {"m": "2"}}, "the offset of m must be a finite number, got '2'"),
        ({"offsets": 2}, "offsets must be a dict"),
        ({"query": "m >"}, "query must be a condition on the columns, got 'm >': invalid syntax"),
        ({"query": "los < 3"}, "name 'los' is not defined. Did you mean 'loss'?"),
        ({"query": "m"}, "query must be true or false for each row"),
        ({"query": "m = 3"}, "query must be true or false for each row"),
        ({"query": "True"}, "query must be true or false for each row"),
        ({"query": "m.max() > 3"}, "query must be true or false for each row"),
        ({"query": "eval('1') == m"}, "with eval(). Of functions there are: sin"),
        ({"query": "loss.to_csv('x') == 1"}, "with .to_csv"),
        ({"query": "m > 10**10**8"}, "a power of numbers that is too large"),
        ({"query": "m == [x for x in (1, 2)]"}, "with a loop"),
        ({"query": "m == 'a' * 10"}, "computes with text"),
        ({"query": "m > 'x'"}, "query must be a condition on the columns"),
        ({"query": "m > @options"}, "query must be a condition on the columns"),
        ({"query": ""}, "query must be a condition, got ''"),
        ({"query": "m > 1e6"}, "query must be a condition that some row meets, got 'm > 1e6', which none of 4 does"),
    ],
)
def test_options_out_of_range(options, says: str):
    assert says in message(lambda: choose_rows(SMALL, {"m": "m"}, "loss", **options))


def test_a_query_sees_numbers_and_any_column():
    table = {
        "m": ["64", "1e2", "x", "256"],
        "loss": [4, 3, 2, 1],
        "split": ["a", "b", "a", "a"],
        "n (k)": ["1", "2", "3", "4"],
    }
    rows = choose_rows(table, {"m": "m"}, "loss", query="m >= 64 and\n split == 'a' and `n (k)` > 1")
    assert rows.numbers.tolist() == [4]
    assert reasons(rows) == {"not in the query 'm >= 64 and split == 'a' and `n (k)` > 1'": (1, 2, 3)}
    assert rows.notes == ("1 of the rows not in the query hold no number in m ('x')",)


def test_missing_values_of_nullable_columns_do_not_meet_a_query():
    table = pd.DataFrame(
        {"m": pd.array([1, 2, 3], dtype="Int64"), "loss": [3, 2, 1], "ok": pd.array([True, None, False])}
    )
    assert choose_rows(table, {"m": "m"}, "loss", query="ok").numbers.tolist() == [0]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("m ** 2 > 5", [2, 3]), ("log(m) > 0.5", [1, 2, 3]), ("m > m.mean()", [2, 3]), ("m % 2 == 0", [1, 3]),
        ("m.between(2, 3)", [1, 2]), ("m in [1, 4]", [0, 3]), ("name.str.startswith('a')", [0, 2]),
        ("index > 1 and not m.isna()", [2, 3]), ("`the loss` <= the_top / 2 + 0 * m", [2, 3]),
    ],
)  # fmt: skip
def test_what_a_query_may_ask(query, kept):
    table = pd.DataFrame({"m": [1, 2, 3, 4], "name": ["a", "b", "ab", "c"], "loss": [4.0, 3, 2, 1], "the_top": 4.0})
    table["the loss"] = table["loss"]
    assert choose_rows(table, {"m": "m"}, "loss", query=query).numbers.tolist() == kept


def test_ties_by_rank_drop_the_earlier_row_first():
    table = {"m": [1, 2, 3, 4, 5], "loss": [3.0, 2.0, 3.0, 3.0, 1.0]}
    rank = choose_rows(table, {"m": "m"}, "loss", exclude_highest=2, ties="rank")
    assert rank.numbers.tolist() == [2, 4, 5]
    below = choose_rows(table, {"m": "m"}, "loss", exclude_highest=2)
    assert below.numbers.tolist() == [2, 5]
    assert sum(left.count for left in below.left_out) == 3


def test_the_highest_are_those_of_the_rows_left():
    table = {"m": [1, 2, "x", 4], "loss": [3.0, 2.0, 9.0, 1.0]}
    rows = choose_rows(table, {"m": "m"}, "loss", exclude_highest=1)
    assert rows.numbers.tolist() == [2, 4]
    text = message(lambda: choose_rows(table, {"m": "m"}, "loss", exclude_highest=3))
    assert "got 3 of 3 rows (1 m is not a number ('x'))" in text


def test_repeated_rows_are_kept_with_a_note_or_left_out():
    table = {"m": [1, 1, 2, 1, 1], "loss": [3.0, 3.0, 2.0, 2.5, 3.0], "g": ["a", "b", "a", "a", "a"]}
    kept = choose_rows(table, {"m": "m"}, "loss")
    assert kept.num_rows == 5
    assert kept.notes == ("2 rows repeat another row exactly (kept; duplicates=drop leaves them out)",)
    dropped = choose_rows(table, {"m": "m"}, "loss", duplicates="drop")
    assert reasons(dropped) == {"repeats an earlier row exactly": (2, 5)}
    assert dropped.notes == ()
    by_group = choose_rows(table, {"m": "m"}, "loss", groups="g", duplicates="drop")
    assert reasons(by_group) == {"repeats an earlier row exactly": (5,)}


def test_weights_are_of_mean_1_over_the_used_rows():
    table = {"m": [1, 2, 3, 4, 5, 6], "loss": [6, 5, 4, 3, 2, 1], "w": [1, 3, 0, -1, None, "x"]}
    rows = choose_rows(table, {"m": "m"}, "loss", weights="w")
    assert rows.weights is not None
    assert rows.weights.tolist() == [0.5, 1.5]
    assert reasons(rows) == {
        "w is missing (NaN)": (5,),
        "w is not a number ('x')": (6,),
        "w is negative": (4,),
        "w is zero, which is no weight": (3,),
    }
    huge = choose_rows({"m": [1, 2], "loss": [2, 1], "w": [1e308, 1e308]}, {"m": "m"}, "loss", weights="w")
    assert huge.weights is not None
    assert huge.weights.tolist() == [1, 1]


def test_groups_are_text_or_numbers_and_a_row_without_one_is_left_out():
    table = {
        "m": [1, 2, 3, 4, 5],
        "loss": [5, 4, 3, 2, 1],
        "g": ["b", None, "a", " ", "b"],
        "width": [64.0, 64, 2.5, 8, 8],
    }
    rows = choose_rows(table, {"m": "m"}, "loss", groups="g")
    assert rows.groups is not None
    assert (rows.groups.tolist(), rows.group_names) == ([0, 1, 0], ("b", "a"))
    assert reasons(rows) == {"g is missing": (2, 4)}
    assert choose_rows(table, {"m": "m"}, "loss", groups="width").group_names == ("64", "2.5", "8")
    lists = {**SMALL, "g": [[1]] * 4}
    assert "lists or the like" in message(lambda: choose_rows(lists, {"m": "m"}, "loss", groups="g"))


def test_where_no_row_is_left_the_reasons_are_listed():
    table = {"m": ["x", -1, None], "loss": [3, 2, 1]}
    text = message(lambda: choose_rows(table, {"m": "m"}, "loss"))
    assert "none of 3: 1 m is missing (NaN); 1 m is not a number ('x'); 1 m is zero or negative" in text
    equal = {"m": [1, 2, 3], "loss": [1, 1, 1]}
    assert "ties=rank" in message(lambda: choose_rows(equal, {"m": "m"}, "loss", exclude_highest=1))


def test_take():
    table = {"m": [1, 2, 3, 4], "loss": [4, 3, 2, 1], "w": [1, 1, 2, 4], "g": ["a", "b", "b", "a"]}
    rows = choose_rows(table, {"m": "m"}, "loss", weights="w", groups="g")
    part = rows.take([False, True, True, False], "held out")
    assert part.numbers.tolist() == [2, 3]
    assert reasons(part) == {"held out": (1, 4)}
    assert part.weights is not None and part.groups is not None
    np.testing.assert_allclose(part.weights, [2 / 3, 4 / 3])
    assert (part.groups.tolist(), part.group_names) == ([1, 1], ("a", "b"))
    resampled = rows.take([3, 3, 0])
    assert resampled.numbers.tolist() == [4, 4, 1]
    assert resampled.left_out == ()
    assert rows.num_rows == 4
    assert rows.take([]).num_rows == 0
    for wrong in ([True], [4], [-1], [0.5], 3, "x"):
        assert "mask_or_index" in message(lambda wrong=wrong: rows.take(wrong))
    assert "4 held out" in message(lambda: rows.take([], "held out"))


def test_the_table_is_not_changed():
    table = pd.DataFrame({"m": ["64", "x"], "loss": [2.0, 1.0]}, index=["a", "b"])
    before = table.copy()
    choose_rows(table, {"m": "m"}, "loss", query="m > 1")
    pd.testing.assert_frame_equal(table, before)


def test_a_hundred_thousand_rows_take_a_fraction_of_a_second():
    count = 100_000
    draws = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "m": draws.integers(1, 9999, count),
            "ell": np.where(np.arange(count) % 7, draws.integers(1, 99, count).astype(str), "x"),
            "loss": np.where(np.arange(count) % 11, draws.random(count) + 1, np.nan),
            "g": draws.choice(list("abc"), count),
        }
    )
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        rows = choose_rows(table, {"m": "m", "ell": "ell"}, "loss", groups="g", query="m > 10", exclude_highest=100)
        seconds.append(time.perf_counter() - start)
    assert sum(left.count for left in rows.left_out) + rows.num_rows == count
    assert min(seconds) < 0.5  # generous: a slow machine under load passes, a loop over the rows does not
