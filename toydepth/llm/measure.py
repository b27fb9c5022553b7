"""Statistics of a language model's residual stream over any number of documents, in the memory of one batch."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.hidden import Accumulator, Profiles, Trajectory
from toydepth.llm.adapters import Parts, find_parts
from toydepth.llm.batches import Side, TokenBatch, token_batches
from toydepth.llm.capture import Stream, capture
from toydepth.llm.readout import Readout
from toydepth.llm.trajectory import measure_stream, select

_COUNTS = ("documents", "empty", "shortened", "tokens", "seconds", "readout_seconds")


@dataclass(eq=False)
class Measurement:
    """What was found so far.

    Attributes:
        bulk: of the tokens at positions >= skip_first.
        first: of those at position 0, where many models keep an attention sink.
        skip_first: where the bulk begins; positions between 0 and it are in neither.
        documents: read; empty: of them, without a token; shortened: longer than a row.
        tokens: that went through the model, padding left out. seconds: spent on them, forward passes
            and statistics, after the text was read and without the readout.
        readout: cross-entropies by layer, where they were asked for. readout_seconds: spent on them.
        profiles: of the tokens at every position, where they were asked for.
        whole: False while a batch is being added: then it is not to be saved.
    """

    bulk: Accumulator
    first: Accumulator
    skip_first: int
    documents: int = 0
    empty: int = 0
    shortened: int = 0
    tokens: int = 0
    seconds: float = 0.0
    readout: Readout | None = None
    readout_seconds: float = 0.0
    profiles: Profiles | None = None
    whole: bool = True

    @property
    def tokens_per_second(self) -> float:
        """NaN before any token."""
        return self.tokens / self.seconds if self.seconds > 0 else float("nan")

    def table(self) -> pd.DataFrame:
        """Returns `Accumulator.table` of both under a column position, bulk or first; `Readout.table` beside bulk."""
        parts = {"bulk": self.bulk.table(), "first": self.first.table()}
        table = pd.concat(parts, names=["position"]).reset_index(level=0).reset_index(drop=True)
        if self.readout is None:
            return table
        return table.merge(self.readout.table().assign(position="bulk"), how="left", on=["position", "layer"])

    def histogram_table(self) -> pd.DataFrame:
        """Returns `Accumulator.histogram_table` of both under a column position, bulk or first."""
        parts = {"bulk": self.bulk.histogram_table(), "first": self.first.histogram_table()}
        return pd.concat(parts, names=["position"]).reset_index(level=0).reset_index(drop=True)

    def state(self) -> dict[str, Any]:
        """Returns what `restore` needs: numbers and arrays."""
        state: dict[str, Any] = {"bulk": self.bulk.state(), "first": self.first.state(), "skip_first": self.skip_first}
        for name, part in (("readout", self.readout), ("profiles", self.profiles)):
            state[name] = None if part is None else part.state()
        return state | {name: getattr(self, name) for name in _COUNTS}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Measurement:
        """Returns the measurement that `state` was taken of; `measure_model` goes on from it at the next document."""
        bulk, first = (Accumulator.restore(state[name]) for name in ("bulk", "first"))
        readout = None if state["readout"] is None else Readout.restore(state["readout"])
        profiles = None if state["profiles"] is None else Profiles.restore(state["profiles"])
        counts = {name: state[name] for name in _COUNTS}
        return cls(bulk, first, int(state["skip_first"]), readout=readout, profiles=profiles, **counts)


@dataclass(frozen=True, eq=False)
class Seen:
    """One batch, measured: what statistics per token are made of.

    Attributes:
        trajectory: of every token of the batch, in reading order, row after row.
        ids, positions, rows, documents (tokens,): of each its token, its position, its row, and the number of its
            document in the whole text.
        batch: that they are of.
        stream: h_0 ... h_L, of these tokens, or of all where a readout was asked for.
    """

    trajectory: Trajectory
    ids: np.ndarray
    positions: np.ndarray
    rows: np.ndarray
    documents: np.ndarray
    batch: TokenBatch
    stream: Stream = field(repr=False)


def measure_batch(parts: Parts, batch: TokenBatch, whole: bool = False) -> Seen:
    """Runs the model on a batch, once, and measures the stream of every token that is not padding.

    Args:
        parts: of the model.
        batch: the tokens, one or more.
        whole: keep the stream of padding too, as a readout needs it.
    """
    stream = capture(parts, batch.ids, batch.mask, keep=None if whole else batch.mask)
    states = stream.kept(batch.mask) if whole else stream.states
    rows, columns = np.nonzero(batch.mask)
    found = measure_stream(states)
    ids, positions = batch.ids[rows, columns], batch.positions[rows, columns]
    return Seen(found, ids, positions, rows, batch.numbers[rows], batch, stream)


def measure_model(
    model: Any,
    tokenizer: Callable[..., Any],
    documents: Iterable[str],
    *,
    batch_size: int = 8,
    max_length: int = 512,
    skip_first: int = 1,
    padding: Side = "right",
    allow_non_finite: bool = False,
    readouts: Iterable[str] = (),
    readout_tokens: int | None = None,
    profiles: bool = False,
    sample: int = 20_000,
    seed: int = 0,
    start: Measurement | None = None,
    after_batch: Callable[[Measurement, Seen], None] | None = None,
) -> Measurement:
    """Returns angles, norms and progress by layer, over all tokens of the documents.

    Neither batch_size nor padding changes a statistic (to 1e-5, in float32; narrower types round by the batch).

    Args:
        model: a causal language model of transformers, of a type that `adapters` knows; its weights as they are.
        tokenizer: its own.
        documents: texts; with `start`, the same ones from the beginning.
        batch_size, max_length, padding: as `token_batches`.
        skip_first: positions from here on are the bulk; 1 or more.
        allow_non_finite: count states with NaN or inf and go on.
        readouts: of the bulk, lens and last_block, or neither: see `Readout`. Each costs about a head a layer.
        readout_tokens: read out the first so many tokens of the bulk alone; all where None.
        profiles: keep components and a sample of angle profiles, of every position, to look for clusters.
        sample, seed: of the profiles: how many tokens, and which.
        start: what an earlier call has found; not changed. Documents that it counts are passed over.
        after_batch: called after every batch with what was found so far, to show progress or save
            `Measurement.state()`, and with the batch itself.

    Raises:
        InputError: for a model that is refused, settings out of range, rows longer than the model's positions, a start
            with another depth or skip_first, no token at all, or states that are not finite.

    Source: arXiv 2602.05970; docs/notation.md, "Hidden states".
    """
    parts = find_parts(model)
    kinds = tuple(readouts)
    if skip_first < 1:
        raise InputError(f"skip_first must be 1 or more, got {skip_first}. Position 0 is reported apart.")
    parts.check_length(max_length)
    if start is not None and (start.skip_first, start.bulk.depth) != (skip_first, parts.depth):
        got = f"{start.skip_first} and {start.bulk.depth}"
        raise InputError(
            f"start must have skip_first {skip_first} and {parts.depth} blocks, got {got}. Go on as it began."
        )
    if start is None:
        bulk, first = (Accumulator(parts.depth, allow_non_finite) for _ in range(2))
        readout = Readout(parts.depth, kinds, skip_first, allow_non_finite) if kinds else None
        kept = Profiles(parts.depth, sample, seed) if profiles else None
        found = Measurement(bulk, first, skip_first, readout=readout, profiles=kept)
    else:
        if (start.profiles is not None) != profiles:
            got = f"{start.profiles is not None} and {profiles}"
            raise InputError(f"profiles must be kept from the start on, or not at all, got {got}. Go on as it began.")
        given = start.readout.kinds if start.readout else ()
        if given != kinds:
            got = ", ".join(given) or "none"
            asked = ", ".join(kinds) or "none"
            raise InputError(f"readouts must be those of start, {got}, got {asked}. Go on as it began.")
        found = Measurement.restore(copy.deepcopy(start.state()))
        found.bulk.allow_non_finite = found.first.allow_non_finite = allow_non_finite
        if found.readout is not None:
            found.readout.allow_non_finite = allow_non_finite
    options: dict[str, Any] = {"batch_size": batch_size, "max_length": max_length, "padding": padding}
    for batch in token_batches(documents, tokenizer, **options, done=found.documents):
        # All that can fail comes before anything is added: what was found so far stays whole.
        began = time.perf_counter()
        readout = found.readout
        if readout is not None and readout_tokens is not None and readout.num_tokens >= readout_tokens:
            readout = None
        seen = measure_batch(parts, batch, whole=readout is not None) if batch.mask.any() else None
        shares = _shares(found, seen)
        spent, began = time.perf_counter() - began, time.perf_counter()
        entropies = readout.measure(parts, batch, seen.stream, readout_tokens) if seen and readout else {}
        found.whole = False
        if readout is not None:
            readout.add(entropies)
        found.readout_seconds += time.perf_counter() - began
        began = time.perf_counter()
        if seen is not None:
            _add(found, seen, shares)
        found.seconds += spent + time.perf_counter() - began
        found.documents = batch.documents
        found.empty += batch.empty
        found.shortened += batch.shortened
        found.whole = True
        if seen is not None and after_batch is not None:
            after_batch(found, seen)
    if not found.tokens:
        raise InputError(f"text must hold a token, got {found.documents} documents without one. Check the field.")
    return found


def _shares(found: Measurement, seen: Seen | None) -> list[tuple[Accumulator, Trajectory]]:
    """What of a batch belongs to the bulk, and what to position 0; checked."""
    if seen is None:
        return []
    chosen = ((found.bulk, seen.positions >= found.skip_first), (found.first, seen.positions == 0))
    shares = [(total, select(seen.trajectory, own)) for total, own in chosen if own.any()]
    for total, part in shares:
        total.check(part)
    return shares


def _add(found: Measurement, seen: Seen, shares: list[tuple[Accumulator, Trajectory]]) -> None:
    for total, part in shares:
        total.add(part)
    if found.profiles is not None:
        where = {"document": seen.documents, "position": seen.positions, "token": seen.ids}
        found.profiles.add(seen.trajectory, **where)
    found.tokens += len(seen.positions)
