"""Gradient snapshots: those of the loss in numpy, and of no consequence for the training they are taken from."""

import dataclasses

import jax
import numpy as np
import pytest

from toydepth.bank import make_bank, prepare_devices, train
from toydepth.bank.gradients import Gradients, snapshot_steps
from toydepth.bank.step import losses_and_gradients
from toydepth.config import (
    AverageConfig,
    DeviceConfig,
    EvalConfig,
    GradientsConfig,
    LossConfig,
    OptimizerConfig,
    StudentConfig,
    TargetConfig,
    TrainConfig,
)

# Sizes that do not divide each other: 16 in a batch, 60 in the test set, 8 at a time.
ODD = {"eval": EvalConfig(points=4, samples=60), "device": DeviceConfig(count=1, examples_at_a_time=8)}
CASES = {
    "mse": {
        "student": StudentConfig(depths=(1, 2), init="euler"),
        "average": AverageConfig((0.5, 0.9)),
        # Neither decay nor clipping may be seen in a gradient.
        "optimizer": OptimizerConfig("adamw", {"weight_decay": 0.5}),
    },
    "kl, teacher's head, rk2": {
        "kind": "independent",
        "loss": LossConfig("kl"),
        "student": StudentConfig(depths=2, head="teacher", block="rk2"),
        "target": TargetConfig((1.0, 0.1)),
        "average": AverageConfig(0.7),
    },
    "kl, learned head": {
        "loss": LossConfig("kl"),
        "student": StudentConfig(depths=(0, 2), head="learned"),
        "target": TargetConfig((1.0, 0.5)),
        "average": AverageConfig(0.7),
    },
}
SETTINGS = [(stream, weights) for stream in ("train", "test") for weights in ("raw", "average")]


@pytest.fixture(scope="module", params=CASES)
def trained(request, tiny, quick_compilation):
    """A bank, and its state after two updates, where averages are no longer the raw weights."""
    bank = make_bank(config := tiny(**CASES[request.param], **ODD), prepare_devices(config))
    return bank, bank.advance(bank.state, 2)


@pytest.mark.parametrize("stream, weights", SETTINGS)
def test_a_snapshot_is_the_gradient_of_the_mean_loss(trained, reference, stream, weights):
    bank, state = trained
    bank.config = dataclasses.replace(bank.config, gradients=GradientsConfig(1, stream, weights))
    config = bank.config
    snapshot = Gradients(bank).take(state)
    if stream == "train":
        x = jax.random.normal(jax.random.fold_in(bank.problem.data_key, 2), (config.batch_size, config.width))
    else:
        x = bank.test_inputs.T
    x = np.asarray(x, float)
    assert (snapshot.step, snapshot.num_examples) == (2, len(x)) and len(snapshot.gradients) == len(bank.arms)

    teacher = jax.tree.map(lambda leaf: np.asarray(leaf)[0], bank.teachers)
    hidden = reference.forward(reference.layers(teacher["stack"]["block"], config.teacher.depth), x)
    head = None if bank.heads is None else np.asarray(bank.heads, float)[0]
    for index, arm in enumerate(bank.arms):
        stack = state["depths"][str(arm.depth)]
        own = index - next(i for i, other in enumerate(bank.arms) if other.depth == arm.depth)
        taken = stack["averages"][0] if weights == "average" else stack["params"]
        params = jax.tree.map(lambda leaf, own=own: np.asarray(leaf)[own], taken)
        temperature = arm.temperature or 1.0
        target = hidden if head is None else reference.log_softmax(hidden @ head / temperature)
        of_student = config.student_temperature(temperature)
        loss, gradient = reference.loss(params, x, target, config.loss.name, head, of_student)
        assert snapshot.losses[index] == pytest.approx(loss, rel=1e-5)

        def close(measured, expected):
            assert measured.dtype == np.float32 and measured.shape == expected.shape
            scale = max(abs(expected).max(initial=0), 1e-6)
            np.testing.assert_allclose(measured, expected, rtol=1e-4, atol=1e-5 * scale)

        jax.tree.map(close, snapshot.gradients[index], gradient)


def test_the_loss_of_a_snapshot_of_the_test_set_is_the_test_loss(trained):
    bank, state = trained
    for weights, name in (("raw", "test_loss"), ("average", f"test_loss/{bank.config.average.decays[0]}")):
        bank.config = dataclasses.replace(bank.config, gradients=GradientsConfig(1, "test", weights))
        np.testing.assert_allclose(Gradients(bank).take(state).losses, bank.evaluate(state)[name], rtol=1e-5)


def test_steps_are_even_in_ln_step_and_fall_together_early():
    at = lambda steps, points: snapshot_steps(TrainConfig(steps=steps, gradients=GradientsConfig(points)))  # noqa: E731
    assert at(1000, 4) == [1, 10, 100, 1000] and at(300, 0) == [] and at(300, 1) == [300]
    assert at(3, 12) == [1, 2, 3]


@pytest.fixture(scope="module")
def pair(tiny, quick_compilation):
    """The same training without snapshots and with them: outcomes, snapshots, and how often each was traced."""
    found = []
    for points in (0, 5):
        settings = {"student": StudentConfig(depths=2, init=("zero", "euler")), "average": AverageConfig(0.9)}
        config = tiny(points=3, steps=40, gradients=GradientsConfig(points), **settings)
        bank, snapshots = make_bank(config, prepare_devices(config)), []
        outcome = train(bank, on_gradients=lambda snapshot, story, kept=snapshots: kept.append(snapshot))
        found.append((bank, outcome, snapshots))
    return found


def test_snapshots_change_no_bit_of_the_training(pair):
    (_, plain, none), (bank, outcome, snapshots) = pair
    assert none == [] and [s.step for s in snapshots] == [1, 3, 6, 16, 40] and bank.num_traces == 1
    assert outcome.story.series["step"] == [0, 1, 6, 40]  # no evaluation was added
    assert 0 < outcome.snapshot_seconds < outcome.seconds
    jax.tree.map(np.testing.assert_array_equal, outcome.story.series, plain.story.series)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(outcome.state), jax.device_get(plain.state))


def test_one_program_serves_all_snapshots_and_none_is_made_where_nobody_asks(pair, monkeypatch):
    bank, outcome, _ = pair[1]
    gradients, state, traced = Gradients(bank), outcome.state, []

    def counted(*arguments):
        traced.append(1)
        return losses_and_gradients(*arguments)

    monkeypatch.setattr("toydepth.bank.gradients.losses_and_gradients", counted)
    one, other = gradients.take(state), gradients.take(state | {"step": state["step"] - 1})
    assert len(traced) == 1 and not np.array_equal(one.losses, other.losses)  # two batches, one program
    monkeypatch.setattr("toydepth.bank.loop.Gradients", lambda bank: pytest.fail("made"))
    bank.state = bank.place(jax.device_get(state) | {"step": np.int32(0)})
    outcome = train(bank)
    assert outcome.step == 40 and outcome.snapshot_seconds == 0


def test_an_arm_that_has_diverged_has_no_gradient(pair):
    bank, outcome, _ = pair[1]
    whole = Gradients(bank).take(outcome.state)
    buried = bank.bury(outcome.state, np.array([False, True]), 40)
    snapshot = Gradients(bank).take(buried)
    assert np.isnan(snapshot.losses).tolist() == [False, True] and snapshot.gradients[1] is None
    assert snapshot.losses[0] == whole.losses[0]
    jax.tree.map(np.testing.assert_array_equal, snapshot.gradients[0], whole.gradients[0])


def test_a_snapshot_at_the_step_where_all_arms_diverge_says_so(pair):
    bank, outcome, _ = pair[1]
    state = jax.device_get(outcome.state) | {"step": np.int32(2)}
    mlp = state["depths"]["2"]["params"]["stack"]["block"]["mlp"]
    mlp["w1"] = np.full_like(mlp["w1"], 1e25)  # finite, but no gradient is
    bank.state, snapshots = bank.place(state), []
    ended = train(bank, on_gradients=lambda snapshot, story: snapshots.append(snapshot))
    assert (ended.status, ended.step) == ("diverged", 3)
    assert [(s.step, s.gradients) for s in snapshots] == [(3, [None, None])] and np.isnan(snapshots[0].losses).all()
