"""So many arms and examples at a time as the cache holds, and the same numbers however many."""

import numpy as np
import pytest

from toydepth.bank import make_bank, prepare_devices, tiling, train
from toydepth.bank.tiling import tiling_by_rule
from toydepth.config import DeviceConfig, LossConfig, StudentConfig, TargetConfig, TrainConfig


@pytest.fixture
def one_mebibyte(monkeypatch, tmp_path):
    (tmp_path / "size").write_text("1024K\n")
    monkeypatch.setattr(tiling, "_LEVEL_2", tmp_path / "size")


@pytest.mark.parametrize(
    ("width", "examples", "arms", "expected"),
    [
        (8, 256, 16, (16, 256)),
        (32, 1024, 8, (4, 1024)),
        (32, 1024, 10, (4, 1024)),
        (32, 1024, 9, (3, 1024)),
        (32, 1024, 1, (1, 1024)),
        # One arm's activations are too many: its batch is cut.
        (512, 4096, 6, (1, 256)),
        (512, 3 * 1024, 6, (1, 256)),
        # 1 at a time would be slow: a prime number of examples is taken whole.
        (512, 257, 6, (1, 257)),
    ],
)
def test_what_is_worked_on_fits_twice_the_cache(one_mebibyte, width, examples, arms, expected):
    found = tiling_by_rule(TrainConfig(width=width), "cpu", arms, examples)
    assert (found.arms, found.examples) == expected and "1 MiB of cache" in found.why


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (DeviceConfig(arms_at_a_time=4), (4, 64)),
        (DeviceConfig(arms_at_a_time=9), (6, 32)),
        (DeviceConfig(examples_at_a_time=100), (3, 64)),  # a divisor of the batch
        (DeviceConfig(arms_at_a_time=4, examples_at_a_time=4096), (4, 4096)),
    ],
)
def test_settings_go_first(one_mebibyte, device, expected):
    found = tiling_by_rule(TrainConfig(width=512, device=device), "cpu", 6, 4096)
    assert (found.arms, found.examples) == expected


def test_other_platforms_take_all():
    found = tiling_by_rule(TrainConfig(width=512), "gpu", 6, 4096)
    assert (found.arms, found.examples, found.why) == (6, 4096, "all: gpu")


@pytest.mark.parametrize(("text", "expected"), [("512K", 2**19), ("2M", 2**21), ("odd", 2**20), (None, 2**20)])
def test_the_size_of_the_cache(monkeypatch, tmp_path, text, expected):
    if text:
        (tmp_path / "size").write_text(text)
    monkeypatch.setattr(tiling, "_LEVEL_2", tmp_path / "size")
    assert tiling._cache_bytes() == expected


@pytest.mark.parametrize(("arms", "examples"), [(1, None), (2, None), (3, None), (None, 4), (3, 8)])
def test_tiles_change_no_number(tiny, arms, examples):
    settings = {
        "loss": LossConfig("kl"),
        "target": TargetConfig((1.0, 0.5)),
        "student": StudentConfig(depths=(0, 2), head="learned"),
        "replicates": 2,
        "steps": 200,
        "learning_rate": 1e-3,
    }
    runs = []
    for told in ({}, {"arms_at_a_time": arms, "examples_at_a_time": examples}):
        config = tiny(**settings, device=DeviceConfig(count=1, **told))
        runs.append(train(make_bank(config, prepare_devices(config))).story.series)
    whole, cut = runs
    for name in ("test_loss", "train_loss"):
        # A kl of float32 is noise below 1e-7 an example (docs/notation.md, "Noise floor"), whose signs cancel in part.
        np.testing.assert_allclose(cut[name][1:], whole[name][1:], rtol=1e-5, atol=2e-8)
