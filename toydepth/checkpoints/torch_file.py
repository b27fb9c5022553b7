"""Files that torch saved, as weights alone: no object in them is ever built, no code of theirs run."""

from __future__ import annotations

import importlib.util
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from toydepth.checkpoints.tensors import TensorInfo, Tensors, make_tensors, not_float
from toydepth.errors import InputError

# Where trainers keep the weights within a larger dict; "_model" is Lightning Fabric's in Pico.
WRAPPERS = ("model", "state_dict", "model_state_dict", "module", "_model")
_READ = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def open_torch(path: Path) -> Tensors:
    """Opens a .pt, .pth or .bin file; values stay on the disk until read, where the file's format allows.

    What it holds: a dict of name -> tensor; or a dict that holds such a one under `model`, `state_dict`,
    `model_state_dict`, `module` or `_model` (one of them; what lies beside it, an optimiser say, is not looked at); or
    a single tensor, named as the file is. Of tensors that share their values, tied weights, the first name counts.

    Raises:
        InputError: where torch is missing; for a file with other objects in its pickle, which are not loaded; for one
            that is damaged, or that holds no tensors.
    """
    if importlib.util.find_spec("torch") is None:
        advice = 'Install the extra: pip install "toydepth[llm]".'
        raise InputError(f"the extra llm must be installed to read {path}, got no torch. {advice}")
    import torch  # pyright: ignore[reportMissingImports]

    found = _weights(_load(path), path)
    tensors = {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}
    infos = [
        TensorInfo(str(name), (0,), type(value).__name__, f"not a tensor ({type(value).__name__})")
        for name, value in found.items()
        if not isinstance(value, torch.Tensor)
    ]
    if not tensors:
        names = ", ".join(map(str, list(found)[:5])) or "nothing"
        raise InputError(f"{path} must hold tensors by name, got {names}. Save model.state_dict().")
    first: dict[Any, str] = {}
    for name, value in tensors.items():
        infos.append(_info(name, value, first))

    def load(name: str) -> np.ndarray:
        value = tensors[name].detach()
        kind = torch.float64 if value.dtype == torch.float64 else torch.float32
        return value.to(kind).numpy()

    return make_tensors(path, infos, load)


def _info(name: str, value: Any, first: dict[Any, str]) -> TensorInfo:
    """What is known of a tensor; `first` remembers where values lie, and under which name they were met."""
    dtype, problem = str(value.dtype).removeprefix("torch."), None
    if not value.is_floating_point():
        problem = not_float(dtype)
    elif dtype not in _READ:
        problem = f"stored as {dtype}, which is not read"
    elif str(value.layout) != "torch.strided" or value.device.type == "meta":
        problem = "sparse, or without values"
    elif value.numel():
        place = (value.data_ptr(), tuple(value.shape), value.stride())
        if place in first:
            problem = f"shares its values with {first[place]}"
        first.setdefault(place, name)
    return TensorInfo(name, tuple(value.shape), dtype, problem)


def _weights(found: Any, path: Path) -> dict[Any, Any]:
    """The dict that holds the tensors, within what was loaded."""
    import torch  # pyright: ignore[reportMissingImports]

    while isinstance(found, dict):
        inside = [word for word in WRAPPERS if isinstance(found.get(word), dict)]
        if len(inside) > 1:
            got = " and ".join(inside)
            raise InputError(f"{path} must hold one set of weights, got {got}. Save the one you mean by itself.")
        if not inside:
            return found
        found = found[inside[0]]
    if isinstance(found, torch.Tensor):
        return {path.stem: found}
    raise InputError(f"{path} must hold a dict of tensors, got {type(found).__name__}. Save model.state_dict().")


def _load(path: Path) -> Any:
    import torch  # pyright: ignore[reportMissingImports]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pickle's protocols, of kinds of storage
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except Exception as error:  # zip, pickle and torch each have errors of their own
        reason = " ".join(str(error).split())
        # torch says which object it would not build, and then how to build it all the same.
        if "eights only load failed" in reason or "nsupported" in reason:
            named = re.search(r"GLOBAL (\S+)", reason)
            got = f"{named[1]} in its pickle" if named else "other objects in its pickle"
            advice = "It is not loaded, as it could run code; ask for safetensors, or save model.state_dict()."
            raise InputError(f"{path} must hold tensors alone, got {got}. {advice}") from error
        got = (reason or type(error).__name__).split(". ")[0][:200]
        raise InputError(f"{path} must be a whole file of torch, got {got}. Download or copy it again.") from error
