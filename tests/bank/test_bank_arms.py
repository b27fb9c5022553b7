"""Arms: their order, their temperatures, and that none notices the others."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from toydepth.bank import make_arms, make_bank, prepare_devices, train
from toydepth.bank.noise import measure_noise_floor
from toydepth.config import AverageConfig, EvalConfig, LossConfig, StudentConfig, TargetConfig, TrainConfig

pytestmark = pytest.mark.usefixtures("quick_compilation")


def run(config):
    bank = make_bank(config, prepare_devices(config))
    return bank.arms, train(bank).story.series


def test_an_arm_alone_and_in_a_bank_has_the_same_curve(tiny):
    # At a high learning rate any difference of rounding grows with the steps; this one is low.
    together = {"steps": 200, "points": 12, "learning_rate": 1e-3, "loss": LossConfig("kl")}
    together |= {"average": AverageConfig(0.9)}
    arms, series = run(
        tiny(
            student=StudentConfig(depths=(1, 2), init=("zero", "euler"), head="teacher"),
            target=TargetConfig((1.0, 0.1)),
            replicates=2,
            **together,
        )
    )
    alone, own = run(
        tiny(student=StudentConfig(depths=2, init="zero", head="teacher"), target=TargetConfig(0.1), **together)
    )
    assert len(arms) == 16 and len(alone) == 1
    where = arms.index(alone[0])
    for name in ("test_loss", "test_loss/0.9", "train_loss"):
        rows = slice(1, None)
        np.testing.assert_allclose(np.array(series[name])[rows, where], np.array(own[name])[rows, 0], rtol=1e-5)
    assert series["step"] == own["step"] and own["step"][-1] == 200
    np.testing.assert_array_equal(np.array(series["tau"])[:, where], np.array(own["tau"])[:, 0])


def test_euler_students_as_deep_as_the_teacher_have_no_loss_and_mse_a_floor(tiny):
    config = tiny(teacher_depth=4, student=StudentConfig(depths=4, init="euler"))
    bank = make_bank(config, prepare_devices(config))
    measured = bank.evaluate(bank.state)
    assert measured["test_loss"] < 1e-12 and measured["test_loss/0.998"] < 1e-12
    floors = measure_noise_floor(bank)
    assert floors.shape == (1, 1) and 1e-16 < floors < 1e-11


def test_arms_are_in_the_order_of_every_result():
    student = StudentConfig(depths=(3, 1), init=("zero", "euler"), head="teacher", block="rk2")
    config = TrainConfig(replicates=2, student=student, loss=LossConfig("kl"), target=TargetConfig((1.0, 0.1)))
    arms = make_arms(config)
    assert len(arms) == len(set(arms)) == 16
    found = [(arm.depth, arm.replicate, arm.temperature, arm.init) for arm in arms]
    expected = [(d, r, t, i) for d in (3, 1) for r in (0, 1) for t in (1.0, 0.1) for i in ("zero", "euler")]
    assert found == expected
    assert [arm.mlp_evaluations for arm in arms[::8]] == [6, 2]
    assert {arm.temperature for arm in make_arms(TrainConfig())} == {None}


@pytest.mark.parametrize(
    ("head", "setting", "expected"),
    [
        ("teacher", "auto", 0.1),
        ("learned", "auto", 1.0),
        ("teacher", "target", 0.1),
        ("learned", "target", 0.1),
        ("teacher", 0.5, 0.5),
        ("learned", 2, 2.0),
    ],
)
def test_temperature_of_a_student(head, setting, expected):
    student = StudentConfig(depths=2, head=head, temperature=setting)
    config = TrainConfig(student=student, loss=LossConfig("kl"), target=TargetConfig((0.1, 1.0)))
    assert config.student_temperature(0.1) == expected


@pytest.mark.parametrize(("head", "setting"), [("teacher", "auto"), ("learned", "auto"), ("learned", "target")])
def test_temperatures_and_heads_reach_the_bank(tiny, head, setting):
    student = StudentConfig(depths=2, head=head, temperature=setting)
    config = tiny(student=student, loss=LossConfig("kl"), target=TargetConfig((0.1, 1.0)))
    bank = make_bank(config, prepare_devices(config))
    expected = [1.0, 1.0] if (head, setting) == ("learned", "auto") else [0.1, 1.0]
    np.testing.assert_allclose(bank.problem.student_temperatures, expected)
    np.testing.assert_allclose(bank.problem.temperatures, [0.1, 1.0])
    assert ("head" in bank.state["depths"]["2"]["params"]) == (head == "learned")


def kl_noise(teacher, student, head, temperature):
    """Mean |KL in float32 - KL in float64| of hidden states (width, samples), by numpy."""

    def kl(dtype):
        logits = (head.astype(dtype).T @ hidden.astype(dtype) / dtype(temperature) for hidden in (teacher, student))
        shifted = (z - z.max(axis=0) for z in logits)
        log_p, log_q = (z - np.log(np.exp(z).sum(axis=0)) for z in shifted)
        return np.sum(np.exp(log_p) * (log_p - log_q), axis=0).astype(float)

    return np.abs(kl(np.float32) - kl(np.float64)).mean()


def test_noise_floor_of_kl_is_that_of_each_temperature(tiny):
    temperatures = (1.0, 0.1, 0.01)
    config = tiny(
        width=8,
        vocabulary=32,
        student=StudentConfig(depths=2, head="teacher"),
        loss=LossConfig("kl"),
        target=TargetConfig(temperatures),
        eval=EvalConfig(samples=512),
    )
    bank = make_bank(config, prepare_devices(config))
    floors = measure_noise_floor(bank)
    assert floors.shape == (1, 3)
    inputs = np.asarray(bank.test_inputs)
    teacher = np.asarray(bank.problem.teacher.apply(jax.tree.map(lambda leaf: leaf[0], bank.teachers), inputs))
    near = teacher + 1e-4 * np.random.default_rng(0).standard_normal(teacher.shape)
    near = (near / np.sqrt(np.mean(near**2, axis=0))).astype(np.float32)
    # Sums are rounded in another order here, so sizes agree and digits do not; a tenth of the temperature is far more.
    expected = [kl_noise(teacher, near, np.asarray(bank.heads)[0], t) for t in temperatures]
    np.testing.assert_allclose(floors[0], expected, rtol=0.5)
    assert floors[0, 0] > 1.2 * floors[0, 1] > 3 * floors[0, 2] > 0
    for column, temperature in enumerate(temperatures):
        alone = replace(bank, config=replace(config, target=TargetConfig(temperature)))
        np.testing.assert_array_equal(measure_noise_floor(alone), floors[:, [column]])
