"""Blocks and stacks of blocks: the residual network, defined once for teachers and students."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

EPSILON = float(jnp.finfo(jnp.float32).eps)
BLOCK_KINDS = ("euler", "rk2")


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
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=0, keepdims=True) + EPSILON)


class Mlp(nnx.Module):
    """mlp(x) = W2^T relu(W1^T x + b1)^2 with hidden width 4 m and no second bias.

    Args:
        width: m.
        key: of the uniform draws: W1, b1 in +-1/sqrt(m), W2 in +-1/sqrt(4 m).

    Call: (width, batch) to (width, batch).
    """

    def __init__(self, width: int, *, key: jax.Array):
        keys = jax.random.split(key, 3)
        self.w1 = nnx.Param(_uniform(keys[0], (width, 4 * width), width))
        self.b1 = nnx.Param(_uniform(keys[1], (4 * width,), width))
        self.w2 = nnx.Param(_uniform(keys[2], (4 * width, width), 4 * width))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns mlp(x), (width, batch)."""
        hidden = self.w1[...].T @ x + self.b1[...][:, None]
        return self.w2[...].T @ jnp.square(jax.nn.relu(hidden))


class Block(nnx.Module):
    """One explicit Euler step: block(x) = x + mlp(rms(x))."""

    mlp_evaluations = 1

    def __init__(self, width: int, *, key: jax.Array):
        self.mlp = Mlp(width, key=key)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns the state after the step, (width, batch)."""
        return x + self.mlp(rms(x))


class MidpointBlock(nnx.Module):
    """One midpoint (Runge-Kutta 2) step with two MLPs: k1 = mlp_1(rms(x)); k2 = mlp_2(rms(x + k1/2)); x + k2."""

    mlp_evaluations = 2

    def __init__(self, width: int, *, key: jax.Array):
        first, second = jax.random.split(key)
        self.mlp_1 = Mlp(width, key=first)
        self.mlp_2 = Mlp(width, key=second)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns the state after the step, (width, batch)."""
        midpoint = x + self.mlp_1(rms(x)) / 2
        return x + self.mlp_2(rms(midpoint))


def make_block(kind: str, width: int, *, key: jax.Array) -> Block | MidpointBlock:
    """Builds a block: 'euler' (one MLP) or 'rk2' (two)."""
    return {"euler": Block, "rk2": MidpointBlock}[kind](width, key=key)


class LayerStack(nnx.Module):
    """Blocks with weights of their own. Every parameter has the layer as its first axis; depth 0 is the identity.

    Layers are scanned, so compile time does not grow with depth. Each is rematerialised in the backward pass (only
    its input is kept): traffic of saved hidden activations costs more than computing them again.
    """

    def __init__(self, block: Block | MidpointBlock):
        self.block = block

    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns the state after the last block, (width, batch)."""
        return self._scan(x, keep=False)[0]

    def hidden(self, x: jax.Array) -> jax.Array:
        """Returns the states before and after every block, (depth + 1, width, batch)."""
        return jnp.concatenate([x[None], self._scan(x, keep=True)[1]])

    def _scan(self, x: jax.Array, keep: bool) -> Any:
        graph, layers = nnx.split(self.block)

        @jax.checkpoint
        def layer(x: jax.Array, weights: nnx.State):
            x = nnx.merge(graph, weights)(x)
            return x, (x if keep else None)

        return jax.lax.scan(layer, x, layers)


class TiedStack(nnx.Module):
    """One block applied `depth` times: the tie is structural, there is a single set of weights."""

    def __init__(self, block: Block | MidpointBlock, depth: int):
        self.block = block
        self.depth = depth

    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns the state after the last block, (width, batch)."""
        return self._scan(x, keep=False)[0]

    def hidden(self, x: jax.Array) -> jax.Array:
        """Returns the states before and after every block, (depth + 1, width, batch)."""
        return jnp.concatenate([x[None], self._scan(x, keep=True)[1]])

    def _scan(self, x: jax.Array, keep: bool) -> Any:
        def layer(x: jax.Array, _: None):
            x = self.block(x)
            return x, (x if keep else None)

        return jax.lax.scan(layer, x, None, length=self.depth)


class Network(nnx.Module):
    """net(x) = rms(block_L( ... block_1(rms(x)) ... )), with a head W_h (width, vocabulary) of its own if given.

    Call: inputs (width, batch) to the final hidden state (width, batch). `hidden` returns the residual stream
    (depth + 1, width, batch), before the final rms. Logits are W_h^T net(x) / T; the head is read by the losses.
    """

    def __init__(self, stack: LayerStack | TiedStack, head: jax.Array | None = None):
        self.stack = stack
        self.head = None if head is None else nnx.Param(head)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns the final hidden state, (width, batch)."""
        return rms(self.stack(rms(x)))

    def hidden(self, x: jax.Array) -> jax.Array:
        """Returns the residual stream (depth + 1, width, batch)."""
        return self.stack.hidden(rms(x))


def _uniform(key: jax.Array, shape: tuple[int, ...], fan_in: int) -> jax.Array:
    bound = fan_in**-0.5
    return jax.random.uniform(key, shape, jnp.float32, -bound, bound)
