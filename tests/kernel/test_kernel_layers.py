"""The native layers against those that XLA runs: values, gradients, stacks of arms, and what is not finite."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toydepth.kernel import run_layers, run_tied
from toydepth.net import make_teacher

pytestmark = pytest.mark.usefixtures("native")

# Widths that are and are not multiples of a vector; batches that fill blocks, do not, and do not fill one.
# (Of width 1, the gradient through rms is rounding and nothing else.)
SIZES = [
    (8, 256, 4),
    (16, 64, 2),
    (32, 320, 2),
    (64, 65, 1),
    (2, 3, 2),
    (3, 64, 1),
    (5, 130, 2),
    (7, 100, 3),
    (24, 1, 2),
]


def close(found, expected):
    # Sums are taken in another order; a hidden unit at the kink of its relu may fall on the other side.
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = float(abs(other).max()) or 1.0
        np.testing.assert_allclose(np.asarray(one) / scale, np.asarray(other) / scale, rtol=1e-5, atol=3e-5)


@pytest.mark.parametrize("block", ["euler", "rk2"])
@pytest.mark.parametrize(("width", "batch", "depth"), SIZES)
def test_values_and_gradients(make_stack, width, batch, depth, block):
    stack = make_stack(width, depth, block)
    x = stack.inputs(batch)
    ahead = jax.random.normal(jax.random.key(3), x.shape)

    @functools.partial(jax.jit, static_argnums=2)
    def both(params, x, kernel):
        value, pull = jax.vjp(lambda params, x: stack.run(params, x, kernel), params, x)
        return value, pull(ahead), stack.run(params, x, kernel)

    found, expected = both(stack.params, x, "native"), both(stack.params, x, "xla")
    close(found, expected)
    # The pass that keeps the inputs of layers is the pass that does not, to the bit.
    assert (found[0] == found[2]).all()
    assert not np.allclose(found[0], x)


def test_every_entry_of_a_gradient_by_differences(make_stack):
    # A twin that errs in the same way would not tell: the slope of the loss itself, along each parameter.
    stack = make_stack(2, 2, "rk2", scale=0.5)
    x = stack.inputs(7)
    flat, restore = jax.flatten_util.ravel_pytree(stack.params)
    loss = jax.jit(lambda flat: jnp.sum(jnp.square(stack.run(restore(flat), x, "native"))))
    slopes = [(float(loss(flat + step)) - float(loss(flat - step))) / 0.02 for step in 0.01 * jnp.eye(len(flat))]
    np.testing.assert_allclose(jax.grad(loss)(flat), slopes, rtol=0.03, atol=0.03 * max(map(abs, slopes)))


def test_stacks_of_arms_are_one_call(make_stack):
    stack = make_stack(8, 3)
    arms = jax.tree.map(lambda leaf: jnp.stack([leaf, -leaf, 0.5 * leaf]), stack.params)
    x = stack.inputs(96)
    gradient = jax.jit(jax.grad(lambda params, kernel: jnp.sum(stack.run(params, x, kernel) ** 2)), static_argnums=1)
    run = {kernel: jax.jit(jax.vmap(lambda params, k=kernel: gradient(params, k))) for kernel in ("native", "xla")}
    close(run["native"](arms), run["xla"](arms))
    assert str(jax.make_jaxpr(run["native"])(arms)).count("ffi_call[") == 2  # forward and backward
    # An arm in a stack is the arm alone, to the bit; so are arms of arms.
    alone = gradient(jax.tree.map(lambda leaf: leaf[1], arms), "native")
    both = jax.vmap(run["native"])(jax.tree.map(lambda leaf: jnp.stack([leaf, leaf[::-1]]), arms))
    for one, in_stack, in_both in zip(*map(jax.tree.leaves, (alone, run["native"](arms), both)), strict=True):
        assert (one == in_stack[1]).all() and (one == in_both[0, 1]).all() and (in_both[1, 0] == in_stack[2]).all()


@pytest.mark.parametrize("depth", [1, 5])
def test_tied_layers(depth):
    teacher = make_teacher("tied", depth, width=8, key=jax.random.key(4)).stack
    x = jax.random.normal(jax.random.key(5), (8, 70))
    close(teacher(x, "native"), teacher(x, "xla"))
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(lambda x: teacher(x, "native").sum())(x)


def test_no_layers_are_the_identity(make_stack):
    stack = make_stack(4, 0)
    x = stack.inputs(3)
    assert (stack.run(stack.params, x, "native") == x).all()
    teacher = make_teacher("tied", 0, width=4, key=jax.random.key(4)).stack
    assert (teacher(x, "native") == x).all()


@pytest.mark.parametrize("where", ["w1", "b1", "w2", "x"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_seen(make_stack, where, value):
    stack = make_stack(8, 2)
    x = stack.inputs(40)
    if where == "x":
        x = x.at[0, 3].set(value)
    else:
        stack.params["stack"]["block"]["mlp"][where] = (
            stack.params["stack"]["block"]["mlp"][where].at[(0,) * (3 if where[0] == "w" else 2)].set(value)
        )
    for kernel in ("native", "xla"):
        found, gradient = jax.jit(jax.value_and_grad(lambda p, k=kernel: stack.run(p, x, k).sum()))(stack.params)
        leaves = [found, *jax.tree.leaves(gradient)]
        assert not all(bool(jnp.isfinite(leaf).all()) for leaf in leaves), kernel


def test_the_same_bits_each_time(make_stack):
    stack = make_stack(32, 3)
    x = stack.inputs(200)
    run = jax.jit(jax.grad(lambda params: jnp.sum(stack.run(params, x, "native") ** 2)))
    first, again = run(stack.params), run(stack.params)
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True))


def test_a_weight_for_every_depth_or_one_for_all():
    weights = [jnp.full(shape, 0.1) for shape in ((1, 1, 2, 8), (1, 1, 8), (1, 1, 8, 2))]
    x = jnp.ones((2, 5))
    twice = run_tied(run_tied(x, *weights, 1), *weights, 1)
    assert (run_tied(x, *weights, 2) == twice).all()


@pytest.mark.parametrize("wrong", ["width", "layers", "bias", "none"])
def test_shapes_that_do_not_fit_are_refused(wrong):
    shapes = {
        "width": ((2, 1, 3, 12), (2, 1, 12), (2, 1, 12, 3)),
        "layers": ((2, 1, 2, 8), (3, 1, 8), (2, 1, 8, 2)),
        "bias": ((2, 1, 2, 8), (2, 1, 2), (2, 1, 8, 2)),
        "none": ((0, 1, 2, 8), (0, 1, 8), (0, 1, 8, 2)),
    }
    weights = [jnp.ones(shape) for shape in shapes[wrong]]
    for run in (run_layers, jax.grad(lambda *a: run_layers(*a).sum())):
        with pytest.raises(jax.errors.JaxRuntimeError, match="do not fit"):
            jax.block_until_ready(run(jnp.ones((2, 5)), *weights))
