"""The residual branch mlp(rms(x)) as one function with a backward pass of its own, and its plain twin.

What it saves for the backward pass is x alone: traffic of saved hidden activations costs more than computing them
again. Weights come in both orientations, transposed once a step for all layers: XLA on CPU would transpose the small
matrices anew in every product.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

EPSILON = float(jnp.finfo(jnp.float32).eps)


def rms(x: jax.Array) -> jax.Array:
    """Scales every example to root-mean-square 1: x / sqrt(mean_i(x_i^2) + eps), without a learned gain.

    Args:
        x: (width, ...), features first.

    Returns:
        The same shape; eps is the float32 machine epsilon, so that a zero vector stays zero.

    Example:
        >>> rms(jnp.array([[3.0], [4.0]])).round(4).tolist()
        [[0.8485], [1.1314]]

    Source: docs/notation.md, "The network".
    """
    return x * _scale(x)


def plain_branch(x: jax.Array, w1: jax.Array, b1: jax.Array, w2: jax.Array) -> jax.Array:
    """Returns W2^T relu(W1^T rms(x) + b1)^2, differentiated by jax: x (m, batch), W1 (m, 4m), b1 (4m,), W2 (4m, m)."""
    return w2.T @ jnp.square(jax.nn.relu(w1.T @ rms(x) + b1[:, None]))


@jax.custom_vjp
def branch(
    x: jax.Array, w1: jax.Array, b1: jax.Array, w2: jax.Array, w1_flipped: jax.Array, w2_flipped: jax.Array
) -> jax.Array:
    """Returns `plain_branch`, given W1 and W2 transposed as well.

    Gradients reach b1, w2 and, by way of w1_flipped, W1: the product that gives it runs faster in that orientation. So
    w1_flipped must be the transpose of w1 where it is differentiated, not a constant; w1 and w2_flipped get none.

    Example:
        >>> x, w1, b1, w2 = jnp.ones((2, 3)), jnp.ones((2, 8)), jnp.ones(8), jnp.ones((8, 2))
        >>> bool((branch(x, w1, b1, w2, w1.T, w2.T) == plain_branch(x, w1, b1, w2)).all())
        True
    """
    return w2_flipped @ jnp.square(_active(rms(x), b1, w1_flipped))


def _forward(x: jax.Array, *weights: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    return branch(x, *weights), (x, *weights[:-1])


def _backward(saved: tuple[jax.Array, ...], dy: jax.Array) -> tuple[jax.Array | None, ...]:
    x, w1, b1, w2, w1_flipped = saved
    scale = _scale(x)
    normed = x * scale
    active = _active(normed, b1, w1_flipped)
    dhidden = (w2 @ dy) * (2 * active)
    dnormed = w1 @ dhidden
    # d rms: what points along the normed vector changes nothing.
    dx = scale * (dnormed - normed * jnp.mean(normed * dnormed, axis=0, keepdims=True))
    dw1_flipped, db1, dw2 = dhidden @ normed.T, dhidden @ jnp.ones(dhidden.shape[1]), jnp.square(active) @ dy.T
    return dx, None, db1, dw2, dw1_flipped, None


branch.defvjp(_forward, _backward)


def _scale(x: jax.Array) -> jax.Array:
    return jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=0, keepdims=True) + EPSILON)


def _active(normed: jax.Array, b1: jax.Array, w1_flipped: jax.Array) -> jax.Array:
    return jax.nn.relu(w1_flipped @ normed + b1[:, None])
