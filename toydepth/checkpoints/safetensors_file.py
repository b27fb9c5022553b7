"""Safetensors files by numpy alone.

The library of that name hands bfloat16 and 8-bit floats to torch or jax only, and a file is a length, a header in JSON
and the values. Read here, checkpoints need no torch.

Source: the format in the README of github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from toydepth.checkpoints.tensors import TensorInfo, Tensors, as_floats, make_tensors, not_float
from toydepth.errors import InputError

# The name in a header -> the common name, and how its bytes lie. Bits of what numpy lacks are read as integers.
_KINDS: dict[str, tuple[str, str]] = {
    "F64": ("float64", "<f8"),
    "F32": ("float32", "<f4"),
    "F16": ("float16", "<f2"),
    "BF16": ("bfloat16", "<u2"),
    "F8_E4M3": ("float8_e4m3fn", "u1"),
    "F8_E5M2": ("float8_e5m2", "u1"),
    "I64": ("int64", "<i8"),
    "U64": ("uint64", "<u8"),
    "I32": ("int32", "<i4"),
    "U32": ("uint32", "<u4"),
    "I16": ("int16", "<i2"),
    "U16": ("uint16", "<u2"),
    "I8": ("int8", "i1"),
    "U8": ("uint8", "u1"),
    "BOOL": ("bool", "u1"),
    "C64": ("complex64", "<c8"),
}
_HEADER_LIMIT = 100_000_000  # bytes, of the format


def open_safetensors(path: Path) -> Tensors:
    """Opens a .safetensors file; its header is read and checked, its values are not.

    Raises:
        InputError: for a file that is cut short, or that is none of the format.
    """
    header, start = _header(path)
    infos, places = [], {}
    for name, entry in header.items():
        kind, stored = _KINDS.get(entry["dtype"], (str(entry["dtype"]), None))
        problem = None if kind.startswith(("float", "bfloat")) and stored else not_float(kind)
        if stored is None:
            problem = f"stored as {kind}, which is not read"
        infos.append(TensorInfo(name, tuple(entry["shape"]), kind, problem))
        places[name] = (kind, stored, start + entry["data_offsets"][0], math.prod(entry["shape"]))

    def load(name: str) -> np.ndarray:
        kind, stored, offset, count = places[name]
        raw = np.fromfile(path, stored, count, offset=offset)
        if len(raw) < count:
            raise InputError(f"{path} must hold all of {name}, got {len(raw)} of {count} values. Copy it again.")
        return _floats(raw, kind)

    return make_tensors(path, infos, load)


def _floats(raw: np.ndarray, kind: str) -> np.ndarray:
    """Values out of stored bits; each is exact, as float32 holds all of bfloat16 and of both 8-bit kinds."""
    if kind == "bfloat16":  # the upper half of a float32
        return (raw.astype(np.uint32) << 16).view(np.float32)
    if kind == "float8_e5m2":  # the upper half of a float16
        return (raw.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    if kind == "float8_e4m3fn":
        # 1 + 4 + 3 bits, spread to the 1 + 5 + 10 of a float16, whose exponent counts from 15 and not from 7.
        wide = raw.astype(np.uint16)
        half = (((wide & 0x80) << 8) | ((wide & 0x7F) << 7)).view(np.float16)
        return np.where((raw & 0x7F) == 0x7F, np.float32("nan"), half.astype(np.float32) * np.float32(256))
    return as_floats(raw)


def _header(path: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """The entries of a file's tensors and where its values begin; refuses whatever does not fit the file's length."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, _HEADER_LIMIT):
                raise InputError(_bad(path, "a header longer than the file"))
            header = json.loads(file.read(length), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(_bad(path, f"a header that is not JSON ({error})")) from error
    if not isinstance(header, dict):
        raise InputError(_bad(path, "a header without names"))
    header.pop("__metadata__", None)
    spans = []
    for name, entry in header.items():
        try:
            shape, (begin, end) = entry["shape"], entry["data_offsets"]
            whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
            stored = _KINDS.get(entry["dtype"], (None, None))[1]
        except (KeyError, TypeError, ValueError):
            whole, shape, begin, end, stored = False, [], 0, 0, None
        if not whole or (stored and math.prod(shape) * np.dtype(stored).itemsize != end - begin):
            raise InputError(_bad(path, f"an entry of {name} that does not fit its shape"))
        spans.append((begin, end, name))
    reached = 0
    for begin, end, name in sorted(spans):
        if begin != reached or end < begin:
            raise InputError(_bad(path, f"values of {name} that begin at {begin}, not at {reached}"))
        reached = end
    if reached != size - 8 - length:
        raise InputError(_bad(path, f"{size - 8 - length} bytes of values where its header says {reached}"))
    return header, 8 + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; JSON itself would keep the last of two equal names."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)


def _bad(path: Path, got: str) -> str:
    return f"{path} must be a whole safetensors file, got {got}. Download or copy it again."
