"""Blocks, stacks and students: shapes, draws, and the identities that the definitions promise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toydepth.net import LayerStack, TiedStack, make_euler_student, make_student, make_teacher, parameters, rms

WIDTH = 4


@pytest.fixture(scope="module")
def key():
    return jax.random.key(3, impl="threefry2x32")


@pytest.fixture(scope="module")
def x():
    return jnp.asarray(np.random.default_rng(0).normal(size=(WIDTH, 6)), jnp.float32)


def test_rms_of_a_zero_vector_is_zero_and_of_others_is_one(x):
    out = np.asarray(rms(x.at[:, 0].set(0.0)))
    np.testing.assert_array_equal(out[:, 0], 0)
    np.testing.assert_allclose(np.mean(out[:, 1:] ** 2, axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("block", ["euler", "rk2"])
def test_zero_student_starts_as_the_identity(key, x, block):
    student = make_student(3, width=WIDTH, key=key, block=block)
    np.testing.assert_allclose(student(x), rms(rms(x)), rtol=1e-6)
    states = student.hidden(x)
    assert states.shape == (4, WIDTH, 6)
    for state in states:
        np.testing.assert_array_equal(state, states[0])


@pytest.mark.parametrize("block", ["euler", "rk2"])
def test_shallow_student_starts_as_the_first_layers_of_a_deeper_one(key, block):
    shallow, deep = (parameters(make_student(depth, width=WIDTH, key=key, block=block)) for depth in (2, 3))
    same = jax.tree.map(lambda a, b: bool((a == b[:2]).all()), shallow["stack"], deep["stack"])
    assert all(jax.tree.leaves(same))
    for mlp in deep["stack"]["block"].values():
        assert not (mlp["w1"][0] == mlp["w1"][1]).any()


def test_student_draws_are_within_their_bounds_and_fill_them(key):
    mlp = parameters(make_student(8, width=16, key=key))["stack"]["block"]["mlp"]
    assert mlp["w1"].shape == (8, 16, 64) and mlp["b1"].shape == (8, 64) and mlp["w2"].shape == (8, 64, 16)
    for name in ("w1", "b1"):
        assert 0.95 / 4 < float(abs(mlp[name]).max()) <= 1 / 4
        assert abs(float(mlp[name].mean())) < 0.02
    assert float(abs(mlp["w2"]).max()) == 0


def test_learned_head_starts_at_zero_and_depth_zero_has_only_it(key, x):
    student = make_student(0, width=WIDTH, key=key, vocabulary=5)
    assert student.head is not None and student.head[...].shape == (WIDTH, 5)
    assert float(abs(student.head[...]).max()) == 0
    np.testing.assert_array_equal(student(x), rms(rms(x)))
    assert "head" not in parameters(make_student(1, width=WIDTH, key=key))


def test_euler_student_as_deep_as_its_teacher_is_the_teacher(key, x):
    teacher = make_teacher("tied", 5, width=WIDTH, key=key)
    np.testing.assert_allclose(make_euler_student(5, teacher)(x), teacher(x), rtol=1e-6)


@pytest.mark.parametrize("block", ["euler", "rk2"])
def test_euler_student_scales_the_last_weight_of_every_mlp(key, block):
    teacher = make_teacher("tied", 6, width=WIDTH, key=key)
    source = parameters(teacher)["stack"]["block"]["mlp"]
    mlps = parameters(make_euler_student(2, teacher, block=block))["stack"]["block"]
    assert list(mlps) == (["mlp"] if block == "euler" else ["mlp_1", "mlp_2"])
    for mlp in mlps.values():
        for layer in range(2):
            np.testing.assert_array_equal(mlp["w1"][layer], source["w1"])
            np.testing.assert_array_equal(mlp["b1"][layer], source["b1"])
            np.testing.assert_allclose(mlp["w2"][layer], 3 * source["w2"], rtol=1e-6)


def test_midpoint_steps_are_closer_to_the_flow_than_euler_steps(key, x):
    teacher = make_teacher("tied", 64, width=WIDTH, key=key)
    exact = teacher(x)
    errors = {
        block: float(jnp.mean((make_euler_student(8, teacher, block=block)(x) - exact) ** 2))
        for block in ("euler", "rk2")
    }
    assert errors["rk2"] < errors["euler"] / 2


def test_euler_student_needs_a_tied_teacher(key):
    teacher = make_teacher("independent", 2, width=WIDTH, key=key)
    with pytest.raises(TypeError, match="tied"):
        make_euler_student(2, teacher)


def test_tied_teacher_is_one_block_and_independent_many(key):
    tied, separate = (make_teacher(kind, 3, width=WIDTH, key=key) for kind in ("tied", "independent"))
    assert isinstance(tied.stack, TiedStack) and isinstance(separate.stack, LayerStack)
    assert parameters(tied)["stack"]["block"]["mlp"]["w1"].shape == (WIDTH, 4 * WIDTH)
    for leaf in jax.tree.leaves(parameters(separate)):
        assert leaf.shape[0] == 3
        assert not (leaf[0] == leaf[1]).any() and not (leaf[1] == leaf[2]).any()


def test_hidden_ends_where_the_network_does(key, x):
    for kind in ("tied", "independent"):
        teacher = make_teacher(kind, 3, width=WIDTH, key=key)
        states = teacher.hidden(x)
        assert states.shape == (4, WIDTH, 6)
        np.testing.assert_allclose(rms(states[-1]), teacher(x), rtol=1e-6)
