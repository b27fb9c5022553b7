"""Language models from a folder of safetensors, a .gguf file or a hub."""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toydepth.errors import InputError
from toydepth.llm.adapters import check_config

Dtype = Literal["float32", "bfloat16", "float16"]
_DTYPES = {"float32": "float32", "fp32": "float32", "bfloat16": "bfloat16", "bf16": "bfloat16"}
_DTYPES |= {"float16": "float16", "fp16": "float16"}


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model, ready to run, and what to say of it.

    Attributes:
        model, tokenizer: of transformers.
        name: as it was given. weights: what the weights were stored as: float16, ..., or of a .gguf the kinds of its
            blocks' tensors, most frequent first: 4-bit ones change angles.
        dtype: that it computes in. device: where it computes, or `several`: also where weights wait on a disk.
    """

    model: Any
    tokenizer: Any
    name: str
    weights: str
    dtype: str
    device: str


def require_llm(*needed: str) -> None:
    """Refuses where a library of the extra `llm` is missing.

    Raises:
        InputError: naming those that are.
    """
    missing = [name for name in ("torch", "transformers", *needed) if importlib.util.find_spec(name) is None]
    if missing:
        advice = 'Install the extra: pip install "toydepth[llm]".'
        raise InputError(f"the extra llm must be installed to read a model, got no {', '.join(missing)}. {advice}")


def load_model(name: str, *, dtype: str = "float32", device: str = "auto", revision: str | None = None) -> LoadedModel:
    """Loads a causal language model and its tokenizer; no code that comes with a model is run.

    Args:
        name: a folder with config.json and *.safetensors, a .gguf file, or a name on the hub (safetensors there too,
            or older files, of which weights alone are read).
        dtype: float32, bfloat16 or float16 (fp32, bf16, fp16): what it computes in.
        device: cpu, cuda, cuda:1, mps; `auto`, a GPU where there is one; `split`, spread over all GPUs, then the CPU,
            then the disk that its files are on.
        revision: of a model on the hub: a branch, a tag such as step3000, a commit.

    Raises:
        InputError: for a missing extra, dtype, device or path; a folder without its files, or with some weights only; a
            name that the hub does not have or that cannot be reached; a model type that is refused (before its weights
            are loaded).
    """
    if dtype not in _DTYPES:
        raise InputError(f"dtype must be float32, bfloat16 or float16, got {dtype}. float32 is the exact one.")
    source, options = _locate(name)
    require_llm(*(["gguf"] if "gguf_file" in options else []), *(["accelerate"] if device == "split" else []))
    import torch  # pyright: ignore[reportMissingImports]
    import transformers  # pyright: ignore[reportMissingImports]

    placed = _device(device)
    if revision is not None:
        options["revision"] = revision
    try:
        with _no_bars():
            config = transformers.AutoConfig.from_pretrained(source, **options, trust_remote_code=False)
            check_config(config)
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options, trust_remote_code=False)
            more: dict[str, Any] = {"use_safetensors": True} if Path(source).is_dir() and not options else {}
            if device == "split":
                more["device_map"] = "auto"
            found: Any = transformers.AutoModelForCausalLM.from_pretrained(
                source,
                **options,
                **more,
                dtype=getattr(torch, _DTYPES[dtype]),
                trust_remote_code=False,
                output_loading_info=True,
            )
    except InputError:
        raise
    except Exception as error:  # each format and library has errors of its own
        raise InputError(_why(name, source, error)) from error
    model, report = found
    if missing := sorted(report["missing_keys"]):
        # The library would go on, with random numbers in their place.
        got = f"{len(missing)} missing from {name}, such as {missing[0]}"
        raise InputError(f"weights must be complete, got {got}. Check its files, and that the config is its own.")
    if device != "split":
        model.to(placed)
    model.eval()
    if "gguf_file" in options:
        weights = _gguf_kinds(Path(name).expanduser())
    else:
        stored = getattr(config, "dtype", None)
        weights = str(stored).removeprefix("torch.") if stored is not None else "unknown"
    places = set(getattr(model, "hf_device_map", {}).values())
    where = "several" if len(places) > 1 or "disk" in places else str(placed)
    return LoadedModel(model, tokenizer, name, weights, _DTYPES[dtype], where)


@contextmanager
def _no_bars() -> Iterator[None]:
    """No progress bar of transformers inside."""
    from transformers.utils import logging  # pyright: ignore[reportMissingImports]

    # The bar over a .gguf file's tensors does not ask whether bars are wanted; the library's own bar does.
    name = "transformers.modeling_gguf_pytorch_utils"
    gguf_files: Any = importlib.import_module(name) if importlib.util.find_spec(name) else None
    shown, bar = logging.is_progress_bar_enabled(), getattr(gguf_files, "tqdm", None)
    logging.disable_progress_bar()
    if bar is not None:
        gguf_files.tqdm = logging.tqdm
    try:
        yield
    finally:
        if bar is not None:
            gguf_files.tqdm = bar
        if shown:
            logging.enable_progress_bar()


def _locate(name: str) -> tuple[str, dict[str, Any]]:
    """What to load from, and the options that belong to it."""
    path = Path(name).expanduser() if name else Path("nothing")
    if path.suffix == ".gguf":
        if not path.is_file():
            raise InputError(f"model must be a file that exists, got {name}. Check the path.")
        return str(path.parent), {"gguf_file": path.name}
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise InputError(
                f"model must be a folder with config.json, got {name} without. Save it by save_pretrained."
            )
        if not any(path.glob("*.safetensors")):
            raise InputError(f"model must be a folder with *.safetensors, got {name} without. Convert its weights.")
        return str(path), {}
    if path.exists() or not name or name[0] in "./~" or name.count("/") > 1:
        condition = "a folder, a .gguf file or a name on the hub, as organisation/name"
        raise InputError(f"model must be {condition}, got {name or 'nothing'}. Check the path.")
    return name, {}


def _device(device: str) -> str:
    import torch  # pyright: ignore[reportMissingImports]

    if device in ("auto", "split"):
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if str(device).startswith("meta"):
            raise RuntimeError("it holds no numbers.")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"device must be one that torch finds, got {device}: {reason} Use cpu or auto.") from error
    return device


def _why(name: str, source: str, error: Exception) -> str:
    """One line for whatever transformers says of a model that it cannot load."""
    reason = " ".join(str(error).split())
    if len(reason) > 300:
        reason = reason[:300] + "..."
    if source != name or Path(source).exists():
        return f"model must be one that transformers can load, got {name}: {reason} Check its files."
    advice = "Check the name and the network, or give a local folder or .gguf file."
    return f"model must be on the hub and within reach, got {name}: {reason} {advice}"


def _gguf_kinds(path: Path) -> str:
    """The quantisations of the blocks' matrices, by their share of numbers."""
    import gguf  # pyright: ignore[reportMissingImports]

    count: Counter[str] = Counter()
    for tensor in gguf.GGUFReader(path).tensors:
        if str(tensor.name).startswith("blk.") and len(tensor.shape) > 1:
            count[tensor.tensor_type.name] += int(tensor.n_elements)
    total = sum(count.values())
    kinds = ", ".join(f"{kind} {100 * number / total:.0f} %" for kind, number in count.most_common())
    return f"gguf: {kinds or 'unknown'}"
