"""The rows of a fit, and a record of those left out."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from toydepth.errors import InputError
from toydepth.fit.checks import plain, refuse


@dataclass(frozen=True)
class LeftOutRows:
    """Rows kept out of a fit for one reason: how many, and their numbers in the table."""

    reason: str
    count: int
    rows: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns {reason, count, rows} for JSON."""
        return plain({"reason": self.reason, "count": self.count, "rows": self.rows})


@dataclass(frozen=True, eq=False)
class Rows:
    """The n rows of a fit, and a record of every other row of the table.

    variables: symbol -> (n,) positive numbers, the offset already subtracted, in the units of the table; loss: (n,);
    weights: (n,) of mean 1, or None; groups: (n,) places in group_names, or None; numbers: (n,) numbers of the rows in
    the table (from 1 where `read_table` read it); total: rows of the table, num_rows + those of left_out.
    """

    variables: dict[str, np.ndarray]
    loss: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray | None
    group_names: tuple[str, ...]
    numbers: np.ndarray
    left_out: tuple[LeftOutRows, ...]
    notes: tuple[str, ...]
    total: int

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.loss)

    def take(self, mask_or_index: ArrayLike, reason: str | None = None) -> Rows:
        """Returns some of the rows: by a bool for each, or by places from 0, which may repeat (a bootstrap).

        Weights are of mean 1 again. group_names, and so the places in it, stay as they are: two parts of the same rows
        speak of the same groups.

        Args:
            mask_or_index: (n,) bools, or whole numbers in 0 ... n - 1.
            reason: if given, the rows not taken stand in left_out under it.

        Raises: InputError for a mask of the wrong length, a place that is none, or a reason that leaves no row.

        >>> from toydepth.fit.law.table.choose import choose_rows
        >>> rows = choose_rows({"m": [64, 128, 256], "loss": [3.0, 2.5, 2.2]}, {"m": "m"}, "loss")
        >>> rows.take(rows.loss < 3, "held out").left_out
        (LeftOutRows(reason='held out', count=1, rows=(1,)),)
        """
        places = self._places(mask_or_index)
        left_out = self.left_out
        if reason is not None:
            lost = np.ones(self.num_rows, dtype=bool)
            lost[places] = False
            left_out += record(self.numbers[lost], reason)
            if not len(places):
                raise none_left(self.total, left_out)
        return replace(
            self,
            variables={symbol: values[places] for symbol, values in self.variables.items()},
            loss=self.loss[places],
            weights=None if self.weights is None else mean_one(self.weights[places]),
            groups=None if self.groups is None else self.groups[places],
            numbers=self.numbers[places],
            left_out=left_out,
        )

    def frame(self) -> pd.DataFrame:
        """Returns the variables, offsets subtracted, and the loss as a table; its index is the row numbers.

        >>> from toydepth.fit.law.table.choose import choose_rows
        >>> choose_rows({"m": [64, 128], "loss": [3.0, 2.5]}, {"m": "m"}, "loss").frame()
                 m  loss
        row
        1     64.0   3.0
        2    128.0   2.5
        """
        return pd.DataFrame({**self.variables, "loss": self.loss}, index=pd.Index(self.numbers, name="row"))

    def unshifted(self, offsets: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Returns the variables as they stand in the table, {symbol: (n,)}: what was subtracted is put back."""
        return {symbol: values + offsets.get(symbol, 0.0) for symbol, values in self.variables.items()}

    def _places(self, given: ArrayLike) -> np.ndarray:
        array = np.asarray(given)
        advice = f"There are {self.num_rows} rows."
        if array.ndim != 1 or (array.size and array.dtype.kind not in "biu"):
            raise refuse("mask_or_index", "a list of bools or whole numbers", reprlib.repr(given), advice)
        if array.dtype.kind == "b":
            if len(array) != self.num_rows:
                raise refuse("mask_or_index", "a bool for each row", f"{len(array)} bools", advice)
            return np.flatnonzero(array)
        outside = array[(array < 0) | (array >= self.num_rows)]
        if outside.size:
            raise refuse("mask_or_index", f"in 0 ... {self.num_rows - 1}", f"{outside[0]}", advice)
        return array.astype(np.int64)


def record(numbers: np.ndarray, reason: str) -> tuple[LeftOutRows, ...]:
    """Returns the rows of one reason as a tuple to add: an empty one where there are none."""
    return (LeftOutRows(reason, len(numbers), tuple(numbers.tolist())),) if len(numbers) else ()


def reasons(left_out: tuple[LeftOutRows, ...]) -> str:
    """Returns how many rows went for which reasons, in one line."""
    return "; ".join(f"{left.count} {left.reason}" for left in left_out)


def none_left(total: int, left_out: tuple[LeftOutRows, ...]) -> InputError:
    """Builds the error of a table of which no row can be used."""
    got = f"none of {total}: {reasons(left_out)}"
    return refuse("table", "one with rows that can be used", got, "Correct these cells, or leave out less.")


def mean_one(weights: np.ndarray) -> np.ndarray:
    """Returns weights scaled to a mean of 1."""
    # By the highest first: the sum of very large weights is infinite.
    scaled = weights / weights.max(initial=0.0) if weights.size else weights
    return scaled / scaled.mean() if weights.size else weights
