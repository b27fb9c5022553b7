"""Arguments that are numbers, one for each row: made of one shape, and checked."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from toydepth.fit.checks import refuse
from toydepth.fit.law.table.cells import TEXT, name_some, read_numbers, show_cell


def broadcast(**arguments: ArrayLike) -> dict[str, np.ndarray]:
    """Returns the arguments as float64 arrays of one shape; raises InputError."""
    arrays = {}
    for name, given in arguments.items():
        column = pd.Series(np.ravel(np.asarray(given, dtype=object)), dtype=object)
        values, kinds = read_numbers(column)
        bad = np.flatnonzero(kinds >= TEXT)
        if bad.size:
            raise refuse(name, "numbers", show_cell(column.iloc[int(bad[0])]), "Use NaN where one is missing.")
        arrays[name] = values.reshape(np.shape(given))
    try:
        return dict(zip(arrays, (array.copy() for array in np.broadcast_arrays(*arrays.values())), strict=True))
    except ValueError:
        shapes = name_some([f"{name} {array.shape}" for name, array in arrays.items() if array.ndim])
        raise refuse("the arguments", "of one length", shapes, "Give one number for each row.") from None


def check_all(name: str, values: np.ndarray, good: np.ndarray, condition: str, advice: str) -> None:
    """Raises InputError, with the first number that is not good."""
    bad = np.flatnonzero(~good)
    if bad.size:
        place = f" (number {bad[0] + 1})" if values.size > 1 else ""
        raise refuse(name, condition, f"{values.ravel()[bad[0]]:g}{place}", advice)
