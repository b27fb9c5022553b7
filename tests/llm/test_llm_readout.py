"""Cross-entropies by layer against the library's own loss, and against a pass by hand."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
pytest.importorskip("transformers", reason="the extra llm is not installed")

from toydepth.errors import InputError  # noqa: E402
from toydepth.llm import measure_model  # noqa: E402
from toydepth.llm.adapters import find_parts  # noqa: E402
from toydepth.llm.batches import token_batches  # noqa: E402
from toydepth.llm.readout import Readout  # noqa: E402

BOTH = ("lens", "last_block")


def own_loss(model, ids, skip_first=1):
    """Of the whole model, by its own forward pass: nats of each token after the first `skip_first` + 1."""
    with torch.no_grad():
        logits = model(torch.as_tensor([ids]), use_cache=False).logits[0, :-1]
        return torch.nn.functional.cross_entropy(logits, torch.as_tensor(ids[1:]), reduction="none")[
            skip_first:
        ].numpy()


def test_the_last_layer_is_the_model(tiny, kind, tokenizer, documents):
    model = tiny(kind)
    losses = np.concatenate([own_loss(model, tokenizer(text)["input_ids"][:64]) for text in filter(None, documents)])
    for padding in ("left", "right"):
        options = {"max_length": 64, "batch_size": 3, "padding": padding, "readouts": BOTH}
        found = measure_model(model, tokenizer, documents, **options)
        table = found.table().query("position == 'bulk'").reset_index()
        assert table["cross_entropy"][3] == pytest.approx(losses.mean(), rel=1e-5)
        assert table["cross_entropy_last_block"][2] == pytest.approx(losses.mean(), rel=1e-5)
        assert table["cross_entropy_error"][3] == pytest.approx(losses.std(ddof=1) / len(losses) ** 0.5, rel=1e-4)
        assert table["cross_entropy_tokens"].tolist() == [len(losses)] * 4
        assert np.isnan(table["cross_entropy_last_block"][3])


def test_blocks_taken_out_are_skipped(tiny, kind, tokenizer, documents):
    """last_block of layer k is the model without blocks k + 1 ... L - 1; lens, without the last one either."""
    table = measure_model(tiny(kind), tokenizer, documents, max_length=64, batch_size=4, readouts=BOTH).table()
    table = table.query("position == 'bulk'").reset_index()
    for layer in range(3):
        for column, blocks in (("cross_entropy", range(layer)), ("cross_entropy_last_block", [*range(layer), 2])):
            model = tiny(kind)
            kept = [find_parts(model).blocks[block] for block in blocks]
            body = find_parts(model).backbone
            setattr(body, "h" if kind == "gpt2" else "layers", torch.nn.ModuleList(kept))
            model.config.num_hidden_layers = len(kept)
            ids = [tokenizer(text)["input_ids"][:64] for text in filter(None, documents)]
            losses = np.concatenate([own_loss(model, one) for one in ids])
            assert table[column][layer] == pytest.approx(losses.mean(), rel=2e-5), (layer, column)


def test_nothing_is_computed_twice(tiny, tokenizer, documents):
    """3 blocks in the pass, and the last one for 2 more states; the head for 4 states, and for 2 more."""
    model, calls = tiny("llama"), []
    for name, module in [*enumerate(model.model.layers), ("head", model.lm_head)]:
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    found = measure_model(model, tokenizer, documents, batch_size=4, readouts=BOTH)
    assert calls[:3] == [0, 1, 2] and calls.count(2) == 2 * 3 and calls.count("head") == 2 * 6
    assert found.readout_seconds > 0
    calls.clear()
    measure_model(model, tokenizer, documents, batch_size=4)
    assert calls == [0, 1, 2] * 2


def test_tokens_do_not_depend_on_how_many_logits_fit(tiny, tokenizer, documents, monkeypatch):
    model = tiny("opt")
    whole = measure_model(model, tokenizer, documents, readouts=BOTH).table()
    monkeypatch.setattr("toydepth.llm.readout._LOGITS_AT_ONCE", 200)
    few = measure_model(model, tokenizer, documents, readouts=BOTH).table()
    for column in ("cross_entropy", "cross_entropy_last_block"):
        np.testing.assert_allclose(few[column], whole[column], rtol=1e-6)


def test_a_stream_is_captured_where_none_is_given(tiny, tokenizer, documents):
    model = tiny("gpt_neox")
    parts, found = find_parts(model), Readout(3, ("lens",), skip_first=2)
    for batch in token_batches(documents, tokenizer, max_length=64):
        found.add(found.measure(parts, batch))
    expected = measure_model(model, tokenizer, documents, max_length=64, readouts=("lens",), skip_first=2).readout
    np.testing.assert_allclose(found.table(), expected.table(), rtol=1e-6)


def test_a_head_of_nan_fails(tiny, tokenizer, documents):
    model = tiny("gpt_neox")
    with torch.no_grad():
        model.lm_head.weight[3] = float("nan")
    with pytest.raises(InputError, match=r"cross-entropy must be finite, got NaN or inf \(lens, layer 0\)"):
        measure_model(model, tokenizer, documents, readouts=BOTH)
