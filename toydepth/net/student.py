"""Students: shallower networks, from scratch or from an Euler discretisation of the teacher."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from toydepth.net.residual import LayerStack, Mlp, Network, TiedStack, make_block

INIT_KINDS = ("zero", "euler")


def make_student(
    depth: int, *, width: int, key: jax.Array, block: str = "euler", vocabulary: int | None = None
) -> Network:
    """Builds a student whose blocks all start as the identity: W2 = 0, W1 and b1 drawn block by block.

    The draws of a layer depend on the key and its number alone: a shallow student starts as the first layers of a
    deeper one, so that differences between depths are paired.

    Args:
        depth: number of blocks, >= 0 (0: rms and head only).
        width: m.
        key: of the draws.
        block: 'euler' (one MLP a block) or 'rk2' (two).
        vocabulary: of a head of its own, which starts at zero; None for no head.

    Example:
        >>> student = make_student(3, width=4, key=jax.random.key(0))
        >>> float(abs(student.stack.block.mlp.w2[...]).max())
        0.0

    Source: docs/notation.md, "Students".
    """
    keys = jax.vmap(lambda layer: jax.random.fold_in(key, layer))(jnp.arange(depth))
    blocks = nnx.vmap(lambda key: make_block(block, width, key=key))(keys)
    for mlp in _mlps(blocks):
        mlp.w2[...] = jnp.zeros_like(mlp.w2[...])
    return Network(LayerStack(blocks), _zero_head(width, vocabulary))


def make_euler_student(depth: int, teacher: Network, *, block: str = "euler", vocabulary: int | None = None) -> Network:
    """Builds a student of which each block is one step of size teacher_depth / depth along a tied teacher's flow.

    Every MLP is the teacher's with W2 multiplied by teacher_depth / depth; an rk2 block takes a midpoint step. With
    depth = teacher_depth and euler blocks the student is the teacher.

    Args:
        depth: number of blocks, >= 1.
        teacher: tied; its stack has one block.
        block: 'euler' or 'rk2'.
        vocabulary: as in `make_student`.

    Source: ours; docs/notation.md, "Students".
    """
    stack = teacher.stack
    if not isinstance(stack, TiedStack):
        raise TypeError("an euler student needs a tied teacher: only there is one flow to discretise")
    source: dict[str, jax.Array] = nnx.to_pure_dict(nnx.state(stack.block))["mlp"]
    width = source["w1"].shape[0]
    keys = jax.random.split(jax.random.key(0), depth)
    graph, abstract = nnx.split(nnx.eval_shape(nnx.vmap(lambda key: make_block(block, width, key=key)), keys))
    step = source | {"w2": source["w2"] * (stack.depth / depth)}
    step = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (depth, *leaf.shape)), step)
    nnx.replace_by_pure_dict(abstract, {name: step for name in nnx.to_pure_dict(abstract)})
    blocks = nnx.merge(graph, abstract)
    return Network(LayerStack(blocks), _zero_head(width, vocabulary))


def _mlps(blocks: nnx.Module) -> list[Mlp]:
    return [node for _, node in nnx.iter_graph(blocks) if isinstance(node, Mlp)]


def _zero_head(width: int, vocabulary: int | None) -> jax.Array | None:
    return None if vocabulary is None else jnp.zeros((width, vocabulary), jnp.float32)
