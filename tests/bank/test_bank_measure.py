"""The fastest layout is found, told why, and kept; what the config says is never measured away."""

import dataclasses
import json

import jax
import pytest

from toydepth.bank import choose_layout, measure, prepare_devices
from toydepth.bank.remember import key_of, read_known
from toydepth.config import DeviceConfig, LossConfig, OptimizerConfig, StudentConfig, TargetConfig, TrainConfig
from toydepth.errors import InputError


@pytest.fixture
def worth_it(monkeypatch, tmp_path):
    """Every training is worth measuring, and nothing was measured before; returns the file of what was."""
    monkeypatch.setattr(measure, "WORTH_FLOPS", 0)
    monkeypatch.setenv("TOYDEPTH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "layouts.json"


@pytest.fixture
def times(monkeypatch):
    """times(best_arms, best_examples): what a machine would measure that is fastest there; returns what was timed."""

    def make(arms, examples, **devices):
        timed = []

        def timer(config, layout):
            timed.append((layout.count, layout.tiling.arms, layout.tiling.examples))
            far = max(layout.tiling.arms / arms, arms / layout.tiling.arms)
            far *= max(layout.tiling.examples / examples, examples / layout.tiling.examples)
            return lambda: far * devices.get(f"x{layout.count}", 1.0)

        monkeypatch.setattr(measure, "_timer", timer)
        return timed

    return make


@pytest.fixture
def kernels(monkeypatch):
    """kernels(**slower): a machine whose kernels take so many times as long; returns what was timed on it."""

    def make(**slower):
        timed = []

        def timer(config, layout):
            timed.append((layout.kernel, layout.count, layout.tiling.arms))
            # XLA is fastest with 2 arms at a time, native layers with all.
            far = {"xla": max(layout.tiling.arms / 2, 2 / layout.tiling.arms), "native": 16 / layout.tiling.arms}
            return lambda: slower.get(layout.kernel, 1.0) * far[layout.kernel]

        monkeypatch.setattr(measure, "_timer", timer)
        return timed

    return make


SIXTEEN = TrainConfig(width=32, batch_size=1024, replicates=16, device=DeviceConfig(count=1))


@pytest.mark.parametrize(("arms", "examples"), [(1, 1024), (4, 128), (16, 1024), (16, 64), (2, 512), (8, 1)])
def test_the_fastest_is_found(worth_it, times, arms, examples):
    times(arms, examples)
    found = choose_layout(SIXTEEN).tiling
    assert (found.arms, found.examples) == (arms, examples)
    assert found.why.startswith("best of ") and "times as long" in found.why


def test_half_the_devices_where_they_are_faster(worth_it, times, monkeypatch):
    monkeypatch.setattr("toydepth.bank.devices._find", lambda platform: jax.devices()[:1] * 4)
    config = dataclasses.replace(SIXTEEN, replicates=4, device=DeviceConfig())
    # A mesh of one device four times cannot be made: only the shape matters here.
    monkeypatch.setattr("jax.make_mesh", lambda shape, names, devices: FakeMesh(devices))
    monkeypatch.setattr("jax.device_count", lambda platform=None: 4)
    timed = times(4, 1024, x4=1.0, x2=0.1)
    assert choose_layout(config).count == 2, timed
    worth_it.unlink()
    times(4, 1024, x4=1.0, x2=9.9)
    assert choose_layout(config).count == 4


WHOLE = {
    "platform": "cpu",
    "count": 1,
    "arms_at_a_time": 16,
    "examples_at_a_time": 32,
    "why_so_many": "measured",
    "kernel": "native",
    "why_kernel": "so",
}


class FakeMesh:
    def __init__(self, devices):
        import numpy as np

        self.devices = np.array(devices)


def test_it_is_measured_once(worth_it, times):
    timed = times(4, 256)
    first = choose_layout(SIXTEEN)
    assert timed and worth_it.is_file()
    timed.clear()
    again = choose_layout(SIXTEEN)
    assert not timed and again.tiling == first.tiling
    # Another shape is another measurement, kept beside the first.
    choose_layout(dataclasses.replace(SIXTEEN, batch_size=512))
    assert timed and len(read_known()) == 2 and key_of(SIXTEEN, first) in read_known()


@pytest.mark.parametrize(
    "entry", [None, 3, {}, {"count": 1}, {"count": 1, "arms_at_a_time": 0, "examples_at_a_time": 1, "why_so_many": ""}]
)
@pytest.mark.parametrize("text", ["", "[1, 2]", "{broken", "[" * 200000, "ours"])
def test_a_file_that_is_not_ours_is_measured_over(worth_it, times, text, entry):
    worth_it.parent.mkdir()
    key = key_of(SIXTEEN, prepare_devices(SIXTEEN))
    worth_it.write_text(json.dumps({key: entry}) if text == "ours" else text)
    timed = times(4, 256)
    assert choose_layout(SIXTEEN).tiling.arms == 4 and timed
    assert len(json.loads(worth_it.read_text())) == 1


def test_a_folder_that_cannot_be_written_is_no_fault(worth_it, times):
    worth_it.parent.write_text("a file where the folder should be")
    times(4, 256)
    assert choose_layout(SIXTEEN).tiling.arms == 4


def test_the_settings_are_never_measured_away(worth_it, times):
    timed = times(4, 256)
    told = dataclasses.replace(SIXTEEN, device=DeviceConfig(count=1, arms_at_a_time=2))
    found = choose_layout(told)
    assert (found.tiling.arms, found.tiling.examples) == (2, 256)
    assert {arms for _, arms, _ in timed} == {2}
    timed.clear()
    told = dataclasses.replace(
        SIXTEEN, device=DeviceConfig(count=1, arms_at_a_time=2, examples_at_a_time=64, kernel="xla")
    )
    assert choose_layout(told).tiling.examples == 64 and not timed


def test_when_nothing_is_measured(worth_it, times, monkeypatch):
    timed = times(4, 256)
    off = dataclasses.replace(SIXTEEN, device=DeviceConfig(count=1, measure=False))
    assert "of cache a core" in choose_layout(off).tiling.why
    monkeypatch.setattr(measure, "WORTH_FLOPS", 1e30)
    assert "of cache a core" in choose_layout(SIXTEEN).tiling.why
    assert not timed and not worth_it.exists()


def test_an_interrupted_run_goes_on_as_it_was(worth_it, times, monkeypatch):
    timed = times(4, 256)
    before = WHOLE
    found = choose_layout(SIXTEEN, before)
    assert (found.tiling.arms, found.tiling.examples) == (16, 32) and not timed
    assert found.tiling.why == "as before the interruption"
    # Without a compiler by now: the same, but by XLA.
    with monkeypatch.context() as patch:
        patch.setattr("toydepth.kernel.why_not", lambda: "no C++ compiler was found")
        without = choose_layout(SIXTEEN, before)
    assert (without.kernel, without.tiling) == ("xla", found.tiling) and not timed
    assert without.why_kernel == "no C++ compiler was found"
    # Another machine, or another wish: measured anew.
    assert choose_layout(SIXTEEN, before | {"platform": "gpu"}).tiling.arms == 4
    told = dataclasses.replace(SIXTEEN, device=DeviceConfig(count=1, examples_at_a_time=64))
    assert choose_layout(told, before).tiling.examples == 64


@pytest.mark.parametrize(
    "before",
    [
        {},
        {"kind": "cpu"},
        WHOLE | {"count": 2.0},
        WHOLE | {"examples_at_a_time": 64.0},
        {name: value for name, value in WHOLE.items() if name != "examples_at_a_time"},
        WHOLE | {"count": 99},
    ],
)
def test_a_record_that_does_not_say_is_measured_anew(worth_it, times, before):
    timed = times(4, 256)
    assert (choose_layout(SIXTEEN, before).tiling.arms == 4 and timed) or before.get("count") == 99


def test_the_faster_kernel_is_found(worth_it, kernels, native):
    kernels(xla=10.0)
    found = choose_layout(SIXTEEN)
    assert (found.kernel, found.tiling.arms) == ("native", 16)
    # At the rule's tiling, 4 arms, XLA takes 10 x 2.
    assert found.why_kernel == "XLA's took 20.00 times as long" in found.in_words()
    worth_it.unlink()
    kernels(native=10.0)
    found = choose_layout(SIXTEEN)
    assert (found.kernel, found.tiling.arms) == ("xla", 2)
    assert found.why_kernel == "native ones took 5.00 times as long"
    # What was found stands for the next run, and for one that goes on.
    timed = kernels()
    again = choose_layout(SIXTEEN)
    assert (again.kernel, again.why_kernel) == ("xla", found.why_kernel) and not timed
    again = choose_layout(SIXTEEN, found.describe())
    assert (again.kernel, again.why_kernel) == ("xla", "as before the interruption") and not timed


def test_a_record_from_before_the_native_layers_goes_on_with_xla(worth_it, times):
    timed = times(4, 256)
    before = {name: value for name, value in WHOLE.items() if "kernel" not in name}
    assert choose_layout(SIXTEEN, before).kernel == "xla" and not timed


def test_a_kernel_that_was_asked_for_is_never_measured_away(worth_it, kernels, native):
    for kernel in ("xla", "native"):
        timed = kernels(**{kernel: 100.0})
        found = choose_layout(dataclasses.replace(SIXTEEN, device=DeviceConfig(count=1, kernel=kernel)))
        assert (found.kernel, found.why_kernel) == (kernel, "device.kernel") and {k for k, *_ in timed} == {kernel}


def test_settings_that_are_cut_to_size_are_kept_too(worth_it, times):
    timed = times(4, 256)
    told = dataclasses.replace(SIXTEEN, device=DeviceConfig(count=1, examples_at_a_time=100))
    first = choose_layout(told)
    assert first.tiling.examples == 64 and timed
    timed.clear()
    assert choose_layout(told).tiling == first.tiling and not timed


def test_a_batch_of_a_prime_number_is_taken_whole(worth_it, times):
    times(16, 1021)
    assert choose_layout(dataclasses.replace(SIXTEEN, batch_size=1021)).tiling.examples == 1021


def test_a_rate_that_only_the_real_depths_can_have(worth_it, tiny):
    config = tiny(learning_rate=1.5e-38, optimizer=OptimizerConfig(depth_power=0.0), student=StudentConfig(depths=2))
    assert choose_layout(config).tiling.arms == 1


def test_a_platform_that_is_not_there_is_refused_first(worth_it):
    with pytest.raises(InputError, match=r"device\.platform must be available"):
        choose_layout(TrainConfig(device=DeviceConfig("tpu")))


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_the_program_that_is_timed(worth_it, tiny, loss):
    config = tiny(
        loss=LossConfig(loss),
        target=TargetConfig((1.0, 0.5) if loss == "kl" else (1.0,)),
        student=StudentConfig(depths=(2, 3), head="learned" if loss == "kl" else "none", block="rk2"),
    )
    layout = choose_layout(config)
    assert "best of" in layout.tiling.why or layout.tiling.why == "the only choice"
    run, arguments = measure._program(config, layout)
    after = run(*arguments, 3)
    before = arguments[-1]
    assert jax.tree.structure(after) == jax.tree.structure(before)
    # Its gradients are used, so that no compiler leaves them out.
    assert any((a != b).any() for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(before), strict=True))
