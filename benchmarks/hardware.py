"""Data-sheet rates of accelerators, for model FLOP utilisation; the peak measured in the run needs none of them."""

from __future__ import annotations

import re

# TFLOP/s a device of jax (a chip; of TPU v2 and v3, half of one): float32 without tensor cores on GPUs, which is what
# device.precision=highest runs there; bfloat16 on TPUs, whose units have nothing else (a float32 product is six of
# those). From the makers' data sheets; the longest name that a device's name contains counts.
_TERAFLOPS = {
    "V100": 15.7,
    "A100": 19.5,
    "A40": 37.4,
    "L4": 30.3,
    "L40S": 91.6,
    "H100 PCIe": 51.0,
    "H100": 67.0,
    "H200": 67.0,
    "RTX 3090": 35.6,
    "RTX 4090": 82.6,
    "TPU v2": 22.5,
    "TPU v3": 61.5,
    "TPU v4": 275.0,
    "TPU v5 lite": 197.0,
    "TPU v5": 459.0,
    "TPU v5p": 459.0,
    "TPU v6 lite": 918.0,
}


def sheet_flops(device_kind: str) -> float | None:
    """Returns operations a second of one device by its data sheet, or None for a device that is not in the list.

    Example:
        >>> sheet_flops("NVIDIA H100 80GB HBM3"), sheet_flops("NVIDIA H100 PCIe"), sheet_flops("cpu")
        (67000000000000.0, 51000000000000.0, None)
    """
    words = re.split(r"[\s-]+", device_kind.lower())
    known = [name for name in _TERAFLOPS if all(word in words for word in name.lower().split())]
    return _TERAFLOPS[max(known, key=len)] * 1e12 if known else None
