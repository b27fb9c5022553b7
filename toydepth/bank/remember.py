"""What was measured on this machine before: layouts.json in TOYDEPTH_CACHE, or in the user's cache folder."""

from __future__ import annotations

import contextlib
import json
import platform as machine
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from toydepth.bank.devices import Layout
from toydepth.cache import cache_folder, keep
from toydepth.config import TrainConfig
from toydepth.net import KERNELS


def key_of(config: TrainConfig, layout: Layout) -> str:
    """Returns what a measurement depends on: processor, versions, shapes, and what the config fixes."""
    student = config.student
    shapes = {
        "processor": _processor(),
        "devices": jax.device_count(layout.platform),
        "jaxlib": version("jaxlib"),
        "width": config.width,
        "batch": config.batch_size,
        "arms": (config.replicates, len(config.target.temperatures), len(student.init)),
        "loss": (config.loss.name, config.vocabulary if config.loss.name == "kl" else 0, student.head),
        "block": student.block,
        "fixed": (config.device.count, config.device.arms_at_a_time, config.device.examples_at_a_time),
        "kernel": (config.device.kernel, layout.kernel),
        "samples": config.eval.samples,
        "precision": config.device.precision,
    }
    return json.dumps(shapes, sort_keys=True)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return machine.processor() or machine.machine()


def _file() -> Path:
    return cache_folder() / "layouts.json"


def read_known() -> dict[str, Any]:
    """Returns what was measured before; nothing where the file is missing, nor what in it is not ours."""
    try:
        known = json.loads(_file().read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: value for key, value in known.items() if is_whole(value)} if isinstance(known, dict) else {}


def is_whole(value: Any) -> bool:
    """Returns whether a choice of layout is all there: kernel, numbers of devices, arms and examples, and why."""
    if not isinstance(value, dict) or value.get("kernel") not in KERNELS:
        return False
    if not all(isinstance(value.get(name), str) for name in ("why_so_many", "why_kernel")):
        return False
    numbers = [value.get(name) for name in ("count", "arms_at_a_time", "examples_at_a_time")]
    return all(type(number) is int and number >= 1 for number in numbers)


def write_known(known: dict[str, Any]) -> None:
    """Keeps it for the next run; a folder that cannot be written only means to measure again."""
    with contextlib.suppress(OSError):
        keep(_file(), (json.dumps(known, indent=1) + "\n").encode())
