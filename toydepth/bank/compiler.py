"""Options of the XLA compiler that suit many small matrix products; measured in the lab log."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

# Each core is a device of its own, so nothing is gained from a scheduler that looks for concurrency. Products fused
# with their neighbours, and vectors narrower than the processor's, are slower; so are needless copies of what a loop
# carries.
_CPU: dict[str, Any] = {
    "xla_cpu_enable_concurrency_optimized_scheduler": False,
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
    "xla_cpu_prefer_vector_width": 512,
    "xla_cpu_copy_insertion_use_region_analysis": True,
}


@functools.cache
def compiler_options(platform: str) -> dict[str, Any] | None:
    """Returns the options for a platform, those that this version of XLA knows; None for its own choice.

    Some are experimental, and go with time. A few milliseconds each, once a process.

    Example:
        >>> compiler_options("gpu") is None
        True
    """
    if platform != "cpu":
        return None
    return {name: value for name, value in _CPU.items() if _is_known({name: value})}


def options_to_run_once(platform: str) -> dict[str, Any] | None:
    """Returns the options for a program that runs once, where compiling is all that takes time: fewer optimisations.

    On CPU alone; the numbers are the same (two thirds of the time for the draws of a bank: lab log).
    """
    return {"xla_backend_optimization_level": 1} if platform == "cpu" else None


def _is_known(option: dict[str, Any]) -> bool:
    try:
        jax.jit(jnp.negative, compiler_options=option).lower(jax.ShapeDtypeStruct((), jnp.float32)).compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
