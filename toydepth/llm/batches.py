"""Documents into batches of tokens, padded on either side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from toydepth.errors import InputError

Side = Literal["left", "right"]


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Some documents, a row each.

    Attributes:
        ids (rows, length): tokens; anything where there is padding.
        mask (rows, length): False for padding.
        positions (rows, length): of each token in its row, from 0; -1 for padding.
        numbers (rows,): of each row its document, counted from 0 through all that are read, empty ones too.
        documents: how many were read so far, this batch and empty ones included.
        empty, shortened: of the documents read for this batch, those without a token, and those longer than a row.
    """

    ids: np.ndarray
    mask: np.ndarray
    positions: np.ndarray
    numbers: np.ndarray
    documents: int
    empty: int
    shortened: int


def token_batches(
    documents: Iterable[str],
    tokenizer: Callable[..., Any],
    *,
    batch_size: int = 8,
    max_length: int = 512,
    padding: Side = "right",
    done: int = 0,
) -> Iterator[TokenBatch]:
    """Yields batches of `batch_size` documents; those without a token are counted and take no row.

    The tokenizer adds its own special tokens, such as a first one; no padding token is needed.

    Args:
        documents: texts, in the order in which they are counted.
        tokenizer: of transformers, or anything that is called with a text and returns {"input_ids": [...]}.
        batch_size: rows of a batch.
        max_length: tokens a row holds at most; what a document has beyond them is left out.
        padding: where padding goes; no result depends on it.
        done: documents to pass over, as an earlier pass has read them.

    Raises:
        InputError: for no row, no token, or another side.

    Example:
        >>> spell = lambda text, **_: {"input_ids": [ord(letter) - 96 for letter in text]}
        >>> batch, = token_batches(["abc", "", "d"], spell, padding="left")
        >>> batch.ids.tolist(), batch.positions.tolist(), batch.numbers.tolist(), batch.documents, batch.empty
        ([[1, 2, 3], [0, 0, 4]], [[0, 1, 2], [-1, -1, 0]], [0, 2], 3, 1)
    """
    for name, number in (("batch_size", batch_size), ("max_length", max_length)):
        if number < 1:
            raise InputError(f"{name} must be 1 or more, got {number}. 8 rows of 512 tokens are the default.")
    if padding not in ("left", "right"):
        raise InputError(f"padding must be left or right, got {padding}. No result depends on it.")
    return _batches(documents, tokenizer, batch_size, max_length, padding, done)


def _batches(
    documents: Iterable[str],
    tokenizer: Callable[..., Any],
    batch_size: int,
    max_length: int,
    padding: Side,
    done: int,
) -> Iterator[TokenBatch]:
    rows: list[list[int]] = []
    numbers: list[int] = []
    read = empty = shortened = 0
    for text in documents:
        read += 1
        if read <= done:
            continue
        # Cut here and not by the tokenizer, which may be set to keep the end. verbose: it would warn of the length.
        ids = list(tokenizer(text, verbose=False)["input_ids"])
        empty += not ids
        shortened += len(ids) > max_length
        if ids:
            rows.append(ids[:max_length])
            numbers.append(read - 1)
        if len(rows) >= batch_size:
            yield _padded(rows, numbers, padding, read, empty, shortened)
            rows, numbers, empty, shortened = [], [], 0, 0
    if rows or empty:
        yield _padded(rows, numbers, padding, read, empty, shortened)


def _padded(
    rows: list[list[int]], numbers: list[int], padding: Side, read: int, empty: int, shortened: int
) -> TokenBatch:
    length = max(map(len, rows), default=0)
    ids = np.zeros((len(rows), length), np.int64)
    positions = np.full((len(rows), length), -1, np.int64)
    for row, tokens in enumerate(rows):
        place = slice(length - len(tokens), None) if padding == "left" else slice(len(tokens))
        ids[row, place] = tokens
        positions[row, place] = np.arange(len(tokens))
    return TokenBatch(ids, positions >= 0, positions, np.array(numbers, np.int64), read, empty, shortened)
