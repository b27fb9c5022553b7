"""How much is worked on at a time: so many arms of a depth, so many examples of the batch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from toydepth.config import TrainConfig

_LEVEL_2 = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
_USUAL = 2**20


@dataclass(frozen=True)
class Tiling:
    """Arms of a depth and examples of the batch that one device works on at a time, and why so many."""

    arms: int
    examples: int
    why: str


def tiling_by_rule(config: TrainConfig, platform: str, arms: int, examples: int) -> Tiling:
    """Returns a tiling: the whole work of a device where its activations fit in the cache, or on another platform.

    Hidden activations (4 m x examples an arm) that overflow the cache of a core pay for memory traffic: at width 32,
    batch 1024 and 8 arms, a quarter of the speed. Twice the second-level cache was the most that paid (lab log).

    Args:
        config: device.arms_at_a_time and device.examples_at_a_time are taken where they are numbers.
        platform: cpu, gpu or tpu.
        arms: of a depth, on one device.
        examples: of a batch, on one device.

    Example:
        >>> tiling_by_rule(TrainConfig(), "gpu", 100, 4096)
        Tiling(arms=100, examples=4096, why='all: gpu')
    """
    told = config.device
    whole_arms = arms if told.arms_at_a_time is None else min(told.arms_at_a_time, arms)
    whole_examples = examples if told.examples_at_a_time is None else largest_part(examples, told.examples_at_a_time)
    if told.arms_at_a_time is not None and told.examples_at_a_time is not None:
        return Tiling(whole_arms, whole_examples, "device.arms_at_a_time, device.examples_at_a_time")
    if platform != "cpu":
        return Tiling(whole_arms, whole_examples, f"all: {platform}")
    most = 2 * _cache_bytes() // (4 * config.width * 4)
    if told.arms_at_a_time is None:
        whole_arms = even_group(arms, max(most // whole_examples, 1))
    if told.examples_at_a_time is None:
        whole_examples = nearest_part(examples, max(most // whole_arms, 1))
    each = 4 * config.width * whole_examples * 4
    why = f"{_mebibytes(each)} of hidden activations an arm, {_mebibytes(_cache_bytes())} of cache a core"
    return Tiling(whole_arms, whole_examples, why)


def even_group(total: int, most: int) -> int:
    """Returns the size of the groups when `total` is cut into as few as have at most `most`, as even as can be.

    A smaller last group would be a program of its own.

    Example:
        >>> even_group(9, 4), even_group(16, 4)
        (3, 4)
    """
    groups = -(-total // most)
    return -(-total // groups)


def largest_part(total: int, most: int) -> int:
    """Returns the largest divisor of `total` that is at most `most`.

    Example:
        >>> largest_part(1024, 700), largest_part(7, 3)
        (512, 1)
    """
    return next(part for part in range(min(most, total), 0, -1) if total % part == 0)


def nearest_part(total: int, wanted: int) -> int:
    """Returns the divisor of `total` that is nearest to a wanted size, by ratio: 1 example at a time would be slow.

    Example:
        >>> nearest_part(1024, 700), nearest_part(1021, 512)
        (512, 1021)
    """
    below, above = largest_part(total, wanted), next_part(total, wanted)
    return below if wanted * wanted <= below * above else above


def next_part(total: int, least: int) -> int:
    """Returns the smallest divisor of `total` that is at least `least`; all of it where that is more.

    Example:
        >>> next_part(12, 5), next_part(12, 20)
        (6, 12)
    """
    return next((part for part in range(least, total) if total % part == 0), total)


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.2g} MiB"


def _cache_bytes() -> int:
    """The second-level cache of a core; a usual size where the system does not say."""
    try:
        found = re.fullmatch(r"(\d+)([KM])", _LEVEL_2.read_text().strip())
    except OSError:
        return _USUAL
    return int(found[1]) * {"K": 2**10, "M": 2**20}[found[2]] if found else _USUAL
