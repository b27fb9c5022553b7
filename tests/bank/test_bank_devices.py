"""Any number of devices gives the same numbers; what this machine does not have is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import toydepth
from toydepth.bank import prepare_devices
from toydepth.bank.devices import _kernel
from toydepth.config import DeviceConfig, EvalConfig, TrainConfig
from toydepth.errors import InputError

SCRIPT = """
import json
import dataclasses
import jax
import numpy as np
from toydepth.bank import make_bank, prepare_devices, train
from toydepth.bank.gradients import Gradients
from toydepth.config import (
    AverageConfig, DeviceConfig, EvalConfig, GradientsConfig, LossConfig, OptimizerConfig, StudentConfig, TargetConfig,
    TeacherConfig, TrainConfig,
)

# Weights that are matrices to the optimiser, two temperatures, and heads of their own.
muon = dict(
    vocabulary=5, loss=LossConfig("kl"), target=TargetConfig((1.0, 0.5)), optimizer=OptimizerConfig("muon"),
    student=StudentConfig(depths=2, head="learned", temperature="target"),
)

def settings(replicates, count, init, **changes):
    values = dict(
        width=4, batch_size=16, steps=20, replicates=replicates, average=AverageConfig(0.9),
        teacher=TeacherConfig(depth=3), student=StudentConfig(depths=2, init=init),
        eval=EvalConfig(points=4, samples=64), device=DeviceConfig("cpu", count),
    )
    return TrainConfig(**(values | changes))

def curves(*which, **changes):
    config = settings(*which, **changes)
    layout = prepare_devices(config)
    outcome = train(make_bank(config, layout))
    names = ("train_loss", "test_loss", "test_loss/0.9", "standard_error")
    return layout.describe(), {name: outcome.story.series[name][1:] for name in names}

def gradients(count, state=None):
    # Of one state, which is that of a single device after some updates.
    config = settings(1, count, ("zero", "euler"))
    bank, found = make_bank(config, prepare_devices(config)), {}
    state = jax.device_get(bank.advance(bank.state, 5)) if state is None else state
    for stream in ("train", "test"):
        bank.config = dataclasses.replace(config, gradients=GradientsConfig(1, stream))
        taken = Gradients(bank).take(bank.place(state))
        flat = [np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(own)]).tolist() for own in taken.gradients]
        found[stream] = taken.losses.tolist(), flat
    return state, found

# Four first: the number of CPU devices of a process is set once.
both = ("zero", "euler")
jobs = ((2, 4, "zero"), (2, 4, both), (1, 4, both), (1, 2, "zero"), (3, 2, both), (3, 1, both))
adam = [(r, i, *curves(r, c, i)) for r, c, i in jobs]
both_muon = [curves(1, count, "zero", **muon) for count in (4, 1)]
state, alone = gradients(1)
print(json.dumps({"adam": adam, "muon": both_muon, "gradients": [alone, gradients(4, state)[1]]}))
"""


@pytest.fixture(scope="module")
def runs():
    """Curves of the jobs of SCRIPT, each with its layout, from one process with four devices."""
    variables = {**os.environ, "PYTHONPATH": str(Path(toydepth.__file__).parents[1]), "XLA_FLAGS": ""}
    # The banks are compiled for twenty steps each; quick compilation is worth more than quick code.
    variables["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=variables, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_two_and_four_devices_agree_with_one(runs):
    runs = runs["adam"]
    found = [(device["replica"], device["arm"], device["batch"]) for _, _, device, _ in runs]
    assert found == [(2, 1, 2), (2, 2, 1), (1, 2, 2), (1, 1, 2), (1, 2, 1), (1, 1, 1)]
    one = runs[-1][3]
    for replicates, init, _, curves in runs:
        # The last job has every arm, replicate by replicate and in each zero before euler.
        arms = slice(0, 2 * replicates, 2 if init == "zero" else 1)
        for name, rows in curves.items():
            for row, expected in zip(rows, one[name], strict=True):
                assert row == pytest.approx(expected[arms], rel=1e-4), name


def test_temperatures_learned_heads_and_muon_agree_with_one_device(runs):
    layouts = [(device["replica"], device["arm"], device["batch"]) for device, _ in runs["muon"]]
    # Two devices for the temperatures, times two for the batch.
    assert layouts == [(1, 2, 2), (1, 1, 1)]
    (_, four), (_, one) = runs["muon"]
    assert one["test_loss"][-1] != pytest.approx(one["test_loss"][0], rel=0.1)
    assert one["test_loss"][-1][0] != pytest.approx(one["test_loss"][-1][1], rel=0.1)
    for name, rows in four.items():
        np.testing.assert_allclose(rows, one[name], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("stream", ["train", "test"])
def test_gradient_snapshots_agree_with_one_device(runs, stream):
    """Four devices: two for the inits, times two for the examples."""
    (losses, one), (other_losses, four) = (found[stream] for found in runs["gradients"])
    assert other_losses == pytest.approx(losses, rel=1e-5)
    for own, other in zip(one, four, strict=True):
        np.testing.assert_allclose(other, own, rtol=1e-5, atol=1e-5 * np.abs(own).max())


@pytest.fixture(scope="module")
def available():
    return len(jax.devices())


def test_more_devices_than_there_are(available):
    config = TrainConfig(device=DeviceConfig(count=available + 1))
    with pytest.raises(InputError, match=rf"device\.count must be at most {available}, got {available + 1}\."):
        prepare_devices(config)


def test_a_platform_that_is_not_there():
    with pytest.raises(InputError, match=r"device\.platform must be available, got tpu\..*set device=\w+ or auto"):
        prepare_devices(TrainConfig(device=DeviceConfig("tpu")))


@pytest.mark.parametrize(
    ("changes", "key"),
    [({"batch_size": 255}, "batch_size"), ({"eval": EvalConfig(samples=101)}, r"eval\.samples")],
)
def test_work_that_the_devices_do_not_divide(monkeypatch, changes, key):
    monkeypatch.setattr("toydepth.bank.devices._find", lambda platform: jax.devices() * 4)
    with pytest.raises(
        InputError, match=rf"{key} must be divisible by the 2 devices .* Set device\.count to a divisor"
    ):
        prepare_devices(TrainConfig(device=DeviceConfig(count=2), **changes))
    # Two replicates need no batch to be shared; without a count, the largest that fits is taken.
    layout = prepare_devices(TrainConfig(device=DeviceConfig(count=1), replicates=2, **changes))
    assert (layout.replica, layout.arm, layout.batch) == (1, 1, 1)


def test_the_precision_is_set():
    before = jax.config.jax_default_matmul_precision
    try:
        prepare_devices(TrainConfig(device=DeviceConfig(count=1, precision="high")))
        assert jax.config.jax_default_matmul_precision == "high"
    finally:
        jax.config.update("jax_default_matmul_precision", before)


def test_the_kernel_that_is_asked_for(native):
    for kernel in ("xla", "native"):
        found = prepare_devices(TrainConfig(device=DeviceConfig(count=1, kernel=kernel)))
        assert (found.kernel, found.why_kernel) == (kernel, "device.kernel")
    found = prepare_devices(TrainConfig(device=DeviceConfig(count=1)))
    assert (found.kernel, found.why_kernel) == ("native", "compiled here") and "native layers" in found.in_words()


def test_native_layers_that_cannot_be_had(monkeypatch):
    monkeypatch.setattr("toydepth.kernel.why_not", lambda: "no C++ compiler was found")
    found = prepare_devices(TrainConfig(device=DeviceConfig(count=1)))
    assert found.kernel == "xla" and "layers by XLA (no C++ compiler was found)" in found.in_words()
    said = r"^device\.kernel must be possible here, got native: no C\+\+ compiler was found\. Set device\.kernel=auto"
    with pytest.raises(InputError, match=said):
        prepare_devices(TrainConfig(device=DeviceConfig(count=1, kernel="native")))


def test_other_platforms_have_no_native_layers():
    assert _kernel("auto", "gpu")[0] == _kernel("xla", "gpu")[0] == "xla"
    with pytest.raises(InputError, match="got native: they are for CPU, and this is gpu"):
        _kernel("native", "gpu")


def test_a_wrong_name_of_a_kernel():
    with pytest.raises(InputError, match=r"^device\.kernel must be one of auto \| xla \| native, got nativ\."):
        DeviceConfig(kernel="nativ")


def test_description():
    described = prepare_devices(TrainConfig(device=DeviceConfig("cpu", 1))).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["platform"] == "cpu"
    assert described["count"] == described["replica"] == described["arm"] == described["batch"] == 1
