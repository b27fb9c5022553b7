"""Which tensors of a checkpoint count, and why the others do not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from toydepth.checkpoints.tensors import TensorInfo, Tensors
from toydepth.errors import InputError

Dtype = Literal["float32", "float64"]

# Floats that are stored with the weights and never trained: rotary frequencies, masks, running statistics. A causal
# mask of GPT-2 or GPT-NeoX is called as a bias would be, and is known by its four axes.
_BUFFERS = re.compile(r"(^|\.)(inv_freq|masked_bias|running_mean|running_var)$|rotary_emb\.|(^|\.)freqs_cis$")
_MASKS = re.compile(r"(^|\.)(attn|attention)\.bias$")


@dataclass(frozen=True)
class Skipped:
    """What is not in a field.

    Attributes:
        name: of a tensor, or a pattern that matches none.
        reason: not selected; not float (int64); buffer; missing in ...; shape (50304, 8) against (50257, 8); ...
        num_values: how many values that leaves out.
    """

    name: str
    reason: str
    num_values: int


@dataclass(frozen=True)
class Selection:
    """Which tensors make a field.

    Args:
        include, exclude: patterns on whole names, `*` for any run of characters, `?` for one, `[0-9]` for one of
            several; a tensor counts that matches one of `include` and none of `exclude`.
        buffers: also floats that are not trained: rotary frequencies, masks, running statistics.
        dtype: of the values; None takes float64 where a chosen tensor is stored so, else float32.
    """

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    buffers: bool = False
    dtype: Dtype | None = None

    def __post_init__(self) -> None:
        if not self.include:
            raise InputError("include must be one or more patterns, got none. Leave it out to take all tensors.")
        if self.dtype not in (None, "float32", "float64"):
            raise InputError(
                f"dtype must be float32 or float64, got {self.dtype}. Leave it out to keep what is stored."
            )

    def reason(self, info: TensorInfo) -> str | None:
        """Returns why a tensor is not selected, or None."""
        if not any(fnmatchcase(info.name, pattern) for pattern in self.include):
            return "not selected"
        if any(fnmatchcase(info.name, pattern) for pattern in self.exclude):
            return "excluded"
        if info.problem:
            return info.problem
        mask = _MASKS.search(info.name) and len(info.shape) == 4
        return "buffer" if not self.buffers and (mask or _BUFFERS.search(info.name)) else None

    def split(self, tensors: Tensors) -> tuple[list[TensorInfo], list[Skipped]]:
        """Returns the tensors that are selected, and what is not, with patterns that match nothing."""
        names, chosen, skipped = list(tensors.infos), [], []
        for pattern in (*self.include, *self.exclude):
            if not any(fnmatchcase(name, pattern) for name in names):
                skipped.append(Skipped(pattern, "pattern that matches no tensor", 0))
        for info in tensors.infos.values():
            reason = self.reason(info)
            if reason:
                skipped.append(Skipped(info.name, reason, info.num_values))
            else:
                chosen.append(info)
        return chosen, skipped


def require_some(chosen: list, skipped: list[Skipped], where: str) -> None:
    """Raises InputError where nothing is chosen, with an example of each reason, three at most."""
    if chosen:
        return
    examples: dict[str, str] = {}
    for one in skipped:
        if len(examples) < 3:
            examples.setdefault(one.reason, f"{one.name}: {one.reason}")
    got = "; ".join(examples.values()) or "it is empty"
    raise InputError(f"fields must have tensors, got none of {where} ({got}). Check the files and the patterns.")
