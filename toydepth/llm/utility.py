"""What each block is worth: the loss of the model without it, with it in another place, or with it twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError, RunError
from toydepth.llm.adapters import Parts, find_parts
from toydepth.llm.batches import Side, TokenBatch, token_batches
from toydepth.llm.capture import capture, evaluating
from toydepth.llm.interventions import INTERVENTIONS, blocks_in_order, recorded
from toydepth.llm.ratio import DocumentMeans
from toydepth.llm.readout import cross_entropies

# What the sum over blocks may differ from the model's own pass: kernels may round otherwise, and bfloat16 coarsely.
_SAME = 0.02


@dataclass(eq=False)
class Utility:
    """What was found so far.

    Attributes:
        depth: blocks of the model.
        rows: (intervention, layer) of each quantity, in the order of the table.
        losses: cross-entropies: of the intact model, then of each row.
        changes: of each row, less that of the intact model, document by document.
        documents: read; empty: of them, without a token; shortened: longer than a row. Those with no token to predict
            after the skipped positions are read but not counted in the table.
        seconds: spent, after the text was read.
    """

    depth: int
    rows: list[tuple[str, int]]
    losses: DocumentMeans
    changes: DocumentMeans
    documents: int = 0
    empty: int = 0
    shortened: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Predicted tokens."""
        return self.losses.tokens

    @property
    def intact(self) -> float:
        """Cross-entropy of the model as it is, nats per token."""
        return float(self.losses.mean[0])

    @property
    def intact_error(self) -> float:
        """Its standard error, over documents."""
        return float(self.losses.error[0])

    def table(self) -> pd.DataFrame:
        """Returns a row an intervention and layer.

        intervention; layer k, of swap that of the first of the two; relative_depth, the middle of the blocks concerned:
        (k - 1/2) / L, of swap k / L; cross_entropy, nats per token; change, from the intact model; change_error, the
        standard error of this paired difference, documents being the units; tokens, documents.
        """
        kinds, layers = [kind for kind, _ in self.rows], np.array([layer for _, layer in self.rows])
        middle = np.where(np.array(kinds) == "swap", layers, layers - 0.5)
        columns = {"intervention": kinds, "layer": layers, "relative_depth": middle / self.depth}
        columns |= {"cross_entropy": self.losses.mean[1:], "change": self.changes.mean}
        columns |= {"change_error": self.changes.error, "tokens": self.tokens, "documents": self.losses.documents}
        return pd.DataFrame(columns)


def measure_utility(
    model: Any,
    tokenizer: Callable[..., Any],
    documents: Iterable[str],
    *,
    batch_size: int = 8,
    max_length: int = 512,
    skip_first: int = 1,
    padding: Side = "right",
    interventions: Iterable[str] = INTERVENTIONS,
    after_batch: Callable[[Utility], None] | None = None,
) -> Utility:
    """Returns the loss of the next token with each block skipped, swapped with the next, or repeated.

    An intervention at block k leaves h_0 ... h_k-1 as they are: only the blocks from there on are run again, so that
    one kind at all layers costs half of L passes, and L heads. Neither batch_size nor padding changes a number (to
    1e-5, in float32).

    Args:
        model: a causal language model of transformers, of a type that `adapters` knows.
        tokenizer: its own.
        documents: texts.
        batch_size, max_length, padding: as `token_batches`.
        skip_first: positions t below it predict nothing; the first prediction is that of token skip_first + 1.
        interventions: of skip, swap, repeat: see `interventions.blocks_in_order`.
        after_batch: called after every batch with what was found so far.

    Raises:
        InputError: for a model that is refused, settings out of range, no token to predict, or a cross-entropy that is
            not finite, naming intervention and layer.
        RunError: for a model whose blocks, run one by one, do not give its own last state.

    Source: swaps and skips of blocks: Lad, Gurnee, Tegmark, The Remarkable Robustness of LLMs, arXiv 2406.19384. The
        error over documents is ours.
    """
    parts = find_parts(model)
    kinds = tuple(dict.fromkeys(interventions))
    _check(parts, kinds, max_length, skip_first)
    rows = [(kind, layer) for kind in kinds for layer in range(1, parts.depth + (kind != "swap"))]
    if not rows:
        raise InputError(f"swap must have two blocks, got a model of {parts.depth}. Ask for skip or repeat.")
    found = Utility(parts.depth, rows, DocumentMeans(1 + len(rows)), DocumentMeans(len(rows)))
    for batch in token_batches(documents, tokenizer, batch_size=batch_size, max_length=max_length, padding=padding):
        began = time.perf_counter()
        # Padding may stand on either side: the next token is in the next column all the same.
        known = batch.mask[:, :-1] & batch.mask[:, 1:] & (batch.positions[:, :-1] >= skip_first)
        if known.any():
            document = np.nonzero(known)[0]
            sums = {
                row: np.bincount(document, losses, minlength=len(known))
                for row, losses in _losses(parts, batch, known, kinds)
            }
            intact, others = sums["intact", 0], np.stack([sums[row] for row in rows])
            found.losses.add(np.concatenate([intact[None], others]), known.sum(axis=1))
            found.changes.add(others - intact, known.sum(axis=1))
        found.seconds += time.perf_counter() - began
        found.documents = batch.documents
        found.empty += batch.empty
        found.shortened += batch.shortened
        if after_batch is not None:
            after_batch(found)
    if not found.tokens:
        got = f"{found.documents} documents without one after position {skip_first}"
        raise InputError(f"text must hold a token to predict, got {got}. Check the field.")
    return found


def _check(parts: Parts, kinds: tuple[str, ...], max_length: int, skip_first: int) -> None:
    unknown = [kind for kind in kinds if kind not in INTERVENTIONS]
    if unknown or not kinds:
        got = ", ".join(unknown) or "none"
        raise InputError(f"interventions must be of {', '.join(INTERVENTIONS)}, got {got}. All three are the default.")
    if skip_first < 0:
        raise InputError(f"skip_first must be 0 or more, got {skip_first}. 1 leaves out position 0.")
    parts.check_length(max_length)


def _losses(
    parts: Parts, batch: TokenBatch, known: np.ndarray, kinds: tuple[str, ...]
) -> Iterator[tuple[tuple[str, int], np.ndarray]]:
    """Yields (intervention, layer) and the losses (tokens,) of the known ones; of the intact model first."""
    import torch  # pyright: ignore[reportMissingImports]

    keep, target = torch.as_tensor(known), torch.as_tensor(batch.ids[:, 1:][known])

    def losses(kind: str, layer: int, state: Any) -> tuple[tuple[str, int], np.ndarray]:
        values = cross_entropies(parts, state, keep, target)
        if not np.isfinite(values).all():
            where = kind if kind == "intact" else f"{kind}, layer {layer}"
            advice = "Load the model in a wider type (float32)."
            raise InputError(f"cross-entropy must be finite, got NaN or inf ({where}). {advice}")
        return (kind, layer), values

    with recorded(parts) as record:
        capture(parts, batch.ids, batch.mask, keep=np.zeros_like(batch.mask))
    with torch.inference_mode(), evaluating(parts):
        yield losses("intact", 0, record.last)
        # h_k-1: one state is held at a time, whatever the depth.
        state = record.first
        for layer in range(1, parts.depth + 1):
            for kind in kinds:
                if kind != "swap" or layer < parts.depth:
                    rest = blocks_in_order(kind, layer, parts.depth)[layer - 1 :]
                    yield losses(kind, layer, record.run(parts, state, rest))
            state = record.run(parts, state, [layer])
        _check_same(state, record.last, batch.mask)


def _check_same(state: Any, own: Any, mask: np.ndarray) -> None:
    """Refuses a model that does more between its blocks than to pass the state on."""
    import torch  # pyright: ignore[reportMissingImports]

    kept = torch.as_tensor(mask).to(own.device)
    one, other = state.to(own.device)[kept].float(), own[kept].float()
    apart = float(torch.linalg.vector_norm(one - other) / torch.linalg.vector_norm(other))
    if not np.isfinite(apart):
        raise RunError("last states must be finite and not all zero, got others. The model has no utility to measure.")
    if not apart <= _SAME:
        raise RunError(
            f"blocks run one by one must give the model's last state, got one {apart:.3g} of its norm away. "
            f"The model does more between its blocks; its depth utility cannot be measured."
        )
