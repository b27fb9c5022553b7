"""A whole training of the paper's bank with one teacher, evaluations included: its memory must not grow with steps."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from benchmarks.bank_row import layout_told
from benchmarks.cases import CASES
from toydepth.bank import choose_layout, make_bank, train


def set_up(case: str) -> tuple[Callable[[], float], dict[str, Any]]:
    """Returns a repetition, which gives its seconds a step, and what it runs on; `case` is the number of steps."""
    config = dataclasses.replace(CASES["paper_mse_one"].config(), steps=int(case))
    layout = choose_layout(config)

    def repeat() -> float:
        bank = make_bank(config, layout)
        begun = time.perf_counter()
        train(bank)
        return (time.perf_counter() - begun) / config.steps

    return repeat, layout_told(layout)
