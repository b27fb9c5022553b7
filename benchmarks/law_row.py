"""Scaling laws: seconds of a whole answer, and of a large table. No yardstick: the numbers to beat are in the cases."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from toydepth.fit.law import fit_law

# Rows. `answer`: 64 starts, covariance, 7 profiles, 1000 resamples. `large`: minimum, covariance, verdicts.
_ROWS = {"answer": 203, "large": 100_000}


def set_up(case: str) -> tuple[Callable[[], float], dict[str, Any]]:
    """Makes a table of simulated losses; a repetition fits 7 parameters to it."""
    table = _table(_ROWS[case])
    intervals = "all" if case == "answer" else "auto"

    def repeat() -> float:
        begun = time.perf_counter()
        fit_law(table, "decomposed", {"m": "m", "ell": "ell", "D": "D"}, intervals=intervals)
        return time.perf_counter() - begun

    repeat()
    return repeat, {"device": "cpu", "device_count": 1}


def _table(rows: int) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    m, ell = 2 ** generator.uniform(8, 13, rows), 2 ** generator.uniform(2, 6, rows)
    data = 10 ** generator.uniform(9, 12, rows)
    loss = (275 / m**0.95 + 6.7 / ell**1.3 + 529 / data**0.3 + 1.75) * np.exp(0.0056 * generator.normal(size=rows))
    return pd.DataFrame({"m": m, "ell": ell, "D": data, "loss": loss})
