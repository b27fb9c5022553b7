"""Blocks and stacks of blocks: the residual network, defined once for teachers and students."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from toydepth import kernel as native
from toydepth.net.branch import branch, rms

BLOCK_KINDS = ("euler", "rk2")

KERNELS = ("xla", "native")
"""What runs a stack: XLA, layer by layer, or one call of the library in `toydepth.kernel`, where that can be had."""

Flipped = Any
"""The transposed weights of a block, as `flip` returns them."""


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

    def flip(self) -> Flipped:
        """Returns (W1^T, W2^T), of one layer or of a stack of them."""
        return tuple(jnp.swapaxes(w[...], -1, -2) for w in (self.w1, self.w2))

    def branch(self, x: jax.Array, flipped: Flipped) -> jax.Array:
        """Returns mlp(rms(x)), (width, batch)."""
        return branch(x, self.w1[...], self.b1[...], self.w2[...], *flipped)


class Block(nnx.Module):
    """One explicit Euler step: block(x) = x + mlp(rms(x))."""

    mlp_evaluations = 1

    def __init__(self, width: int, *, key: jax.Array):
        self.mlp = Mlp(width, key=key)

    def flip(self) -> Flipped:
        """Returns the transposed weights that a call takes; a stack of layers is transposed at once."""
        return self.mlp.flip()

    @property
    def stages(self) -> tuple[Mlp, ...]:
        """The MLPs of a step, in the order in which they run."""
        return (self.mlp,)

    def __call__(self, x: jax.Array, flipped: Flipped | None = None) -> jax.Array:
        """Returns the state after the step, (width, batch)."""
        return x + self.mlp.branch(x, flipped or self.flip())


class MidpointBlock(nnx.Module):
    """One midpoint (Runge-Kutta 2) step with two MLPs: k1 = mlp_1(rms(x)); k2 = mlp_2(rms(x + k1/2)); x + k2."""

    mlp_evaluations = 2

    def __init__(self, width: int, *, key: jax.Array):
        first, second = jax.random.split(key)
        self.mlp_1 = Mlp(width, key=first)
        self.mlp_2 = Mlp(width, key=second)

    def flip(self) -> Flipped:
        """Returns the transposed weights that a call takes; a stack of layers is transposed at once."""
        return self.mlp_1.flip(), self.mlp_2.flip()

    @property
    def stages(self) -> tuple[Mlp, ...]:
        """The MLPs of a step, in the order in which they run."""
        return self.mlp_1, self.mlp_2

    def __call__(self, x: jax.Array, flipped: Flipped | None = None) -> jax.Array:
        """Returns the state after the step, (width, batch)."""
        first, second = flipped or self.flip()
        midpoint = x + self.mlp_1.branch(x, first) / 2
        return x + self.mlp_2.branch(midpoint, second)


def make_block(kind: str, width: int, *, key: jax.Array) -> Block | MidpointBlock:
    """Builds a block: 'euler' (one MLP) or 'rk2' (two)."""
    return {"euler": Block, "rk2": MidpointBlock}[kind](width, key=key)


class LayerStack(nnx.Module):
    """Blocks with weights of their own. Every parameter has the layer as its first axis; depth 0 is the identity.

    Layers are scanned, so compile time does not grow with depth. Of each, only its input is kept for the backward pass.
    """

    def __init__(self, block: Block | MidpointBlock):
        self.block = block

    def __call__(self, x: jax.Array, kernel: str = "xla") -> jax.Array:
        """Returns the state after the last block, (width, batch)."""
        if kernel == "native" and self.block.stages[0].b1.shape[0]:
            return native.run_layers(x, *_stage_weights(self.block, layer_axis=True))
        return self._scan(x, keep=False)[0]

    def hidden(self, x: jax.Array) -> jax.Array:
        """Returns the states before and after every block, (depth + 1, width, batch)."""
        return jnp.concatenate([x[None], self._scan(x, keep=True)[1]])

    def _scan(self, x: jax.Array, keep: bool) -> Any:
        graph, layers = nnx.split(self.block)

        def layer(x: jax.Array, weights: tuple[nnx.State, Flipped]):
            x = nnx.merge(graph, weights[0])(x, weights[1])
            return x, (x if keep else None)

        return jax.lax.scan(layer, x, (layers, self.block.flip()))


class TiedStack(nnx.Module):
    """One block applied `depth` times: the tie is structural, there is a single set of weights."""

    def __init__(self, block: Block | MidpointBlock, depth: int):
        self.block = block
        self.depth = depth

    def __call__(self, x: jax.Array, kernel: str = "xla") -> jax.Array:
        """Returns the state after the last block, (width, batch); the native kernel gives no gradient here."""
        if kernel == "native" and self.depth:
            return native.run_tied(x, *_stage_weights(self.block, layer_axis=False), self.depth)
        return self._scan(x, keep=False)[0]

    def hidden(self, x: jax.Array) -> jax.Array:
        """Returns the states before and after every block, (depth + 1, width, batch)."""
        return jnp.concatenate([x[None], self._scan(x, keep=True)[1]])

    def _scan(self, x: jax.Array, keep: bool) -> Any:
        flipped = self.block.flip()

        def layer(x: jax.Array, _: None):
            x = self.block(x, flipped)
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

    def __call__(self, x: jax.Array, kernel: str = "xla") -> jax.Array:
        """Returns the final hidden state, (width, batch), run by one of KERNELS."""
        return rms(self.stack(rms(x), kernel))

    def hidden(self, x: jax.Array) -> jax.Array:
        """Returns the residual stream (depth + 1, width, batch)."""
        return self.stack.hidden(rms(x))


def _stage_weights(block: Block | MidpointBlock, layer_axis: bool) -> native.Weights:
    """W1, b1 and W2 with the axes of the layers and of the stages in front, as the native kernel takes them."""
    stacks = [jnp.stack([getattr(mlp, name)[...] for mlp in block.stages], layer_axis) for name in ("w1", "b1", "w2")]
    w1, b1, w2 = stacks if layer_axis else [stack[None] for stack in stacks]
    return w1, b1, w2


def _uniform(key: jax.Array, shape: tuple[int, ...], fan_in: int) -> jax.Array:
    bound = fan_in**-0.5
    return jax.random.uniform(key, shape, jnp.float32, -bound, bound)
