"""As many arms at a time as the cache holds, and the same numbers however many."""

import numpy as np
import pytest

from toydepth.bank import cache, make_bank, prepare_devices, train
from toydepth.bank.cache import arms_at_a_time
from toydepth.config import DeviceConfig, LossConfig, StudentConfig, TargetConfig, TrainConfig


@pytest.fixture
def one_mebibyte(monkeypatch, tmp_path):
    (tmp_path / "size").write_text("1024K\n")
    monkeypatch.setattr(cache, "_LEVEL_2", tmp_path / "size")


@pytest.mark.parametrize(
    ("width", "examples", "arms", "expected"),
    [(8, 256, 16, 16), (32, 1024, 8, 4), (32, 1024, 10, 4), (32, 1024, 9, 3), (32, 1024, 1, 1), (512, 4096, 6, 1)],
)
def test_groups_fit_twice_the_cache_and_are_even(one_mebibyte, width, examples, arms, expected):
    found, why = arms_at_a_time(TrainConfig(width=width), "cpu", arms, examples)
    assert found == expected and "1 MiB of cache" in why


def test_the_setting_and_other_platforms_go_first(one_mebibyte):
    assert arms_at_a_time(TrainConfig(width=512), "gpu", 6, 4096)[0] == 6
    told = TrainConfig(width=512, device=DeviceConfig(arms_at_a_time=4))
    assert [arms_at_a_time(told, "cpu", arms, 4096)[0] for arms in (3, 6)] == [3, 4]


@pytest.mark.parametrize(("text", "expected"), [("512K", 2**19), ("2M", 2**21), ("odd", 2**20), (None, 2**20)])
def test_the_size_of_the_cache(monkeypatch, tmp_path, text, expected):
    if text:
        (tmp_path / "size").write_text(text)
    monkeypatch.setattr(cache, "_LEVEL_2", tmp_path / "size")
    assert cache._cache_bytes() == expected


@pytest.mark.parametrize("group", [1, 2, 3])
def test_groups_change_no_number(tiny, group):
    settings = {
        "loss": LossConfig("kl"),
        "target": TargetConfig((1.0, 0.5)),
        "student": StudentConfig(depths=2, head="learned"),
        "replicates": 2,
        "steps": 8,
    }
    runs = []
    for number in (None, group):
        config = tiny(**settings, device=DeviceConfig(count=1, arms_at_a_time=number))
        runs.append(train(make_bank(config, prepare_devices(config))).story.series)
    whole, grouped = runs
    for name in ("test_loss", "train_loss"):
        np.testing.assert_allclose(grouped[name][1:], whole[name][1:], rtol=1e-5)
