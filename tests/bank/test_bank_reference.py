"""The bank against the model written a second time in numpy, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toydepth.bank import make_bank, prepare_devices
from toydepth.config import (
    AverageConfig,
    LossConfig,
    OptimizerConfig,
    ScheduleConfig,
    StudentConfig,
    TargetConfig,
)

CASES = {
    "mse, tied": {
        "student": StudentConfig(depths=2, init="euler"),
        "average": AverageConfig((0.5, 0.9)),
        "schedule": ScheduleConfig("stable_then_linear", 0.5, 0.1),
    },
    "kl, teacher's head, rk2": {
        "kind": "independent",
        "loss": LossConfig("kl"),
        "student": StudentConfig(depths=2, head="teacher", block="rk2"),
        "target": TargetConfig((1.0, 0.1)),
        "optimizer": OptimizerConfig(options={"eps": 1e-3, "b1": 0.8}),
        "average": AverageConfig(0.7),
    },
    "kl, learned head": {
        "loss": LossConfig("kl"),
        "student": StudentConfig(depths=(0, 2), head="learned", temperature=1.0),
        "target": TargetConfig((1.0, 0.1)),
        "average": AverageConfig(0.7),
        "optimizer": OptimizerConfig(options={"eps": 1e-5}),
    },
}


@pytest.fixture(scope="module", params=CASES)
def bank(request, tiny, quick_compilation):
    config = tiny(**CASES[request.param])
    return make_bank(config, prepare_devices(config))


def initial(bank, depth):
    """Host copy of the parameters of a depth; with one replicate and init, an arm a temperature."""
    return jax.tree.map(np.asarray, bank.state["depths"][str(depth)]["params"])


def pick(tree, arm):
    return jax.tree.map(lambda leaf: leaf[arm], tree)


def teach(bank, reference, x):
    """Targets of the first replicate on x (batch, width), one a temperature, and the head."""
    teacher = jax.tree.map(lambda leaf: np.asarray(leaf)[0], bank.teachers)
    hidden = reference.forward(reference.layers(teacher["stack"]["block"], bank.config.teacher.depth), x)
    if bank.heads is None:
        return [hidden], None
    head = np.asarray(bank.heads, float)[0]
    return [reference.log_softmax(hidden @ head / t) for t in bank.config.target.temperatures], head


def test_forward_losses_updates_and_averages(bank, reference):
    config = bank.config
    student_temperatures = [config.student_temperature(t) for t in config.target.temperatures]
    start = {depth: initial(bank, depth) for depth in config.student.depths}
    test = np.asarray(bank.test_inputs, float).T
    targets, head = teach(bank, reference, test)
    expected = [
        reference.loss(pick(start[depth], k), test, target, config.loss.name, head, student_temperatures[k])[0]
        for depth in config.student.depths
        for k, target in enumerate(targets)
    ]
    np.testing.assert_allclose(bank.evaluate(bank.state)["test_loss"], expected, rtol=1e-5)

    # Every arm by hand, through every step, with its own moments and averages.
    arms = {(d, k): reference.float64(pick(start[d], k)) for d in start for k in range(len(targets))}
    moments = {arm: (jax.tree.map(np.zeros_like, p),) * 2 for arm, p in arms.items()}
    averages = {arm: [p] * len(config.average.decays) for arm, p in arms.items()}
    losses = dict.fromkeys(arms, 0.0)
    shape = [1.0, 1.0, config.schedule.final_fraction]  # of three steps, the decay takes the last
    state = bank.state
    for step in range(3):
        drawn = jax.random.normal(jax.random.fold_in(bank.problem.data_key, step), (config.batch_size, config.width))
        x = np.asarray(drawn, float)
        targets, head = teach(bank, reference, x)
        for (depth, k), params in arms.items():
            loss, gradient = reference.loss(params, x, targets[k], config.loss.name, head, student_temperatures[k])
            if step == 0 and depth == 2:
                check_gradients(bank, reference, params, gradient, x, targets[k], head, k)
            rate = 0.01 * max(depth, 1) ** -0.5 * shape[step]
            arm = (depth, k)
            arms[arm], moments[arm] = reference.adam(
                params, moments[arm], gradient, rate, step + 1, **config.optimizer.options
            )
            losses[arm] += loss
            averages[arm] = [
                jax.tree.map(lambda a, p, d=decay: d * a + (1 - d) * p, average, arms[arm])
                for decay, average in zip(config.average.decays, averages[arm], strict=True)
            ]
        state = bank.advance(state, step + 1)
        if step == 1:
            continue
        for (depth, k), params in arms.items():
            stack = state["depths"][str(depth)]
            # Relative to the learning rate, i.e. to the size of an update.
            close = {"rtol": 1e-6, "atol": 1e-5 * 0.01 if step == 0 else 1e-4 * 0.01}
            compare(stack["params"], k, params, close)
            for measured, average in zip(stack["averages"], averages[depth, k], strict=True):
                compare(measured, k, average, close)
    np.testing.assert_allclose(bank.by_arm(state, "loss_sum"), list(losses.values()), rtol=3e-5)
    assert int(state["step"]) == int(state["count"]) == 3 and bank.num_traces == 1


def compare(measured, arm, expected, close):
    measured = pick(jax.tree.map(np.asarray, measured), arm)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **close), measured, expected)


def check_gradients(bank, reference, params, by_hand, x, target, head, which):
    """float32 gradients, those by hand, and central differences of the float64 loss agree."""
    problem, config = bank.problem, bank.config
    temperature = config.student_temperature(config.target.temperatures[which])
    single = jax.tree.map(jnp.float32, params)

    def mean_loss(params):
        own = None if head is None else jnp.float32(head)
        return problem.losses("2", params, own, jnp.float32(target.T), temperature, jnp.float32(x.T)).mean()

    measured = jax.tree.map(np.asarray, jax.jit(jax.grad(mean_loss))(single))
    rng = np.random.default_rng(which)
    leaves, restore = jax.tree.flatten(reference.float64(single))
    for number, (hand, auto) in enumerate(zip(jax.tree.leaves(by_hand), jax.tree.leaves(measured), strict=True)):
        np.testing.assert_allclose(auto, hand, rtol=1e-4, atol=1e-5 * max(abs(hand).max(), 1e-6))
        for _ in range(2):
            place = tuple(rng.integers(n) for n in auto.shape)
            ends = []
            for sign in (1, -1):
                moved = [leaf.copy() for leaf in leaves]
                moved[number][place] += sign * 1e-5
                moved = jax.tree.unflatten(restore, moved)
                ends.append(reference.loss(moved, x, target, config.loss.name, head, temperature)[0])
            assert auto[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-3 * abs(hand).max() + 1e-9)
