"""Hand-written backward passes change no training: the same curves as with the plain branch, differentiated by jax."""

import dataclasses

import numpy as np
import pytest

from toydepth.bank import make_bank, prepare_devices, train
from toydepth.config import DeviceConfig, LossConfig, StudentConfig
from toydepth.net import plain_branch, residual


@pytest.mark.parametrize("block", ["euler", "rk2"])
def test_two_hundred_steps_agree_with_the_plain_branch(tiny, monkeypatch, block):
    config = tiny(
        teacher_depth=5,
        steps=200,
        learning_rate=1e-3,
        student=StudentConfig(depths=(1, 3), init=("zero", "euler"), block=block),
        device=DeviceConfig(count=1, kernel="xla"),
    )
    fast = train(make_bank(config, prepare_devices(config))).story.series
    calls = []

    def plain(x, w1, b1, w2, *flipped):
        calls.append(flipped)
        return plain_branch(x, w1, b1, w2)

    monkeypatch.setattr(residual, "branch", plain)
    slow = train(make_bank(config, prepare_devices(config))).story.series
    assert calls
    for name in ("train_loss", "test_loss", "test_loss/0.998"):
        np.testing.assert_allclose(fast[name][1:], slow[name][1:], rtol=1e-5)


@pytest.mark.parametrize(("block", "loss"), [("euler", "mse"), ("rk2", "kl")])
def test_two_hundred_steps_agree_with_native_layers(tiny, native, block, loss):
    config = tiny(
        width=16,  # of a vector, or several
        batch_size=80,  # no multiple of a block
        teacher_depth=5,
        steps=200,
        learning_rate=1e-3,
        loss=LossConfig(loss),
        student=StudentConfig(
            depths=(1, 3), init=("zero", "euler"), block=block, head="teacher" if loss == "kl" else "none"
        ),
        device=DeviceConfig(count=1, kernel="native"),
    )
    by_xla = dataclasses.replace(config, device=DeviceConfig(count=1, kernel="xla"))
    fast, slow = (train(make_bank(c, prepare_devices(c))).story.series for c in (config, by_xla))
    for name in ("train_loss", "test_loss", "test_loss/0.998"):
        # Of kl, sums of terms of both signs: their float32 noise is absolute.
        np.testing.assert_allclose(fast[name][1:], slow[name][1:], rtol=1e-5, atol=2e-8 if loss == "kl" else 0)
    assert not np.array_equal(fast["test_loss"], slow["test_loss"])  # they did not run by one kernel
