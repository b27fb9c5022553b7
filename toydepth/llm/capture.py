"""The residual stream of one forward pass, by hooks: nothing is computed twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from toydepth.errors import InputError, RunError
from toydepth.llm.adapters import Parts

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]


@dataclass(eq=False)
class Stream:
    """What the hooks have kept.

    Attributes:
        states: h_0 ... h_L, each (tokens, width) of the kept tokens in reading order, or (batch, length, width) where
            all were kept; in the model's dtype, on the device of its block.
        last_call: positional and named arguments of the last block, without its state.
    """

    states: list[torch.Tensor] = field(default_factory=list)
    last_call: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def kept(self, mask: Any) -> list[torch.Tensor]:
        """Returns states (tokens, width) out of whole ones; mask (batch, length) is bool."""
        import torch  # pyright: ignore[reportMissingImports]

        keep = torch.as_tensor(mask)
        return [state[keep.to(state.device)] for state in self.states]


@contextmanager
def hooked(parts: Parts, keep: torch.Tensor | None = None) -> Iterator[Stream]:
    """Keeps the stream of the forward pass made inside; the hooks are gone afterwards, whatever happened.

    Args:
        parts: of the model.
        keep: (batch, length) bool, the tokens to keep; all where None.

    Source: h_k before the final norm: the library's own `hidden_states[-1]` is taken after it.
    """
    stream = Stream()
    handles = []

    def add(state: torch.Tensor) -> None:
        # An index copies, so that the full state can be freed; what is kept whole is not changed in place later.
        stream.states.append(state if keep is None else state[keep.to(state.device)])

    def before_first(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        stream.states.clear()
        add(args[0] if args else kwargs["hidden_states"])

    def before_last(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        stream.last_call = args[1:], {name: value for name, value in kwargs.items() if name != "hidden_states"}

    def after(_module: Any, _args: Any, output: Any) -> None:
        add(output[0] if isinstance(output, tuple) else output)

    try:
        handles.append(parts.blocks[0].register_forward_pre_hook(before_first, with_kwargs=True))
        handles.append(parts.blocks[-1].register_forward_pre_hook(before_last, with_kwargs=True))
        handles.extend(block.register_forward_hook(after) for block in parts.blocks)
        yield stream
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def evaluating(parts: Parts) -> Iterator[None]:
    """No dropout inside; every module is left as it was."""
    training = [module for module in parts.backbone.modules() if module.training]
    parts.backbone.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def capture(parts: Parts, ids: Any, mask: Any, keep: Any = None) -> Stream:
    """Runs the model once, without its head, and returns its stream.

    Positions count from each row's first unmasked token, so that padding on the left moves no token. The model is run
    as for evaluation (no dropout), and left as it was.

    Args:
        parts: of the model.
        ids: (batch, length) token ids.
        mask: (batch, length) bool, False for padding.
        keep: (batch, length) bool; all where None.

    Raises:
        RunError: where the model did not pass through each of its blocks once.
    """
    import torch  # pyright: ignore[reportMissingImports]

    size, largest = parts.head.weight.shape[0], int(np.max(np.asarray(ids), initial=0))
    if largest >= size:
        got = f"token {largest} of a tokenizer with more"
        raise InputError(f"tokens must be of the model's {size}, got {got}. Give the model's own tokenizer.")
    device = device_of(parts)
    ids, mask = (torch.as_tensor(each).to(device) for each in (ids, mask))
    keep = None if keep is None else torch.as_tensor(keep).to(device)
    positions = (mask.long().cumsum(dim=1) - 1).clamp(min=0)
    with torch.inference_mode(), evaluating(parts), hooked(parts, keep) as stream:
        parts.backbone(input_ids=ids, attention_mask=mask.long(), position_ids=positions, use_cache=False)
    if len(stream.states) != parts.depth + 1:
        got = len(stream.states) - 1
        raise RunError(f"a forward pass must go through {parts.depth} blocks, got {got}. They are not run in turn.")
    return stream


def device_of(parts: Parts) -> Any:
    """Where the first block computes: an offloaded model keeps its weights elsewhere, and hooks know the place."""
    first = parts.blocks[0]
    for module in first.modules():  # offloaded as a whole, the hook is the block's; else one is at each leaf
        device = getattr(getattr(module, "_hf_hook", None), "execution_device", None)
        if device is not None:
            return device
    return next(first.parameters()).device
