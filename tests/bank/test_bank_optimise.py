"""Learning rates, schedules and optimisers by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toydepth.bank import make_arms
from toydepth.bank.optimise import (
    LearningRates,
    make_optimizer,
    make_schedule,
    optimizer_names,
    schedule_shape,
)
from toydepth.bank.story import Story, evaluation_steps
from toydepth.config import OptimizerConfig, ScheduleConfig, StudentConfig, TrainConfig
from toydepth.errors import InputError


@pytest.mark.parametrize("name", ["constant", "stable_then_linear", "cosine"])
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.7, 1.0])
def test_schedules_begin_at_one_and_end_at_the_final_fraction(name, fraction):
    for steps in (1, 2, 3, 10):
        shape = np.array(jnp.broadcast_to(schedule_shape(name, steps, fraction, 0.1)(jnp.arange(steps)), steps), float)
        assert np.isfinite(shape).all() and (np.diff(shape) <= 1e-6).all()
        assert shape[0] == 1
        end = 1.0 if name == "constant" or fraction == 0 or steps == 1 else 0.1
        assert shape[-1] == pytest.approx(end, rel=1e-5)


def test_final_fraction_of_zero_and_the_shapes_between():
    linear, cosine = (schedule_shape(name, 11, 1.0, 0.0)(jnp.arange(11)) for name in ("stable_then_linear", "cosine"))
    np.testing.assert_allclose(linear, 1 - np.arange(11) / 10, atol=1e-6)
    np.testing.assert_allclose(cosine, (1 + np.cos(np.pi * np.arange(11) / 10)) / 2, atol=1e-6)


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("final", [0.0, 0.1])
@pytest.mark.parametrize(
    ("name", "fall"),
    [("stable_then_linear", lambda t: 1 - t), ("cosine", lambda t: (1 + np.cos(np.pi * t)) / 2)],
    ids=["stable_then_linear", "cosine"],
)
def test_schedules_fall_over_the_last_part_of_the_steps_alone(name, fall, final, fraction):
    config = TrainConfig(steps=101, learning_rate=1.0, schedule=ScheduleConfig(name, fraction, final))
    rates = np.array(make_schedule(config, 1)(jnp.arange(101)), float)
    through = np.maximum(np.arange(101) / 100 - (1 - fraction), 0) / fraction
    np.testing.assert_allclose(rates, final + (1 - final) * fall(through), atol=1e-6)


@pytest.mark.parametrize(
    ("power", "expected"), [(0.0, [0.02] * 3), (0.5, [0.02, 0.01, 0.005]), (1, [0.02, 0.005, 0.00125])]
)
def test_learning_rate_of_a_depth(power, expected):
    config = TrainConfig(optimizer=OptimizerConfig(learning_rate_factor=2, depth_power=power))
    assert [config.peak_learning_rate(depth) for depth in (1, 4, 16)] == pytest.approx(expected)
    assert config.peak_learning_rate(0) == config.peak_learning_rate(1)


def test_tau_is_the_running_sum_of_learning_rates():
    config = TrainConfig(steps=30, student=StudentConfig(depths=(1, 4)))
    story = Story(config, make_arms(config))
    for step in (0, 1, 7, 30):
        story.add(step, np.zeros(2), {"test_loss": np.zeros(2)})
    rates = np.stack([make_schedule(config, depth)(jnp.arange(30)) for depth in (1, 4)], axis=1).astype(float)
    expected = [rates[:step].sum(axis=0) for step in (0, 1, 7, 30)]
    np.testing.assert_allclose(story.series["tau"], expected, rtol=1e-12)
    np.testing.assert_array_equal(story.series["learning_rate"], rates[[0, 0, 6, 29]])
    assert rates[0] == pytest.approx([0.01, 0.005]) and rates[-1] == pytest.approx([1e-5, 5e-6], rel=1e-4)


def test_tau_is_the_same_bits_in_any_order_and_in_constant_memory(monkeypatch):
    config = TrainConfig(steps=2**31 - 1)
    rates = LearningRates(config, 1)
    assert rates.at(2**31 - 2) == pytest.approx(1e-5, rel=1e-3)
    monkeypatch.setattr(LearningRates, "_length", 8)
    config = TrainConfig(steps=100, schedule=ScheduleConfig(decay_fraction=1.0))
    forward, jumps = LearningRates(config, 1), LearningRates(config, 1)
    taus = {step: forward.tau(step) for step in (0, 1, 7, 8, 9, 63, 64, 100)}
    assert {step: jumps.tau(step) for step in (100, 9, 64, 0, 8, 63, 1, 7)} == taus
    each = np.asarray(make_schedule(config, 1)(jnp.arange(100)), float)
    assert [taus[step] for step in taus] == pytest.approx([each[:step].sum() for step in taus], rel=1e-12)


@pytest.mark.parametrize(("steps", "points"), [(1, 1), (1, 50), (2, 5), (10, 1), (1000, 50)])
def test_evaluations_begin_at_zero_and_end_at_the_last_step(steps, points):
    found = evaluation_steps(steps, points)
    assert found[0] == 0 and found[-1] == steps
    assert found == sorted(set(found)) and len(found) <= points + 1


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "lion", "muon"])
def test_optimisers_take_a_step(name):
    config = TrainConfig(steps=3, optimizer=OptimizerConfig(name=name))
    optimizer = make_optimizer(config, 2)
    rng = np.random.default_rng(0)
    shapes = {"w1": (2, 4, 16), "b1": (2, 16), "w2": (2, 16, 4)}
    params, gradient = (
        {"stack": {k: jnp.asarray(rng.normal(size=s), jnp.float32) for k, s in shapes.items()}} for _ in range(2)
    )
    updates, _ = optimizer.update(gradient, optimizer.init(params), params)
    for update, g in zip(jax.tree.leaves(updates), jax.tree.leaves(gradient), strict=True):
        assert np.isfinite(update).all() and float(abs(update).max()) > 0
        assert float(jnp.sum(update * g)) < 0


def test_options_reach_the_optimiser():
    config = TrainConfig(optimizer=OptimizerConfig(name="sgd", options={"momentum": 0.5}))
    optimizer = make_optimizer(config, 1)
    one = {"w": jnp.ones(1)}
    update, state = optimizer.update(one, optimizer.init(one), one)
    assert float(update["w"][0]) == pytest.approx(-0.01)
    update, _ = optimizer.update(one, state, one)
    assert float(update["w"][0]) == pytest.approx(-0.015)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "adamm"}, r"optimizer\.name .* got adamm\. Did you mean 'adam'\?"),
        ({"name": "inspect"}, r"optimizer\.name"),
        ({"options": {"b3": 0.9}}, r"optimizer\.options .* got b3\. It takes b1, b2"),
        ({"options": {"learning_rate": 0.1}}, r"optimizer\.options"),
        ({"name": "muon", "options": {"ns_steps": -1, "no": 1}}, r"optimizer\.options .* got no\."),
    ],
)
def test_optimisers_that_cannot_be_built(settings, message):
    with pytest.raises(InputError, match=message) as error:
        make_optimizer(TrainConfig(optimizer=OptimizerConfig(**settings)), 2)
    assert "\n" not in str(error.value)


def test_names_are_optimisers():
    assert {"adam", "adamw", "sgd", "lion", "muon", "rmsprop"} <= set(optimizer_names())
