"""What a cell of a table holds, whatever the type of its column."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from toydepth.fit.law.table.cells import MISSING, NUMBER, TEXT, THOUSANDS, read_numbers


@pytest.mark.parametrize(
    "dtype",
    [
        *("int8", "uint64", "float16", "float32", "Int64", "Float64", "str", "string", "object", "category"),
        *(pd.ArrowDtype(arrow) for arrow in (pa.int32(), pa.float64(), pa.string(), pa.decimal128(20, 1))),
    ],
    ids=str,
)
def test_numbers_of_every_dtype(dtype):
    column = pd.Series(["1", "2", "3"] if "str" in str(dtype) else [1, 2, 3]).astype(dtype)
    values, kinds = read_numbers(column)
    assert values.dtype == np.float64
    assert values.tolist() == [1, 2, 3]
    assert (kinds == NUMBER).all()


@pytest.mark.parametrize(
    ("cell", "value", "kind"),
    [
        (" 3e9 ", 3e9, NUMBER),
        ("1e999", np.inf, NUMBER),
        ("-inf", -np.inf, NUMBER),
        (10**400, np.inf, NUMBER),
        (-(10**400), -np.inf, NUMBER),
        (2**70, 2.0**70, NUMBER),
        (Decimal("1.5"), 1.5, NUMBER),
        (Fraction(1, 4), 0.25, NUMBER),
        (np.float32(0.5), 0.5, NUMBER),
        (None, np.nan, MISSING),
        (pd.NA, np.nan, MISSING),
        (Decimal("NaN"), np.nan, MISSING),
        ("n/a", np.nan, MISSING),
        ("  ", np.nan, MISSING),
        ("12,288", np.nan, THOUSANDS),
        ("1_000", np.nan, THOUSANDS),
        ("1 000.5", np.nan, THOUSANDS),
        ("1,2", np.nan, TEXT),
        ("0x10", np.nan, TEXT),
        ("12k", np.nan, TEXT),
        (True, np.nan, TEXT),
        (np.False_, np.nan, TEXT),
        (1 + 0j, np.nan, TEXT),
        (np.timedelta64(1, "s"), np.nan, TEXT),
        (pd.Timestamp(0), np.nan, TEXT),
        (b"1", np.nan, TEXT),
        ([1], np.nan, TEXT),
    ],
    ids=repr,
)
def test_what_a_cell_holds(cell, value: float, kind: int):
    values, kinds = read_numbers(pd.Series([7, cell], dtype=object))
    np.testing.assert_array_equal(values, [7, value])
    assert kinds.tolist() == [NUMBER, kind]


def test_columns_of_bools_dates_and_complex_numbers_hold_no_numbers():
    for column in (
        pd.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
        pd.Series([True, False], dtype=pd.ArrowDtype(pa.bool_())),
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])),
        pd.Series(pd.to_timedelta([1, 2])),
        pd.Series([1j, 2j]),
    ):
        assert (read_numbers(column)[1] == TEXT).all()
