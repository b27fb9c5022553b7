"""The hand-written backward pass changes no training: the same curves as with the plain branch."""

import numpy as np
import pytest

from toydepth.bank import make_bank, prepare_devices, train
from toydepth.config import StudentConfig
from toydepth.net import plain_branch, residual


@pytest.mark.parametrize("block", ["euler", "rk2"])
def test_two_hundred_steps_agree_with_the_plain_branch(tiny, monkeypatch, block):
    config = tiny(
        teacher_depth=5,
        steps=200,
        learning_rate=1e-3,
        student=StudentConfig(depths=(1, 3), init=("zero", "euler"), block=block),
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
