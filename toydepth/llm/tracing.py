"""Causal tracing: which state, of which layer and position, brings a fact back that noise on its subject hides."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from toydepth.errors import InputError
from toydepth.llm.adapters import Parts, find_parts
from toydepth.llm.capture import capture, device_of, evaluating
from toydepth.llm.facts import Fact, Located, locate
from toydepth.llm.interventions import recorded
from toydepth.llm.traced import Traced, Tracing


def trace_facts(
    model: Any,
    tokenizer: Callable[..., Any],
    facts: Iterable[Fact],
    *,
    noise: float = 3.0,
    samples: int = 10,
    seed: int = 0,
    batch_size: int = 128,
    include_unknown: bool = False,
    after_fact: Callable[[Tracing, int], None] | None = None,
) -> Tracing:
    """Traces facts through a model.

    The embeddings of the subject's tokens get Gaussian noise, of `noise` times the standard deviation of the token
    embeddings of all the subjects given. One draw of it stands for all layers and positions; it depends on seed and
    fact alone.

    Args:
        model: a causal language model of transformers, of a type that `adapters` knows.
        tokenizer: its own, one that tells where its tokens stand.
        facts: held at once.
        noise: in standard deviations of embeddings.
        samples: draws of noise a fact.
        seed: of the noise.
        batch_size: rows at a time, a row being a draw with one state restored, `samples` at least; changes no number.
        include_unknown: average over facts whose answer is not the model's most probable token as well.
        after_fact: called after every fact with what was found so far, and how many facts there are.

    Raises:
        InputError: for a model that is refused, settings out of range, no fact, none that the model knows, a fact whose
            tokens cannot be told, or a probability that is not finite.

    Source: Meng, Bau, Andonian, Belinkov, Locating and Editing Factual Associations in GPT, arXiv 2202.05262, section 2
        and appendix B. Seeds that differ from fact to fact, and the interval over facts, are ours.
    """
    parts = find_parts(model)
    located = [(fact, locate(fact, tokenizer)) for fact in facts]
    for name, value in (("samples", samples), ("batch_size", batch_size)):
        if value < 1:
            raise InputError(f"{name} must be 1 or more, got {value}. It is a count.")
    if not 0 < noise < float("inf"):
        raise InputError(f"noise must be greater than 0 and finite, got {noise}. 3 is the default.")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}. 0 is the default.")
    if not located:
        raise InputError("facts must be one or more, got none. Give prompt, subject and answer of each.")
    for fact, where in located:
        if len(where.ids) > parts.max_positions:
            got = f"{len(where.ids)} tokens of {fact.prompt!r}"
            raise InputError(f"prompt must be at most {parts.max_positions} tokens, got {got}. Shorten it.")
    scale = noise * _spread(model, parts, [where for _, where in located])
    found = Tracing(parts.depth, scale, [], include_unknown)
    for fact, where in located:
        found.facts.append(_trace(parts, fact, where, scale, samples, seed, batch_size, include_unknown))
        if after_fact is not None:
            after_fact(found, len(located))
    if not found.used:
        raise InputError(
            f"facts must hold one that the model knows, got 0 of {len(located)}. "
            f"Write others, or include those that it does not know."
        )
    return found


def _spread(model: Any, parts: Parts, located: list[Located]) -> float:
    """Standard deviation of all numbers of the embeddings of all subjects' tokens; positions are not in it."""
    import torch  # pyright: ignore[reportMissingImports]

    ids = torch.as_tensor(np.concatenate([where.ids[where.subject] for where in located]))
    with torch.inference_mode():
        found = model.get_input_embeddings()(ids.to(device_of(parts)))
    return float(found.double().cpu().numpy().std())


def _trace(
    parts: Parts, fact: Fact, where: Located, scale: float, samples: int, seed: int, batch_size: int, unknown: bool
) -> Traced:
    ids = where.ids[None]
    clean = capture(parts, ids, np.ones_like(ids, bool)).states
    odds = _probabilities(parts, clean[-1])
    predicted, start = int(odds.argmax()), float(odds[0, where.answer])
    known = predicted == where.answer
    with _noisy(parts, _draw(fact, where, scale, samples, seed, clean[0].shape[-1]), where.subject):
        rows = np.repeat(ids, samples, axis=0)
        corrupted = capture(parts, rows, np.ones_like(rows, bool)).states
    low = float(_probabilities(parts, corrupted[-1])[:, where.answer].double().mean())
    restored = np.zeros((0, len(where.ids)))
    if known or unknown:
        restored = _restore(parts, where, clean, corrupted, low, max(1, batch_size // samples))
    if not np.isfinite([start, low, *restored.ravel()]).all():
        advice = "Load the model in a wider type (float32)."
        raise InputError(f"probabilities must be finite, got NaN for {fact.prompt!r}. {advice}")
    return Traced(fact, where, known, predicted, start, low, restored)


def _draw(fact: Fact, where: Located, scale: float, samples: int, seed: int, width: int) -> np.ndarray:
    """Noise (samples, tokens of the subject, width), whatever the device and the other facts."""
    generator = np.random.default_rng([seed, zlib.crc32(f"{fact.prompt}\n{fact.subject}".encode())])
    return (scale * generator.standard_normal((samples, len(where.subject), width))).astype(np.float32)


@contextmanager
def _noisy(parts: Parts, noise: np.ndarray, places: np.ndarray) -> Iterator[None]:
    """Inside, h_0 of some places has noise on it; where positions are learned, as if it were on the token's part."""
    import torch  # pyright: ignore[reportMissingImports]

    def hook(_module: Any, args: Any, kwargs: Any) -> Any:
        state = (args[0] if args else kwargs["hidden_states"]).clone()
        state[:, places] += torch.as_tensor(noise).to(state)
        return ((state, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": state})

    handle = parts.blocks[0].register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def _restore(
    parts: Parts, where: Located, clean: list[Any], corrupted: list[Any], low: float, at_once: int
) -> np.ndarray:
    """Probabilities (L + 1, length) of the answer, each with one state put back; only the blocks above it are run.

    States before the subject are clean as they are, since attention is causal: the probability there is the corrupted.
    """
    import torch  # pyright: ignore[reportMissingImports]

    samples, length = corrupted[0].shape[:2]
    start = int(where.subject[0])
    at_once = min(at_once, length - start)
    rows = np.repeat(where.ids[None], samples * at_once, axis=0)
    with recorded(parts) as record:
        capture(parts, rows, np.ones_like(rows, bool), keep=np.zeros_like(rows, bool))
    found = np.full((parts.depth + 1, length), low)
    with torch.inference_mode(), evaluating(parts):
        for layer in range(parts.depth + 1):
            for first in range(start, length, at_once):
                # Blocks were recorded with so many rows: what the last group lacks is run again and left out.
                places = [min(first + place, length - 1) for place in range(at_once)]
                state = corrupted[layer].repeat(at_once, 1, 1)
                for group, place in enumerate(places):
                    state[group * samples : (group + 1) * samples, place] = clean[layer][0, place]
                last = record.run(parts, state, range(layer + 1, parts.depth + 1))
                odds = _probabilities(parts, last)[:, where.answer].double().cpu().numpy()
                found[layer, places] = odds.reshape(at_once, samples).mean(axis=1)
    return found


def _probabilities(parts: Parts, state: Any) -> Any:
    """Of the next token after the last position: (rows, vocabulary), float32."""
    import torch  # pyright: ignore[reportMissingImports]

    with torch.inference_mode(), evaluating(parts):
        return torch.softmax(parts.head(parts.norm(state[:, -1])).float(), dim=-1)
