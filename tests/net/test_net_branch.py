"""The branch with a backward pass of its own agrees with the plain one, which jax differentiates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toydepth.net import branch, plain_branch


@pytest.fixture(params=[(4, 6), (8, 64), (32, 16)], ids=["m4", "m8", "m32"])
def arguments(request):
    width, batch = request.param
    rng = np.random.default_rng(width)
    shapes = (width, batch), (width, 4 * width), (4 * width,), (4 * width, width)
    return tuple(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes)


def fast(x, w1, b1, w2):
    return branch(x, w1, b1, w2, w1.T, w2.T)


def close(a, b):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * float(abs(b).max())), a, b)


def test_values_and_gradients(arguments):
    close(fast(*arguments), plain_branch(*arguments))
    out, pull = jax.vjp(fast, *arguments)
    plain_pull = jax.vjp(plain_branch, *arguments)[1]
    for seed in range(3):
        cotangent = jnp.asarray(np.random.default_rng(seed).normal(size=out.shape), jnp.float32)
        close(pull(cotangent), plain_pull(cotangent))


def test_gradients_in_a_stack_and_at_a_zero_vector(arguments):
    x, *weights = arguments
    x = x.at[:, 0].set(0.0)

    def gradients(function):
        loss = lambda x, w: jnp.sum(jnp.sin(x + function(x, *w)))  # noqa: E731
        stacked = [jnp.stack([w, 2 * w, -w]) for w in weights]
        return jax.vmap(jax.grad(loss, argnums=(0, 1)), in_axes=(None, 0))(x, stacked)

    close(gradients(fast), gradients(plain_branch))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients(fast)))
