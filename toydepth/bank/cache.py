"""How many arms are worked on at a time: as many as the processor's cache holds."""

from __future__ import annotations

import re
from pathlib import Path

from toydepth.config import TrainConfig

_LEVEL_2 = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
_USUAL = 2**20


def arms_at_a_time(config: TrainConfig, platform: str, arms: int, examples: int) -> tuple[int, str]:
    """Returns a number of arms, and why; all of them where they fit, or on another platform than CPU.

    A stack of arms whose hidden activations (4 m x batch) overflow the cache of a core pays for memory traffic: at
    width 32, batch 1024 and 8 arms, a quarter of the speed. Twice the second-level cache was the most that paid (lab
    log).

    Args:
        config: device.arms_at_a_time, where it is a number, is taken.
        platform: cpu, gpu or tpu.
        arms: of a depth, on one device.
        examples: of a batch, on one device.

    Example:
        >>> arms_at_a_time(TrainConfig(), "gpu", 100, 4096)
        (100, 'all: gpu')
    """
    if config.device.arms_at_a_time is not None:
        return min(config.device.arms_at_a_time, arms), "device.arms_at_a_time"
    if platform != "cpu":
        return arms, f"all: {platform}"
    cache = _cache_bytes()
    each = 4 * config.width * examples * 4
    most = max(2 * cache // each, 1)
    # Groups as even as can be: a smaller last one would be a program of its own.
    groups = -(-arms // most)
    reason = f"{each / 2**20:.2g} MiB of hidden activations an arm, {cache / 2**20:.2g} MiB of cache a core"
    return -(-arms // groups), reason


def _cache_bytes() -> int:
    """The second-level cache of a core; a usual size where the system does not say."""
    try:
        found = re.fullmatch(r"(\d+)([KM])", _LEVEL_2.read_text().strip())
    except OSError:
        return _USUAL
    return int(found[1]) * {"K": 2**10, "M": 2**20}[found[2]] if found else _USUAL
