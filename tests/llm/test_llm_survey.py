"""A model measured into a folder: stopped and gone on with to the bit; what may not change is refused by name."""

import dataclasses
import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
pytest.importorskip("transformers", reason="the extra llm is not installed")

from toydepth.errors import InputError  # noqa: E402
from toydepth.llm import LoadedModel, SurveySettings, survey_model  # noqa: E402


@pytest.fixture
def text(tmp_path, documents):
    path = tmp_path / "text.jsonl"
    path.write_text("".join(json.dumps({"text": one}) + "\n" for one in documents))
    return path


@pytest.fixture
def settings(text):
    return SurveySettings((str(text),), batch_size=2, max_length=40, tokens=True, sample=50, readout_tokens=60)


@pytest.fixture
def load(tiny, tokenizer):
    """load(...) -> a tiny llama; load.calls counts."""

    def once(name, **_):
        once.calls += 1
        return LoadedModel(tiny("llama"), tokenizer, name, "random", "float32", "cpu")

    once.calls = 0
    return once


def numbers(survey):
    table = survey.found.table()
    return table.drop(columns="position").to_numpy(float)


def stop_after(batches, number):
    seen = []

    def on_batch(found):
        seen.append(found.documents)
        if len(seen) == batches:
            os.kill(os.getpid(), number)

    return on_batch


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("batches", [1, 3])
def test_a_signal_saves_and_the_same_call_goes_on(settings, load, tmp_path, batches, number):
    whole = survey_model("m", settings, tmp_path / "whole", load=load)
    assert whole.found.documents == 9 and whole.exhausted and whole.signal is None
    part = survey_model("m", settings, tmp_path / "part", load=load, on_batch=stop_after(batches, number))
    assert part.signal == number and part.found.documents < 9
    again = survey_model("m", settings, tmp_path / "part", load=load)
    assert again.resumed == part.found.documents
    np.testing.assert_array_equal(numbers(again), numbers(whole))
    assert (again.found.documents, again.found.tokens, again.found.empty) == (9, whole.found.tokens, 1)
    np.testing.assert_array_equal(again.found.profiles.covariance.scatter, whole.found.profiles.covariance.scatter)
    one, other = (each.found.profiles.reservoir.sample() for each in (whole, again))
    assert one.table.equals(other.table) and again.words == whole.words
    tokens = [pd.read_parquet(tmp_path / name / "tokens") for name in ("whole", "part")]
    assert len(tokens[0]) == whole.found.tokens and tokens[0]["document"].is_monotonic_increasing
    pd.testing.assert_frame_equal(*tokens)


def test_numbers_are_those_of_measure_model(settings, load, tmp_path, tiny, tokenizer, documents):
    from toydepth.llm import measure_model

    found = survey_model("m", settings, tmp_path, load=load).found
    options = {"batch_size": 2, "max_length": 40, "readouts": ("lens", "last_block"), "readout_tokens": 60}
    expected = measure_model(tiny("llama"), tokenizer, documents, **options)
    np.testing.assert_array_equal(
        found.table().drop(columns="position").to_numpy(float),
        expected.table().drop(columns="position").to_numpy(float),
    )
    assert found.readout.num_tokens == 60
    tokens = pd.read_parquet(tmp_path / "tokens")
    bulk = tokens[tokens["position"] > 0]
    np.testing.assert_allclose(
        np.stack(bulk["theta_states"]).mean(axis=0), found.bulk.table()["theta_states"][:3], rtol=1e-5
    )


def test_what_is_complete_is_read_and_no_model_loaded(settings, load, tmp_path):
    first = survey_model("m", settings, tmp_path, load=load)
    again = survey_model("m", settings, tmp_path, load=load)
    assert load.calls == 1 and again.resumed == 9
    np.testing.assert_array_equal(numbers(again), numbers(first))
    survey_model("m", settings, tmp_path, load=load, restart=True)
    assert load.calls == 2


def test_more_documents_go_on(settings, load, tmp_path):
    few = survey_model("m", dataclasses.replace(settings, docs=4), tmp_path / "a", load=load)
    assert few.found.documents == 4 and not few.exhausted
    more = survey_model("m", settings, tmp_path / "a", load=load)
    whole = survey_model("m", settings, tmp_path / "b", load=load)
    assert (more.resumed, more.found.documents) == (4, 9)
    np.testing.assert_allclose(numbers(more), numbers(whole), rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match=r"docs must be 9 or more, to go on from .*got 4"):
        survey_model("m", dataclasses.replace(settings, docs=4), tmp_path / "a", load=load)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_length": 30}, "max_length must be that of before, 40,.*got 30"),
        ({"skip_first": 2}, "skip_first must be that of before, 1,.*got 2"),
        ({"readouts": ("lens",)}, "readouts must be that of before"),
        ({"dtype": "bfloat16"}, "dtype must be that of before, float32"),
        ({"sample": 60}, "sample must be that of before, 50"),
        ({"tokens": False}, "tokens must be that of before, True"),
    ],
)
def test_what_may_not_change(settings, load, tmp_path, change, words):
    survey_model("m", dataclasses.replace(settings, docs=2), tmp_path, load=load)
    with pytest.raises(InputError, match=f"{words}.*--restart"):
        survey_model("m", dataclasses.replace(settings, **change), tmp_path, load=load)
    assert load.calls == 1


def test_another_text_or_model(settings, load, tmp_path, text):
    survey_model("m", dataclasses.replace(settings, docs=2), tmp_path / "s", load=load)
    with pytest.raises(InputError, match=r"model must be the one of before.*got another"):
        survey_model("n", settings, tmp_path / "s", load=load)
    moved = text.rename(tmp_path / "moved.jsonl")
    with moved.open("a") as file:
        file.write('{"text": "more"}\n')
    with pytest.raises(InputError, match=r"text must be the one of before, by its files, .*got another"):
        survey_model("m", dataclasses.replace(settings, text=(str(moved),)), tmp_path / "s", load=load)


def test_text_that_breaks_off_loses_nothing(settings, load, tmp_path, text):
    """A bad line after five documents: what was measured before it is kept, and goes on once it is mended."""
    lines = text.read_text().splitlines()
    whole = survey_model("m", settings, tmp_path / "whole", load=load)
    text.write_text("\n".join([*lines[:5], '{"text":  7}', *lines[6:]]))
    with pytest.raises(InputError, match="line 6"):
        survey_model("m", settings, tmp_path / "part", load=load)
    state = tmp_path / "part" / "state.npz"
    assert state.exists()
    text.write_text("\n".join([*lines[:5], '{"text": ""}', *lines[6:]]))  # another text: it is told
    with pytest.raises(InputError, match="text must be the one of before"):
        survey_model("m", settings, tmp_path / "part", load=load)
    assert whole.found.documents == 9


def test_a_batch_that_cannot_be_measured_is_not_saved(settings, tiny, tokenizer, tmp_path):
    """NaN in the third batch: the state holds the two before it, whole."""
    model = tiny("llama")
    with torch.no_grad():
        model.model.embed_tokens.weight[tokenizer("x")["input_ids"][1]] = float("nan")
    text = tmp_path / "t.jsonl"
    text.write_text("".join(json.dumps({"text": one}) + "\n" for one in ["abc", "de", "fg", "hi", "ax", "b"]))
    own = dataclasses.replace(settings, text=(str(text),))

    def load(name, **_):
        return LoadedModel(model, tokenizer, name, "random", "float32", "cpu")

    with pytest.raises(InputError, match="hidden states must be finite"):
        survey_model("m", own, tmp_path / "s", load=load)
    from toydepth.hidden import load_state

    held = load_state(tmp_path / "s" / "state.npz")["measurement"]
    assert (held["documents"], held["tokens"], held["bulk"]["num_tokens"]) == (4, 13, 9)
    assert held["profiles"]["reservoir"]["num_seen"] == 13
    found = survey_model("m", dataclasses.replace(own, allow_non_finite=True), tmp_path / "s", load=load).found
    table = found.table().query("position == 'bulk'")
    # Six tokens of the bulk have a next one. "x" has no state; a masked NaN still spoils those it stands beside, from
    # the first block on, so that "a" before it has no prediction.
    assert found.documents == 6 and found.readout.num_tokens == 6
    assert table["num_not_finite"].tolist() == [1, 2, 2, 2] and table["cross_entropy_tokens"].tolist() == [6, 5, 5, 5]
    assert np.isfinite(table["cross_entropy"]).all()


def test_the_clock_saves(settings, load, tmp_path):
    saved = []
    survey_model(
        "m", settings, tmp_path, load=load, save_seconds=0,
        on_batch=lambda found: saved.append((tmp_path / "state.npz").exists()),
    )  # fmt: skip
    assert saved == [False, True, True, True]


def test_settings_out_of_range(text):
    for change, words in (
        ({"docs": 0}, "docs must be 1"),
        ({"text": ()}, "text must be files"),
        ({"readout_tokens": -1}, "0"),
    ):
        with pytest.raises(InputError, match=words):
            SurveySettings(**({"text": (str(text),)} | change))
