"""Facts for causal tracing: prompt, subject, answer; and which tokens of the prompt they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toydepth.errors import InputError
from toydepth.llm.texts import is_unicode

_KEYS = ("prompt", "subject", "answer")
ROLES = ("first subject", "middle subject", "last subject", "first after", "further", "last token")


@dataclass(frozen=True)
class Fact:
    """One fact, such as "The capital of France is", "France", "Paris".

    The subject stands in the prompt once; the answer follows it after one space.

    Raises:
        InputError: for an empty part, a prompt that ends in a space, a subject that it holds not once.
    """

    prompt: str
    subject: str
    answer: str

    def __post_init__(self) -> None:
        for key in _KEYS:
            if not isinstance(getattr(self, key), str) or not getattr(self, key).strip():
                raise InputError(f"{key} must be text, got {getattr(self, key)!r}. Give every fact all three.")
            if not is_unicode(getattr(self, key)):
                raise InputError(f"{key} must be Unicode text, got half of a surrogate pair. Leave the fact out.")
        if self.prompt != self.prompt.rstrip():
            raise InputError(f"prompt must not end in a space, got {self.prompt!r}. The answer brings its own.")
        # Another mention would tell the model what the noise hides.
        count = self.prompt.count(self.subject)
        if count != 1:
            advice = "Write it as it stands there." if not count else "Word the prompt so that it stands there once."
            raise InputError(f"subject must be in its prompt once, got {count} times {self.subject!r}. {advice}")


def read_facts(path: str | Path) -> list[Fact]:
    """Reads a .jsonl file: an object {"prompt", "subject", "answer"} a line; other keys are passed over.

    Raises:
        InputError: for a missing or empty file, or a line that is no fact, naming it.
    """
    file = Path(path).expanduser()
    if not str(path) or not file.is_file():
        raise InputError(f"facts must be a file that exists, got {path or 'nothing'}. Check the path.")
    facts = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{path}, line {number},"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InputError(f"{where} must be JSON, got {error}. Mend the line.") from error
            if not isinstance(row, dict) or not set(_KEYS) <= set(row):
                got = ", ".join(map(str, row)) or "none" if isinstance(row, dict) else type(row).__name__
                raise InputError(f"{where} must be an object with {', '.join(_KEYS)}, got {got}. Mend the line.")
            try:
                facts.append(Fact(*(row[key] for key in _KEYS)))
            except InputError as error:
                raise InputError(f"{where[:-1]}: {error}") from error
        for number, fact in enumerate(facts):
            if fact in facts[:number]:
                raise InputError(f"facts must each be there once, got {fact.prompt!r} twice in {path}. Leave one out.")
    if not facts:
        raise InputError(f"facts must be a file with a fact a line, got none in {path}. See docs/examples/facts.jsonl.")
    return facts


@dataclass(frozen=True, eq=False)
class Located:
    """A fact in tokens.

    Attributes:
        ids (length,): of the prompt.
        subject: places of the subject's tokens, every one that holds a letter of it.
        answer: the first token of the answer, as it follows the prompt after a space.
        roles (length,): of each position; "" before the subject. Of several that fit, the last token is that first,
            and a subject of one token is its last: the source leaves both open.
        spans (length,): where each token begins and ends in the prompt.
    """

    ids: np.ndarray
    subject: np.ndarray
    answer: int
    roles: list[str]
    spans: list[tuple[int, int]]


def locate(fact: Fact, tokenizer: Callable[..., Any]) -> Located:
    """Returns the tokens of a fact.

    Args:
        fact: to be found.
        tokenizer: of transformers, one that tells where its tokens stand in the text (a "fast" one).

    Raises:
        InputError: for a tokenizer that does not; for an answer whose first token begins within the prompt, or is a
            space alone.
    """
    ids, spans = _encode(fact.prompt, tokenizer)
    begin = fact.prompt.index(fact.subject)
    inside = [start < begin + len(fact.subject) and end > begin and end > start for start, end in spans]
    if not any(inside):
        raise InputError(f"subject must have a token in the prompt, got none of {fact.subject!r}. Check the tokenizer.")
    more, places = _encode(f"{fact.prompt} {fact.answer.strip()}", tokenizer)
    # Asked of both together: alone, a tokenizer may write a word in another way than after a text.
    if more[: len(ids)] != ids or len(more) == len(ids):
        raise InputError(
            f"answer must begin with a token of its own after {fact.prompt!r}, got {fact.answer!r}, which changes the "
            f"prompt's tokens. End the prompt with a whole word."
        )
    if places[len(ids)][1] <= len(fact.prompt) + 1:
        raise InputError(
            f"answer must begin with a token that holds a letter of it, got a space alone before {fact.answer!r}. "
            f"Leave the fact out."
        )
    if more[len(ids)] == getattr(tokenizer, "unk_token_id", None):
        got = f"{fact.answer!r}, which it does not know"
        raise InputError(f"answer must begin with a token of the tokenizer, got {got}. Leave the fact out.")
    chosen = np.flatnonzero(inside)
    return Located(np.array(ids), chosen, more[len(ids)], _roles(len(ids), chosen[0], chosen[-1]), spans)


def _encode(text: str, tokenizer: Callable[..., Any]) -> tuple[list[int], list[tuple[int, int]]]:
    try:
        found = tokenizer(text, return_offsets_mapping=True, verbose=False)
    except NotImplementedError:
        found = {}
    if "offset_mapping" not in found:
        got = type(tokenizer).__name__
        raise InputError(
            f"tokenizer must tell where its tokens stand in the text, got {got}, which does not. Load a fast tokenizer."
        )
    return list(found["input_ids"]), [(int(start), int(end)) for start, end in found["offset_mapping"]]


def _roles(length: int, first: int, last: int) -> list[str]:
    """By place.

    >>> _roles(8, 1, 3)
    ['', 'first subject', 'middle subject', 'last subject', 'first after', 'further', 'further', 'last token']
    >>> _roles(3, 1, 1)
    ['', 'last subject', 'last token']
    """
    roles = []
    for place in range(length):
        if place < first:
            roles.append("")
        elif place == length - 1:
            roles.append("last token")
        elif place == last:
            roles.append("last subject")
        elif place < last:
            roles.append("first subject" if place == first else "middle subject")
        else:
            roles.append("first after" if place == last + 1 else "further")
    return roles
