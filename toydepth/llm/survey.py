"""A language model measured into a folder: saved as it goes, and gone on with after a stop at the same document."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toydepth.errors import InputError
from toydepth.hidden import load_state, write_state
from toydepth.hidden.tokens import TokenParts
from toydepth.interrupt import Interrupt
from toydepth.llm.identity import model_identity, text_identity
from toydepth.llm.measure import Measurement, Seen, measure_model
from toydepth.llm.models import LoadedModel, load_model
from toydepth.llm.texts import read_documents

_SCHEMA = 1
_SAVE_SECONDS = 60.0


@dataclass(frozen=True)
class SurveySettings:
    """What is measured of a model.

    Args:
        text: files, or fineweb. docs: documents read at most. field: of jsonl and parquet, the text.
        max_length, skip_first, readouts, readout_tokens, sample, seed: as `measure_model`.
        dtype: that the model computes in. revision: on the hub.
        tokens: write every token's quantities, as `TokenParts`.
        batch_size, device, allow_non_finite: may change when a measurement is gone on with; the others may not.
    """

    text: tuple[str, ...]
    docs: int = 1000
    field: str = "text"
    max_length: int = 512
    skip_first: int = 1
    readouts: tuple[str, ...] = ("lens", "last_block")
    readout_tokens: int = 2000
    sample: int = 20_000
    seed: int = 0
    dtype: str = "float32"
    revision: str | None = None
    tokens: bool = False
    batch_size: int = 8
    device: str = "auto"
    allow_non_finite: bool = False

    def __post_init__(self) -> None:
        if self.docs < 1:
            raise InputError(f"docs must be 1 or more, got {self.docs}. 1000 is the default.")
        if self.readout_tokens < 0:
            raise InputError(f"readout_tokens must be 0 or more, got {self.readout_tokens}. 2000 is the default.")
        if not self.text:
            raise InputError("text must be files (txt, jsonl, parquet) or fineweb, got none. Give --text FILE.")

    def identity(self, model: str) -> dict[str, Any]:
        """Returns what may not change while a measurement is gone on with."""
        names = ("field", "max_length", "skip_first", "readouts", "readout_tokens", "sample", "seed", "dtype", "tokens")
        fixed: dict[str, Any] = {name: getattr(self, name) for name in names}
        fixed["readouts"] = list(self.readouts)
        return {
            "model": model_identity(model, self.revision),
            "text": [text_identity(one) for one in self.text],
            **fixed,
        }


@dataclass(eq=False)
class Survey:
    """What is known of one model.

    Attributes:
        name: of the model, as given. folder: that holds its state.
        found: the measurement. about: weights, dtype, device of the model.
        words: the text of every token of the sample, by its id.
        exhausted: whether the text ended before `docs`.
        signal: that stopped it, if any. resumed: documents that were measured before.
    """

    name: str
    folder: Path
    found: Measurement
    about: dict[str, Any]
    words: dict[int, str] = field(default_factory=dict)
    exhausted: bool = False
    signal: int | None = None
    resumed: int = 0


class _Stop(Exception):
    """A signal came; what was measured is saved."""


def survey_model(
    name: str,
    settings: SurveySettings,
    folder: str | Path,
    *,
    restart: bool = False,
    save_seconds: float = _SAVE_SECONDS,
    on_batch: Callable[[Measurement], None] = lambda found: None,
    load: Callable[..., LoadedModel] = load_model,
) -> Survey:
    """Measures a model, or goes on with what the folder holds of it; the same documents give the same numbers.

    The state is saved by the clock, at the end, where the text breaks off, and on SIGINT or SIGTERM, after the batch.
    More `docs` than before go on from there; a measurement that is complete is read, and no model is loaded.

    Args:
        name: of the model, as `load_model`.
        settings: what is measured.
        folder: state.npz, and tokens/ where they are asked for.
        restart: begin anew; what the folder holds is replaced.
        save_seconds: between saves.
        on_batch: called after each batch.
        load: loads the model.

    Raises:
        InputError: where the folder's state was measured with other settings, or on more documents than `docs`; and as
            `load_model`, `read_documents`, `measure_model`.
    """
    target = Path(folder)
    path = target / "state.npz"
    identity = settings.identity(name)
    documents = [read_documents(one, settings.field) for one in settings.text]  # wrong paths fail before a model loads
    known = load_state(path) if path.exists() and not restart else None
    start, about, words = None, {}, {}
    if known is not None:
        try:
            _check_same(known, identity, settings, path)
            start, about = Measurement.restore(known["measurement"]), known["about"]
            words = dict(zip(known["word_ids"], known["words"], strict=True))
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            got = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"{path} must be a measurement of this command, got another: {got}. Remove it.") from error
        if start.documents == settings.docs or known["exhausted"]:
            return Survey(name, target, start, about, words, known["exhausted"], resumed=start.documents)
    loaded = load(name, dtype=settings.dtype, device=settings.device, revision=settings.revision)
    about = {"weights": loaded.weights, "dtype": loaded.dtype, "device": loaded.device}
    target.mkdir(parents=True, exist_ok=True)
    parts = TokenParts(target / "tokens", known["token_parts"] if known else 0) if settings.tokens else None
    survey = Survey(name, target, start or _nothing(), about, words, resumed=start.documents if start else 0)
    saved = time.monotonic()

    def save() -> None:
        if restart and parts is None:
            shutil.rmtree(target / "tokens", ignore_errors=True)  # of the measurement that this one replaces
        _add_words(survey, loaded.tokenizer)
        state = {"schema": _SCHEMA, "identity": identity, "about": about, "exhausted": survey.exhausted}
        state |= {"token_parts": parts.flush() if parts else 0, "measurement": survey.found.state()}
        write_state(path, state | {"word_ids": list(survey.words), "words": list(survey.words.values())})

    def after_batch(found: Measurement, seen: Seen) -> None:
        nonlocal saved
        survey.found = found
        if parts is not None:
            parts.add(seen.trajectory, document=seen.documents, position=seen.positions, token=seen.ids)
        on_batch(found)
        if interrupt.signal:
            raise _Stop
        if time.monotonic() - saved > save_seconds:
            save()
            saved = time.monotonic()

    text = itertools.islice(itertools.chain.from_iterable(documents), settings.docs)
    with Interrupt() as interrupt:
        try:
            survey.found = measure_model(
                loaded.model,
                loaded.tokenizer,
                text,
                batch_size=settings.batch_size,
                max_length=settings.max_length,
                skip_first=settings.skip_first,
                allow_non_finite=settings.allow_non_finite,
                readouts=settings.readouts if settings.readout_tokens else (),
                readout_tokens=settings.readout_tokens,
                profiles=True,
                sample=settings.sample,
                seed=settings.seed,
                start=start,
                after_batch=after_batch,
            )
            survey.exhausted = survey.found.documents < settings.docs
        except _Stop:
            survey.signal = interrupt.signal
        finally:
            # Where the text broke off, or a later batch could not be measured, the batches before it are kept.
            if survey.found.whole and survey.found.documents > survey.resumed:
                save()
    return survey


def _nothing() -> Measurement:
    """Of no document; replaced by the first batch."""
    from toydepth.hidden import Accumulator

    return Measurement(Accumulator(1), Accumulator(1), 1)


def _check_same(known: Mapping[str, Any], identity: dict[str, Any], settings: SurveySettings, path: Path) -> None:
    if known.get("schema") != _SCHEMA:
        got = known.get("schema")
        raise InputError(f"{path} must have schema {_SCHEMA}, got {got}. Give another --folder, or --restart.")
    for name, wanted in identity.items():
        had = known["identity"].get(name)
        if had != wanted:
            told = f"that of before, {had}" if name not in ("model", "text") else "the one of before, by its files"
            got = f", got {wanted}" if name not in ("model", "text") else ", got another"
            raise InputError(f"{name} must be {told}, to go on from {path}{got}. Give another --folder, or --restart.")
    done = known["measurement"]["documents"]
    if done > settings.docs:
        raise InputError(
            f"docs must be {done} or more, to go on from {path}, got {settings.docs}. "
            f"Give another --folder, or --restart."
        )


def _add_words(survey: Survey, tokenizer: Any) -> None:
    """Texts of the tokens that the sample holds now."""
    assert survey.found.profiles is not None
    ids = [int(token) for token in survey.found.profiles.reservoir.sample().table["token"].unique()]
    decode = getattr(tokenizer, "decode", lambda given: str(given[0]))
    survey.words = {token: survey.words.get(token) or str(decode([token])) for token in sorted(ids)}
