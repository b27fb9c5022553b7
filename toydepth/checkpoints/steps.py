"""Training steps out of the names of files and folders."""

from __future__ import annotations

import re
from pathlib import Path

from toydepth.checkpoints.opening import SUFFIXES, has_weights
from toydepth.errors import InputError

# A word for a step and its number, apart from what stands around it: model_step-1000, global_step10.pt, checkpoint-500.
_WORDS = re.compile(r"(?<![A-Za-z0-9])(?:global_?step|step|checkpoint|ckpt|iter)[-_=]?([0-9]+)(?![A-Za-z0-9])", re.I)


def find_step(name: str) -> int | None:
    """Returns the step that a name tells, or None.

    A name of digits alone is a step; else a step is a number after one of the words step, global_step, checkpoint, ckpt
    and iter, with `_`, `-`, `=` or nothing between.

    Args:
        name: of a file or folder, without its path; an ending such as .safetensors does not matter.

    Raises:
        InputError: for a name with two different steps.

    Example:
        >>> [find_step(name) for name in ("step1000", "checkpoint-0500", "small_step_20.npy", "1000", "latest", "v2")]
        [1000, 500, 20, 1000, None, None]
    """
    stem = _stem(name)
    if stem.isascii() and stem.isdigit():
        return int(stem)
    found = {int(number) for number in _WORDS.findall(stem)}
    if len(found) > 1:
        raise InputError(f"a name must tell one step, got {name}. Rename it, as step{max(found)}.")
    return found.pop() if found else None


def without_step(name: str) -> str:
    """Returns a name without what tells its step: `small` of small_step100.npy, nothing of step100.

    >>> without_step("small_step100.npy"), without_step("1000"), without_step("a.b.npz")
    ('small', '', 'a.b')
    """
    stem = _stem(name)
    return "" if stem.isascii() and stem.isdigit() else _WORDS.sub("", stem).strip("-_. ")


def find_steps(folder: Path) -> dict[int, Path]:
    """Returns step -> file or folder, ascending, of what lies in a folder and tells a step.

    Looked for in the folder itself, then in its `checkpoints`; and in a download of the Hugging Face hub's cache
    (`models--organisation--name`), where each branch or tag in `refs` names a folder of `snapshots`.

    Raises:
        InputError: for a folder that does not exist, or two entries of one step.

    Source: the cache's layout in the documentation of huggingface_hub, "Understand caching".
    """
    folder = folder.expanduser()
    if not folder.is_dir():
        raise InputError(f"checkpoints must be a folder that exists, got {folder}. Check the path.")
    entries = _entries(folder) or _entries(folder / "checkpoints") or _revisions(folder)
    found: dict[int, Path] = {}
    for name, path in entries:
        step = find_step(name)
        if step in found:
            raise InputError(
                f"{folder} must have one entry a step, got {found[step].name} and {path.name}. Remove one."
            )
        if step is not None:
            found[step] = path
    return dict(sorted(found.items()))


def _stem(name: str) -> str:
    ending = Path(name).suffix
    return name.removesuffix(ending) if ending in SUFFIXES else name


def _entries(folder: Path) -> list[tuple[str, Path]]:
    """What in a folder tells a step: folders, and files that can be opened."""
    if not folder.is_dir():
        return []
    paths = [path for path in sorted(folder.iterdir()) if path.is_dir() or has_weights(path)]
    return [(path.name, path) for path in paths if find_step(path.name) is not None]


def _revisions(folder: Path) -> list[tuple[str, Path]]:
    if not (folder / "refs").is_dir():
        return []
    refs = [ref for ref in sorted((folder / "refs").iterdir()) if ref.is_file()]
    return [(ref.name, folder / "snapshots" / ref.read_text(encoding="utf-8").strip()) for ref in refs]
