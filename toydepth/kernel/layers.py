"""A stack of residual blocks as one call out of XLA, forward and backward; its plain twin is `net.LayerStack`.

XLA on CPU runs a layer as some twenty operations, each of which reads from the second-level cache what the last one
wrote there. Here a block of 64 examples (16 without AVX-512) passes through a layer in the nearest cache, in vectors
of the processor's width. Only the input of every layer is kept for the backward pass.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

Weights = tuple[jax.Array, jax.Array, jax.Array]
"""W1 (layers, stages, m, 4m), b1 (layers, stages, 4m), W2 (layers, stages, 4m, m): one stage is a step of Euler, two
are a midpoint step."""


@jax.custom_vjp
def run_layers(x: jax.Array, w1: jax.Array, b1: jax.Array, w2: jax.Array) -> jax.Array:
    """Returns the state after all layers, (m, batch); `build.why_not` must have said that the library is there.

    Of every layer, y = x + mlp(rms(x)), or with two stages y = x + mlp_2(rms(x + mlp_1(rms(x)) / 2)), with
    mlp(x) = W2^T relu(W1^T x + b1)^2. Differentiable once, backwards, in all arguments; under vmap, one call.

    Args:
        x: (m, batch), float32, as the rest.
        w1: (layers, stages, m, 4m).
        b1: (layers, stages, 4m).
        w2: (layers, stages, 4m, m).

    Raises:
        jax.errors.JaxRuntimeError: when run, for shapes that do not fit one another; for no layers.

    Example:
        >>> import jax.numpy as jnp
        >>> from toydepth.kernel import why_not
        >>> weights = jnp.ones((3, 1, 2, 8)), jnp.ones((3, 1, 8)), jnp.zeros((3, 1, 8, 2))
        >>> bool((run_layers(jnp.ones((2, 5)), *weights) == 1).all()) if not why_not() else True
        True

    Source: docs/notation.md, "The network".
    """
    return run_tied(x, w1, b1, w2, w1.shape[0])


def run_tied(x: jax.Array, w1: jax.Array, b1: jax.Array, w2: jax.Array, depth: int) -> jax.Array:
    """Returns the state after the one layer of the weights (1, stages, ...) was applied `depth` times. No gradient."""
    return _call("toydepth_apply", _like(x))(x, w1, b1, w2, depth=np.int64(depth))


def _forward(x: jax.Array, *weights: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    depth = weights[0].shape[0]
    # The library fills blocks of examples up; their size is the processor's, and divides 64.
    kept = jax.ShapeDtypeStruct((depth, x.shape[0] * (-(-x.shape[1] // 64) * 64)), x.dtype)
    y, inputs = _call("toydepth_forward", (_like(x), kept))(x, *weights, depth=np.int64(depth))
    return y, (inputs, *weights)


def _backward(saved: tuple[jax.Array, ...], dy: jax.Array) -> tuple[jax.Array, ...]:
    inputs, *weights = saved
    call = _call("toydepth_backward", (_like(dy), *map(_like, weights)))
    return tuple(call(inputs, *weights, dy, depth=np.int64(weights[0].shape[0])))


run_layers.defvjp(_forward, _backward)


def _call(name: str, results: Any) -> Any:
    return jax.ffi.ffi_call(name, results, vmap_method="broadcast_all")


def _like(array: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)
