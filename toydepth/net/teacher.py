"""Teachers: the deep networks that students imitate."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from toydepth.net.residual import Block, LayerStack, Network, TiedStack

TEACHER_KINDS = ("tied", "independent", "correlated")
HEAD_INITS = ("normal", "uniform")


def make_teacher(
    kind: str,
    depth: int,
    *,
    width: int,
    key: jax.Array,
    rho: float = 0.0,
    head: jax.Array | None = None,
) -> Network:
    """Builds a teacher of `depth` blocks whose W2 are scaled by 1/sqrt(depth).

    Kinds: *tied*, one block applied `depth` times (smooth dynamics, an ODE); *independent*, blocks drawn separately
    (a random walk in depth); *correlated*, W_k = sqrt(rho) W_shared + sqrt(1 - rho) W_k' for every weight and bias,
    which is the tied teacher at rho = 1 and the independent one at rho = 0, bit for bit.

    Args:
        kind: one of TEACHER_KINDS.
        depth: number of blocks, >= 0 (0: rms alone).
        width: m.
        key: of the draws. The shared block and the separate ones have keys of their own, so that the same key gives
            the same blocks whatever the kind.
        rho: in [0, 1]; used by the correlated kind only.
        head: W_h (width, vocabulary), or None.

    Returns:
        Network: with a TiedStack for tied, a LayerStack otherwise.

    Example:
        >>> teacher = make_teacher("independent", 5, width=4, key=jax.random.key(0))
        >>> teacher.stack.block.mlp.w1.shape
        (5, 4, 16)

    Source: docs/notation.md, "Teachers"; correlated teachers are ours.
    """
    shared_key, layers_key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
    shared = _scale_output(Block(width, key=shared_key), depth)
    if kind == "tied":
        return Network(TiedStack(shared, depth), head)
    keys = jax.random.split(layers_key, depth)
    blocks = _scale_output(nnx.vmap(lambda key: Block(width, key=key))(keys), depth)
    if kind == "correlated":
        blocks = _mix(shared, blocks, rho)
    return Network(LayerStack(blocks), head)


def make_head(kind: str, *, width: int, vocabulary: int, key: jax.Array) -> jax.Array:
    """Draws W_h (width, vocabulary): 'normal' N(0, 1/width), or 'uniform' in +-1/sqrt(width).

    Example:
        >>> make_head("uniform", width=4, vocabulary=7, key=jax.random.key(0)).shape
        (4, 7)
    """
    shape, scale = (width, vocabulary), width**-0.5
    if kind == "normal":
        return scale * jax.random.normal(key, shape, jnp.float32)
    return jax.random.uniform(key, shape, jnp.float32, -scale, scale)


def _scale_output(block: Block, depth: int) -> Block:
    block.mlp.w2[...] = block.mlp.w2[...] * max(depth, 1) ** -0.5
    return block


def _mix(shared: Block, blocks: Block, rho: float) -> Block:
    graph, separate = nnx.split(blocks)
    common = nnx.state(shared)
    # At rho = 1 the product 0 * W_k' is a zero and adding it changes no bit; at rho = 0 likewise.
    mixed = jax.tree.map(lambda c, s: rho**0.5 * c[None] + (1 - rho) ** 0.5 * s, common, separate)
    return nnx.merge(graph, mixed)
