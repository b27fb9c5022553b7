"""Teachers: correlated ones between tied and independent, and the scale of what is drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toydepth.net import functional, make_head, make_teacher, parameters

DEPTH, WIDTH = 3, 4


@pytest.fixture(scope="module")
def key():
    return jax.random.key(5, impl="threefry2x32")


def build(kind, key, rho=0.0, depth=DEPTH, width=WIDTH):
    return parameters(make_teacher(kind, depth, width=width, key=key, rho=rho))["stack"]["block"]["mlp"]


def test_rho_of_zero_and_one_are_independent_and_tied_to_the_last_bit(key):
    tied, separate = build("tied", key), build("independent", key)
    one, zero = (build("correlated", key, rho) for rho in (1.0, 0.0))
    for name in tied:
        for layer in range(DEPTH):
            np.testing.assert_array_equal(one[name][layer], tied[name])
        np.testing.assert_array_equal(zero[name], separate[name])


def test_rho_of_zero_and_one_give_the_same_outputs_to_the_last_bit(key):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(WIDTH, 8)), jnp.float32)

    def output(kind, rho=0.0):
        make = lambda: make_teacher(kind, DEPTH, width=WIDTH, key=key, rho=rho)  # noqa: E731
        return np.asarray(functional(make).apply(parameters(make()), x))

    np.testing.assert_array_equal(output("correlated", 1.0), output("tied"))
    np.testing.assert_array_equal(output("correlated", 0.0), output("independent"))


def test_correlated_blocks_mix_every_weight(key):
    tied, separate, mixed = build("tied", key), build("independent", key), build("correlated", key, 0.3)
    for name in tied:
        expected = np.sqrt(0.3) * np.asarray(tied[name], float) + np.sqrt(0.7) * np.asarray(separate[name], float)
        np.testing.assert_allclose(mixed[name], expected, atol=1e-7)


def test_bounds_and_the_scale_of_the_output_weights(key):
    shallow, deep = (build("tied", key, depth=depth, width=16) for depth in (4, 16))
    for depth, mlp in ((4, shallow), (16, deep), (3, build("independent", key))):
        width = mlp["w1"].shape[-2]
        bounds = {"w1": width**-0.5, "b1": width**-0.5, "w2": (4 * width * depth) ** -0.5}
        for name, bound in bounds.items():
            assert 0.9 * bound < float(abs(mlp[name]).max()) <= bound * (1 + 1e-6)
    np.testing.assert_array_equal(shallow["w1"], deep["w1"])
    np.testing.assert_allclose(shallow["w2"], 2 * deep["w2"], rtol=1e-6)


def test_heads(key):
    normal, uniform = (make_head(kind, width=16, vocabulary=256, key=key) for kind in ("normal", "uniform"))
    assert float(normal.std()) == pytest.approx(0.25, rel=0.05) and float(abs(normal).max()) > 0.6
    assert 0.24 < float(abs(uniform).max()) <= 0.25
    assert float(uniform.std()) == pytest.approx(0.25 / 3**0.5, rel=0.05)
