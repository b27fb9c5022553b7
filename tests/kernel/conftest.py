"""The plain twin of the native layers: the stack of the network, run by XLA."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from toydepth.net import functional, make_student, parameters


@pytest.fixture(scope="session")
def make_stack():
    """make_stack(width, depth, block): random parameters, and the stack of such a student as a function of them."""

    def make(width, depth, block="euler", scale=0.3):
        new = lambda: make_student(depth, width=width, key=jax.random.key(0), block=block)  # noqa: E731
        keys = iter(jax.random.split(jax.random.key(1), 99))
        params = jax.tree.map(lambda leaf: scale * jax.random.normal(next(keys), leaf.shape), parameters(new()))
        network = functional(new)
        return SimpleNamespace(
            params=params,
            run=lambda params, x, kernel: network.module(params).stack(x, kernel),
            inputs=lambda batch: jax.random.normal(jax.random.key(2), (width, batch), jnp.float32),
        )

    return make
