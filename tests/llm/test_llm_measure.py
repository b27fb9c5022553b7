"""Statistics of tiny models: what must not matter does not, and what is wrong fails."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
pytest.importorskip("transformers", reason="the extra llm is not installed")

from toydepth.errors import InputError  # noqa: E402
from toydepth.hidden import QUANTITIES, Accumulator, measure_states  # noqa: E402
from toydepth.llm import Measurement, measure_model  # noqa: E402
from toydepth.llm.adapters import find_parts  # noqa: E402
from toydepth.llm.capture import capture  # noqa: E402

MEANS = [name + more for name in QUANTITIES for more in ("", "_std")]
COUNTS = ["tokens", "num_zero", "num_not_finite"]


def same(found, expected, tolerance):
    for column in expected.columns:
        if column in MEANS:
            np.testing.assert_allclose(found[column], expected[column], rtol=tolerance, atol=tolerance, err_msg=column)
    assert (found[COUNTS] == expected[COUNTS]).all(axis=None)


def test_batch_size_and_padding_do_not_matter(tiny, kind, tokenizer, documents):
    model = tiny(kind)
    expected = measure_model(model, tokenizer, documents, batch_size=1)
    for batch_size, padding in itertools.product((2, 3, 8), ("left", "right")):
        found = measure_model(model, tokenizer, documents, batch_size=batch_size, padding=padding)
        same(found.table(), expected.table(), 1e-5)
        assert (found.documents, found.empty, found.tokens) == (9, 1, expected.tokens)


def test_one_document_at_a_time_by_hand(tiny, tokenizer, documents):
    """No padding, no batch, no selection: states of each document alone, measured in float64."""
    model = tiny("gpt_neox")
    parts, bulk, first = find_parts(model), Accumulator(3), Accumulator(3)
    for text in filter(None, documents):
        ids = np.array([tokenizer(text)["input_ids"][:12]])
        states = torch.stack(capture(parts, ids, np.ones_like(ids, bool)).states)[:, 0].numpy()
        first.add(measure_states(states[:, :1]))
        if ids.shape[1] > 3:
            bulk.add(measure_states(states[:, 3:]))
    found = measure_model(model, tokenizer, documents, max_length=12, skip_first=3)
    same(found.bulk.table(), bulk.table(), 1e-5)
    same(found.first.table(), first.table(), 1e-5)
    assert (found.first.num_tokens, found.shortened) == (8, 5)
    table = found.table()
    assert table["position"].tolist() == ["bulk"] * 4 + ["first"] * 4
    assert table["layer"].tolist() == [0, 1, 2, 3] * 2


def test_position_0_stays_out_of_the_bulk(tiny, tokenizer, documents):
    """A first token that is a thousand times as long as the others changes its own row only."""
    model = tiny("gpt2")
    before = measure_model(model, tokenizer, documents).table()
    with torch.no_grad():
        model.transformer.wpe.weight[0] *= 1000
    after = measure_model(model, tokenizer, documents).table()
    norms = [table.query("layer == 0").set_index("position")["norm"] for table in (before, after)]
    assert norms[1]["first"] > 100 * norms[0]["first"]
    assert norms[1]["bulk"] == pytest.approx(norms[0]["bulk"])
    assert after["tokens"].tolist() == before["tokens"].tolist()


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_stop_and_go_on(tiny, tokenizer, documents, stop):
    model, states = tiny("llama"), []
    options = {"batch_size": 3, "readouts": ("lens", "last_block")}
    whole = measure_model(
        model, tokenizer, documents, **options, after_batch=lambda found, _: states.append(found.state())
    )
    assert len(states) == 3

    class StopHere(Exception):
        pass

    kept = []

    def interrupt(found, _seen):
        kept.append(Measurement.restore(found.state()))
        if len(kept) == stop:
            raise StopHere

    with pytest.raises(StopHere):
        measure_model(model, tokenizer, documents, **options, after_batch=interrupt)
    tokens = kept[-1].tokens
    again = measure_model(model, tokenizer, documents, **options, start=kept[-1])
    np.testing.assert_array_equal(
        again.table().drop(columns="position").to_numpy(float), whole.table().drop(columns="position").to_numpy(float)
    )
    assert (again.documents, again.tokens, again.empty) == (whole.documents, whole.tokens, whole.empty)
    assert kept[-1].tokens == tokens, "the start is not changed"
    with pytest.raises(InputError, match="start must have skip_first 2"):
        measure_model(model, tokenizer, documents, start=kept[-1], skip_first=2)
    with pytest.raises(InputError, match="readouts must be those of start, lens, last_block, got none"):
        measure_model(model, tokenizer, documents, start=kept[-1])


def test_nan_fails_unless_allowed(tiny, tokenizer, documents):
    model = tiny("llama")
    with torch.no_grad():
        model.model.embed_tokens.weight[tokenizer("x")["input_ids"][1]] = float("nan")
    with pytest.raises(InputError, match=r"hidden states must be finite.*after block 0"):
        measure_model(model, tokenizer, documents)
    found = measure_model(model, tokenizer, documents, allow_non_finite=True)
    table = found.bulk.table()
    letters = sum(text.count("x") for text in documents)
    assert letters == table["num_not_finite"][0] > 0
    assert table["num_not_finite"].is_monotonic_increasing  # other tokens of the document attend to it
    assert np.isfinite(table["norm"]).all()


def test_half_precision_that_overflows_fails(tiny, tokenizer, documents):
    model = tiny("llama").half()
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight.fill_(6e4)
    with pytest.raises(InputError, match="after block 2"):
        measure_model(model, tokenizer, documents)


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 0.03), ("float16", 0.004)])
def test_narrow_types_come_near(tiny, tokenizer, documents, dtype, tolerance):
    wide = measure_model(tiny("qwen2"), tokenizer, documents).bulk.table()
    narrow = measure_model(tiny("qwen2").to(getattr(torch, dtype)), tokenizer, documents).bulk.table()
    for name in ("theta_states", "theta_updates", "norm"):
        np.testing.assert_allclose(narrow[name], wide[name], rtol=tolerance, err_msg=name)


def test_progress_is_told(tiny, tokenizer, documents):
    told = []
    found = measure_model(
        tiny("opt"),
        tokenizer,
        documents,
        batch_size=4,
        after_batch=lambda found, seen: told.append((found.tokens, seen)),
    )
    assert [tokens for tokens, _ in told][-1] == found.tokens == sum(len(text) + 1 for text in documents if text)
    for _, seen in told:
        assert seen.trajectory.norm.shape == (4, len(seen.ids)) and (seen.ids[seen.positions == 0] == 1).all()
        assert np.unique(seen.rows).tolist() == list(range(len(seen.batch.ids)))
    assert found.tokens_per_second == pytest.approx(found.tokens / found.seconds)


def test_wrong_settings(tiny, tokenizer, documents):
    model = tiny("gpt2")
    for options, message in (
        ({"skip_first": 0}, "skip_first must be 1 or more, got 0"),
        ({"max_length": 513}, "max_length must be at most 512, the model's positions, got 513"),
        ({"batch_size": 0}, "batch_size must be 1 or more"),
        ({"padding": "top"}, "padding must be left or right, got top"),
        ({"readouts": ("eye",)}, "readouts must be of lens, last_block, got eye"),
    ):
        with pytest.raises(InputError, match=message):
            measure_model(model, tokenizer, documents, **({"max_length": 64} | options))
    with pytest.raises(InputError, match="text must hold a token, got 2 documents without one"):
        measure_model(model, tokenizer, ["", ""], max_length=64)


def test_importing_the_room_loads_no_torch():
    code = "import sys, toydepth.llm; print(*{'torch', 'transformers', 'jax'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []
