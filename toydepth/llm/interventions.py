"""A model with one block left out, swapped with the next, or run twice; and its blocks run one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toydepth.errors import InputError
from toydepth.llm.adapters import Parts

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

INTERVENTIONS = ("skip", "swap", "repeat")


def blocks_in_order(kind: str, layer: int, depth: int) -> tuple[int, ...]:
    """Returns the blocks that are run, in turn, counted from 1.

        skip k      1 ... k-1, k+1 ... L            the update of block k is left out: h_k = h_k-1
        swap k      1 ... k-1, k+1, k, k+2 ... L    k and the next; k < L
        repeat k    1 ... k, k, k+1 ... L           block k twice

    A block takes along what belongs to its place: where layers differ in their attention (sliding windows of some
    Qwen), a swapped block keeps its own window.

    Args:
        kind: skip, swap or repeat.
        layer: k, from 1 on.
        depth: L, blocks of the model.

    Raises:
        InputError: for another kind, or a layer out of range.

    Example:
        >>> [blocks_in_order(kind, 2, 4) for kind in INTERVENTIONS]
        [(1, 3, 4), (1, 3, 2, 4), (1, 2, 2, 3, 4)]
    """
    if kind not in INTERVENTIONS:
        raise InputError(f"intervention must be one of {', '.join(INTERVENTIONS)}, got {kind}. skip is the cheapest.")
    last = depth - 1 if kind == "swap" else depth
    if not 1 <= layer <= last:
        advice = "A swap needs a next block." if kind == "swap" else "Blocks count from 1."
        raise InputError(f"layer must be in 1 ... {last} for {kind}, got {layer}. {advice}")
    changed = {"skip": (), "swap": (layer + 1, layer), "repeat": (layer, layer)}[kind]
    rest = range(layer + 1 + (kind == "swap"), depth + 1)
    return (*range(1, layer), *changed, *rest)


@contextmanager
def intervened(parts: Parts, kind: str, layer: int) -> Iterator[None]:
    """Inside, any pass of the model is changed; afterwards the model is as it was, whatever happened.

    By hooks on the outputs of blocks, so that models spread over devices stay so. The library's own loop goes on: a
    swap lets h_k-1 through at place k, and both updates come at place k + 1. Pass use_cache=False: a cache would hold
    keys of the unchanged model.

    Args:
        parts: of the model.
        kind, layer: as `blocks_in_order`.
    """
    blocks_in_order(kind, layer, parts.depth)  # refuses what is out of range
    block = parts.blocks[layer - 1]
    held: list[Any] = []

    def skip(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        held[:] = [args, kwargs]
        return _like(output, _state(args, kwargs))

    def repeat(module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        # forward, not the call: hooks would recurse.
        return _like(output, state_of(_forward(module, state_of(output), args, kwargs)))

    def swap(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        # The state came through place k unchanged: this output is that of block k + 1 on h_k-1.
        return _like(output, state_of(_forward(block, state_of(output), *held)))

    hooks: list[tuple[Any, Callable[..., Any]]] = [(block, repeat if kind == "repeat" else skip)]
    if kind == "swap":
        hooks.append((parts.blocks[layer], swap))
    handles = []
    try:
        for module, hook in hooks:
            handles.append(module.register_forward_hook(hook, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


@dataclass(eq=False)
class Recording:
    """What each block was called with in one pass; tensors are held as they were, not copied.

    Attributes:
        first, last: h_0 and h_L, (batch, length, width).
        calls: positional and named arguments of each block, without its state.
    """

    first: torch.Tensor | None = None
    last: torch.Tensor | None = None
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def run(self, parts: Parts, state: Any, blocks: Iterable[int]) -> Any:
        """Runs blocks, counted from 1, one after the other, each with the arguments of its own place.

        Args:
            parts: of the model.
            state: (batch, length, width), batch and length as recorded.
            blocks: as `blocks_in_order`, or a part of it.
        """
        for number in blocks:
            args, kwargs = self.calls[number - 1]
            state = state_of(parts.blocks[number - 1](state, *args, **kwargs))
        return state


@contextmanager
def recorded(parts: Parts) -> Iterator[Recording]:
    """Records the pass that is made inside; the hooks are gone afterwards, whatever happened."""
    record = Recording()

    def before(place: int) -> Callable[..., None]:
        def hook(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if place == 0:
                record.calls.clear()
                record.first = _state(args, kwargs)
            record.calls.append((args[1:], {name: value for name, value in kwargs.items() if name != "hidden_states"}))

        return hook

    def after(_module: Any, _args: Any, output: Any) -> None:
        record.last = state_of(output)

    handles = []
    try:
        for place, block in enumerate(parts.blocks):
            handles.append(block.register_forward_pre_hook(before(place), with_kwargs=True))
        handles.append(parts.blocks[-1].register_forward_hook(after))
        yield record
    finally:
        for handle in handles:
            handle.remove()


def state_of(output: Any) -> Any:
    """The state out of what a block returns: itself, or the first of a tuple."""
    return output[0] if isinstance(output, tuple) else output


def _state(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs["hidden_states"]


def _forward(module: Any, state: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The forward pass of a block on a state, with the arguments of a call."""
    others = {name: value for name, value in kwargs.items() if name != "hidden_states"}
    return module.forward(state, *args[1:], **others)


def _like(output: Any, state: Any) -> Any:
    """The state in the form of a block's output, on its device."""
    state = state.to(state_of(output).device)
    return (state, *output[1:]) if isinstance(output, tuple) else state
