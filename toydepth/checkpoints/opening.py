"""From a path to its tensors: single files, folders, and folders whose weights are cut into shards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from toydepth.checkpoints.numpy_file import open_npy, open_npz
from toydepth.checkpoints.safetensors_file import open_safetensors
from toydepth.checkpoints.tensors import TensorInfo, Tensors, make_tensors
from toydepth.checkpoints.torch_file import open_torch
from toydepth.errors import InputError

_READERS: dict[str, Callable[[Path], Tensors]] = {
    ".safetensors": open_safetensors,
    ".pt": open_torch,
    ".pth": open_torch,
    ".bin": open_torch,
    ".npz": open_npz,
    ".npy": open_npy,
}
SUFFIXES = tuple(_READERS)
# In this order; a folder's first that is there holds its weights.
_KNOWN = ("model.safetensors", "pytorch_model.bin")
# What trainers leave beside the weights.
_BESIDE = ("optimizer", "scheduler", "training_args", "rng_state", "scaler", "trainer_state")


def open_tensors(path: str | Path) -> Tensors:
    """Opens a checkpoint: names, shapes and kinds at once, values one tensor at a time by `read`.

    Args:
        path: a file (.safetensors, .pt, .pth, .bin, .npz, .npy) or a folder. In a folder, the first of: an index of
            safetensors shards, model.safetensors, an index of .bin shards, pytorch_model.bin; else its only
            .safetensors file; else its only file of the other kinds, optimiser states and the like apart.

    Raises:
        InputError: for a path that is not there, a folder with no weights or with several files and no index, and for
            what the format's reader refuses.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder) / "step10.npz", **{"h.10": np.ones(2), "h.2": np.zeros((1, 2))})
        ...     found = open_tensors(Path(folder) / "step10.npz")
        ...     [(info.name, info.shape) for info in found.infos.values()], found.read("h.10").tolist()
        ([('h.2', (1, 2)), ('h.10', (2,))], [1.0, 1.0])
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return replace(open_tensors(find_weights(path)), source=path)
    if not path.is_file():
        raise InputError(f"checkpoint must be a file or folder that exists, got {path}. Check the path.")
    if path.name.endswith(".index.json"):
        return _open_shards(path)
    if path.suffix not in _READERS:
        raise InputError(f"checkpoint must be one of {', '.join(SUFFIXES)}, got {path}. Convert it to safetensors.")
    return _READERS[path.suffix](path)


def has_weights(path: Path) -> bool:
    """Says whether a path is a file that can be opened, or a folder that holds one."""
    return (path.is_dir() and bool(_candidates(path))) or (path.is_file() and path.suffix in SUFFIXES)


def find_weights(folder: Path) -> Path:
    """Returns the file, or the index of shards, that holds a folder's weights.

    Raises:
        InputError: where there is none, or several and nothing to choose by.
    """
    found = _candidates(folder)
    if not found:
        raise InputError(
            f"checkpoint must be a folder with weights, got {folder} without. Give a folder that has them."
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found[:4])
        raise InputError(f"{folder} must hold one file of weights, or an index, got {names}. Name the file.")
    return found[0]


def _candidates(folder: Path) -> list[Path]:
    for index, whole in (("*.safetensors.index.json", _KNOWN[0]), ("*.bin.index.json", _KNOWN[1])):
        indices = sorted(folder.glob(index))
        if indices:
            return indices
        if (folder / whole).is_file():
            return [folder / whole]
    safe = sorted(folder.glob("*.safetensors"))
    if safe:
        return safe
    others = sorted(file for file in folder.iterdir() if file.is_file() and file.suffix in SUFFIXES)
    return [file for file in others if not file.name.startswith(_BESIDE)]


def _open_shards(index: Path) -> Tensors:
    """The tensors of an index, each from the shard that it names."""
    try:
        places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        pairs = {str(name): str(file) for name, file in places.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{index} must be JSON with a weight_map, got none. Download or copy it again.") from error
    names = sorted(set(pairs.values()))
    for name in names:
        if Path(name).name != name or not (index.parent / name).is_file():
            raise InputError(f"{index} must have its shards beside it, got no {name}. Download or copy it again.")
    shards = {name: open_tensors(index.parent / name) for name in names}
    lost = [name for name, file in pairs.items() if name not in shards[file].infos]
    if lost:
        got = f"{len(lost)} missing, such as {lost[0]} in {pairs[lost[0]]}"
        raise InputError(f"{index} must have all its tensors in its shards, got {got}. Download or copy them again.")
    infos = [shards[file].infos[name] for name, file in pairs.items()]
    infos += [
        TensorInfo(name, info.shape, info.dtype, "not in the index")
        for shard in shards.values()
        for name, info in shard.infos.items()
        if name not in pairs
    ]

    def load(name: str) -> np.ndarray:
        return shards[pairs[name]].load(name)

    return make_tensors(index.parent, infos, load)
