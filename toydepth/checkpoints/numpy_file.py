"""Arrays that numpy saved: .npz, whose arrays are tensors, and .npy, one tensor."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from toydepth.checkpoints.tensors import TensorInfo, Tensors, as_floats, make_tensors, not_float
from toydepth.errors import InputError

_BROKEN = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, zlib.error)


def open_npz(path: Path) -> Tensors:
    """Opens an .npz archive; headers are read, values are not. Arrays of objects are never unpickled.

    Raises:
        InputError: for a file that is no such archive, or is damaged.
    """
    infos = []
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                with archive.open(member) as file:
                    infos.append(_info(member.removesuffix(".npy"), *_header(file)))
    except _BROKEN as error:
        raise InputError(_bad(path, error)) from error

    def load(name: str) -> np.ndarray:
        try:
            # Opened here: of a damaged archive numpy leaves its own open.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return as_floats(archive[name])
        except _BROKEN as error:
            raise InputError(_bad(path, error)) from error

    return make_tensors(path, infos, load)


def open_npy(path: Path) -> Tensors:
    """Opens an .npy file as one tensor, named as the file is; its header is read, its values are not.

    Raises:
        InputError: for a file that is no such array, or is damaged.
    """
    try:
        with path.open("rb") as file:
            info = _info(path.stem, *_header(file))
    except _BROKEN as error:
        raise InputError(_bad(path, error)) from error

    def load(_name: str) -> np.ndarray:
        try:
            with path.open("rb") as file:
                return as_floats(np.load(file, allow_pickle=False))
        except _BROKEN as error:
            raise InputError(_bad(path, error)) from error

    return make_tensors(path, [info], load)


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"format {version}")
    old = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _info(name: str, shape: tuple[int, ...], dtype: np.dtype) -> TensorInfo:
    return TensorInfo(name, shape, dtype.name, None if dtype.kind == "f" else not_float(dtype.name))


def _bad(path: Path, error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    return f"{path} must be a whole file of numpy arrays, got {reason[:200]}. Save it again by numpy."
