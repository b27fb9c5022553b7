"""Which devices a job uses, and how replicates and batch lie on them."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
from jax.sharding import Mesh

from toydepth import kernel
from toydepth.bank.share import Share
from toydepth.bank.tiling import Tiling, tiling_by_rule
from toydepth.config import TrainConfig
from toydepth.errors import InputError


@dataclass(frozen=True)
class Layout:
    """A mesh of replica x arm x batch devices, over which replicates, the arms of each, and every batch are spread.

    kernel: what runs the layers, one of `net.KERNELS`, and why. ARMS is the pair of axes that the arms of a depth,
    replicates first, lie on.
    """

    mesh: Mesh
    replica: int
    arm: int
    batch: int
    tiling: Tiling
    kernel: str
    why_kernel: str

    ARMS: ClassVar[tuple[str, str]] = ("replica", "arm")

    @property
    def count(self) -> int:
        """How many devices are used."""
        return self.replica * self.arm * self.batch

    def share(self, config: TrainConfig) -> Share:
        """What one device has to do."""
        return _share(config, self.replica, self.arm, self.batch)

    @property
    def platform(self) -> str:
        """cpu, gpu or tpu."""
        return self.mesh.devices.flat[0].platform

    def in_words(self) -> str:
        """One line for a person: what is used, and why so much at a time."""
        tiling = self.tiling
        devices = f"{self.count} {self.platform} device{'s' * (self.count > 1)}"
        arms = f"{tiling.arms} arm{'s' * (tiling.arms > 1)}"
        layers = "native layers" if self.kernel == "native" else "layers by XLA"
        layers += f" ({self.why_kernel})" * (self.platform == "cpu")
        return f"{devices}, {layers}, {arms} x {tiling.examples} examples at a time ({tiling.why})"

    def describe(self) -> dict[str, Any]:
        """Returns what the record keeps of the devices."""
        kind = self.mesh.devices.flat[0].device_kind
        described = {"platform": self.platform, "kind": kind, "count": self.count}
        described |= {"replica": self.replica, "arm": self.arm, "batch": self.batch}
        tiling = self.tiling
        return described | {
            "arms_at_a_time": tiling.arms,
            "examples_at_a_time": tiling.examples,
            "why_so_many": tiling.why,
            "kernel": self.kernel,
            "why_kernel": self.why_kernel,
        }


def prepare_devices(config: TrainConfig) -> Layout:
    """Sets the platform and precision, and lays replicates and batch out on the devices.

    On CPU each core becomes a device, which works better than one device with many threads: the dots are too small to
    share. With device.count null, the largest number of devices that divides the work is used. Replicates are spread
    first, then the temperatures and inits of each, as they need no communication; what is left shares the batch.

    Raises:
        InputError: for a platform or a number of devices that this machine does not have, or that does not divide
            batch_size and eval.samples; for native layers where they cannot be had.
    """
    device = config.device
    jax.config.update("jax_default_matmul_precision", device.precision)
    if device.platform in ("auto", "cpu"):
        _split_cpu(device.count)
    devices = _find(None if device.platform == "auto" else device.platform)
    if device.count is None:
        count = largest_count(config, len(devices))
    elif device.count > len(devices):
        have = f"{len(devices)} {devices[0].platform} device{'s' * (len(devices) > 1)}"
        raise InputError(f"device.count must be at most {len(devices)}, got {device.count}. This process has {have}.")
    else:
        count = device.count
        if misfit := _misfit(config, count):
            raise InputError(misfit)
    shape = _split(config, count)
    mesh = jax.make_mesh(shape, ("replica", "arm", "batch"), devices=devices[:count])
    share = _share(config, *shape)
    tiling = tiling_by_rule(config, devices[0].platform, share.arms, config.batch_size // share.batches)
    return Layout(mesh, *shape, tiling, *_kernel(device.kernel, devices[0].platform))


def largest_count(config: TrainConfig, most: int) -> int:
    """Returns the largest number of devices, up to `most`, that divides the work; 1 always does."""
    return next(n for n in range(most, 0, -1) if not _misfit(config, n))


def _share(config: TrainConfig, replica: int, arm: int, batch: int) -> Share:
    temperatures, inits = len(config.target.temperatures), len(config.student.init)
    return Share(config.replicates // replica, temperatures, inits, parts=arm, batches=batch)


def _split(config: TrainConfig, count: int) -> tuple[int, int, int]:
    replica = math.gcd(config.replicates, count)
    arms = len(config.target.temperatures) * len(config.student.init)
    arm = math.gcd(arms, count // replica)
    return replica, arm, count // replica // arm


def _misfit(config: TrainConfig, count: int) -> str:
    """Returns why `count` devices do not divide the work, or nothing."""
    batch = _split(config, count)[2]
    for key, value in (("batch_size", config.batch_size), ("eval.samples", config.eval.samples)):
        if value % batch:
            advice = f"Set device.count to a divisor of {value}, or change {key}."
            return f"{key} must be divisible by the {batch} devices that share it, got {value}. {advice}"
    return ""


def _kernel(told: str, platform: str) -> tuple[str, str]:
    """What runs the layers, and why; the native ones are compiled here, where they were not before."""
    if told == "xla":
        return "xla", "device.kernel"
    reason = kernel.why_not() if platform == "cpu" else f"they are for CPU, and this is {platform}"
    if reason and told == "native":
        advice = "Set device.kernel=auto or xla."
        raise InputError(f"device.kernel must be possible here, got native: {reason}. {advice}")
    return ("xla", reason) if reason else ("native", "compiled here" if told == "auto" else "device.kernel")


def _split_cpu(count: int | None) -> None:
    """Asks for one CPU device a core; has no effect once the backend runs (later jobs of one process)."""
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    try:
        jax.config.update("jax_num_cpu_devices", max(count or 0, len(os.sched_getaffinity(0))))
    except RuntimeError:
        return


def _find(platform: str | None) -> list[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return jax.devices(platform)
    except RuntimeError:
        found = jax.default_backend()
        raise InputError(
            f"device.platform must be available, got {platform}. This process has {found}: set device={found} or auto."
        ) from None
