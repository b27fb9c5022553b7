"""How long the training program of a bank of paper width takes to compile, from the trace on."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax

from benchmarks.bank_row import layout_told
from benchmarks.cases import CASES
from toydepth.bank import make_bank, prepare_devices


def set_up(case: str) -> tuple[Callable[[], float], dict[str, Any]]:
    """Returns a repetition, which gives its seconds; `case` names the depths, as in '6' or '6-12-16-24-32-48'."""
    config = CASES["paper_mse_one"].config()
    depths = tuple(int(depth) for depth in case.split("-"))
    config = dataclasses.replace(config, student=dataclasses.replace(config.student, depths=depths))
    layout = prepare_devices(config)

    def repeat() -> float:
        bank = make_bank(config, layout)
        jax.clear_caches()
        begun = time.perf_counter()
        jax.block_until_ready(bank.advance(bank.state, 0))  # no step: only the compilation
        return time.perf_counter() - begun

    return repeat, layout_told(layout)
