"""toydepth's own bank."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax

from benchmarks.cases import CASES
from toydepth.bank import Layout, choose_layout, make_bank


def set_up(case: str) -> tuple[Callable[[], float], dict[str, Any]]:
    """Returns a repetition, which gives its seconds a step, and what it runs on."""
    config, steps = CASES[case].config(), CASES[case].steps
    layout = choose_layout(config)
    bank = make_bank(config, layout)
    done = 2
    state = jax.block_until_ready(bank.advance(bank.state, done))

    def repeat() -> float:
        nonlocal state, done
        begun = time.perf_counter()
        done += steps
        state = jax.block_until_ready(bank.advance(state, done))
        return (time.perf_counter() - begun) / steps

    return repeat, layout_told(layout)


def layout_told(layout: Layout) -> dict[str, Any]:
    """What a row says of the devices it ran on."""
    device = f"{layout.count} x {layout.describe()['kind']}"
    return {"device": device, "device_count": layout.count, "layout": layout.in_words()}
