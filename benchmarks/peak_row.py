"""The machine's own rate of float32 matrix products: what every other row is measured against."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax

SIZE = 2048


def set_up(case: str) -> tuple[Callable[[], float], dict[str, str]]:
    """Returns a repetition, which gives its seconds a product of two SIZE x SIZE matrices, and what it runs on."""
    jax.config.update("jax_default_matmul_precision", "highest")
    times = 2 if jax.default_backend() == "cpu" else 50
    a = jax.random.normal(jax.random.key(0), (SIZE, SIZE)) / SIZE**0.5
    product = jax.jit(lambda a: jax.lax.fori_loop(0, times, lambda _, c: a @ c, a))
    product(a).block_until_ready()

    def repeat() -> float:
        begun = time.perf_counter()
        product(a).block_until_ready()
        return (time.perf_counter() - begun) / times

    return repeat, {"device": f"1 x {jax.devices()[0].device_kind}, all threads"}


def product_flops() -> float:
    """Operations of one product."""
    return 2.0 * SIZE**3
