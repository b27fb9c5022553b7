"""What a file of tensors is to the rest of the room: names, shapes and kinds at once, values one tensor at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from toydepth.errors import InputError


@dataclass(frozen=True)
class TensorInfo:
    """A tensor before its values are read.

    Attributes:
        name: as the file has it. shape: empty for a single number.
        dtype: float32, bfloat16, float8_e4m3fn, int64, ...
        problem: why it gives no values: `not float (int64)`, ...; None for one that does.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    problem: str | None = None

    @property
    def num_values(self) -> int:
        """How many values its shape has room for."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Tensors:
    """The tensors of one checkpoint, in natural order of their names.

    Attributes:
        source: the file or folder.
        infos: name -> what is known of it; also those that give no values.
        load: name -> its values, float32, or float64 where they are stored so; called for one tensor at a time.
    """

    source: Path
    infos: Mapping[str, TensorInfo]
    load: Callable[[str], np.ndarray]

    def read(self, name: str) -> np.ndarray:
        """Returns the values of a tensor, of its shape, in float32, or in float64 where they are stored so.

        Raises:
            InputError: for a name that is not there, a tensor that gives no values, a file that ends too early.
        """
        info = self.infos.get(name)
        if info is None or info.problem:
            got = info.problem if info else "no such name"
            raise InputError(f"{name} must be a tensor of floats in {self.source}, got {got}. Choose another.")
        return self.load(name).reshape(info.shape)


def make_tensors(source: Path, infos: Iterable[TensorInfo], load: Callable[[str], np.ndarray]) -> Tensors:
    """Returns Tensors with its names in natural order.

    Eight-bit floats whose scale lies in a tensor of its own (`..._scale`, `..._scale_inv`) are no values by themselves:
    they get a problem.
    """
    known = {info.name: info for info in sorted(infos, key=lambda info: natural_order(info.name))}
    for name, info in known.items():
        scaled = f"{name}_scale" in known or f"{name}_scale_inv" in known
        if info.dtype.startswith("float8") and not info.problem and scaled:
            known[name] = replace(info, problem=f"{info.dtype} with a scale in another tensor")
    return Tensors(source, known, load)


def natural_order(name: str) -> tuple[list[str | int], str]:
    """Returns a key that sorts names with their numbers as numbers: layer 2 before layer 10.

    The same names give the same order, whatever the file's own is: values stay at their places over a training.

    >>> sorted(["h.10.w", "h.2.w", "h.2.b"], key=natural_order)
    ['h.2.b', 'h.2.w', 'h.10.w']
    """
    parts: list[str | int] = list(re.split(r"([0-9]+)", name))  # words and digits in turns, so that like meets like
    parts[1::2] = [int(digits) for digits in parts[1::2]]
    return parts, name


def not_float(dtype: str) -> str:
    """Returns the problem of a tensor that is not of floats."""
    return f"not float ({dtype})"


def as_floats(values: np.ndarray) -> np.ndarray:
    """Returns real floats as float64 where they are wider than 32 bits, else as float32, in this machine's byte order.

    >>> as_floats(np.zeros(1, ">f2")).dtype, as_floats(np.zeros(1, ">f8")).dtype
    (dtype('float32'), dtype('float64'))
    """
    return np.asarray(values).astype(np.float64 if values.dtype.itemsize > 4 else np.float32, copy=False)
