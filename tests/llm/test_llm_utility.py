"""Losses of changed models against whole passes of them; errors against a plain computation over documents."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
pytest.importorskip("transformers", reason="the extra llm is not installed")

from toydepth.errors import InputError, RunError  # noqa: E402
from toydepth.llm.adapters import find_parts  # noqa: E402
from toydepth.llm.interventions import intervened  # noqa: E402
from toydepth.llm.ratio import DocumentMeans  # noqa: E402
from toydepth.llm.utility import measure_utility  # noqa: E402


def own_losses(model, tokenizer, documents, skip_first=1, max_length=64):
    """Nats of each predicted token, an array a document, by the model's own whole pass."""
    found = []
    for text in documents:
        ids = tokenizer(text)["input_ids"][:max_length]
        if len(ids) <= skip_first + 1:
            continue
        with torch.no_grad():
            logits = model(torch.as_tensor([ids]), use_cache=False).logits[0, :-1]
            loss = torch.nn.functional.cross_entropy(logits, torch.as_tensor(ids[1:]), reduction="none")
        found.append(loss[skip_first:].double().numpy())
    return found


def test_the_whole_model_with_each_intervention(tiny, kind, tokenizer, documents):
    model = tiny(kind)
    intact = own_losses(model, tokenizer, documents)
    found = measure_utility(model, tokenizer, documents, batch_size=3, max_length=64)
    table = found.table()
    assert found.intact == pytest.approx(np.concatenate(intact).mean(), rel=1e-5)
    assert [*zip(table["intervention"], table["layer"], strict=True)] == [
        *itertools.product(["skip"], (1, 2, 3)), ("swap", 1), ("swap", 2), *itertools.product(["repeat"], (1, 2, 3))
    ]  # fmt: skip
    assert table["relative_depth"].round(4).tolist() == [0.1667, 0.5, 0.8333, 0.3333, 0.6667, 0.1667, 0.5, 0.8333]
    for row in table.to_dict("records"):
        with intervened(find_parts(model), row["intervention"], row["layer"]):
            changed = own_losses(model, tokenizer, documents)
        assert row["cross_entropy"] == pytest.approx(np.concatenate(changed).mean(), rel=1e-5)
        apart = [one - other for one, other in zip(changed, intact, strict=True)]
        tokens = np.array([len(one) for one in apart])
        mean = np.concatenate(apart).mean()
        assert row["change"] == pytest.approx(mean, abs=2e-5)
        residuals = np.array([one.sum() for one in apart]) - mean * tokens
        error = np.sqrt(len(apart) / (len(apart) - 1) * (residuals**2).sum()) / tokens.sum()
        assert row["change_error"] == pytest.approx(error, rel=1e-3)
        # A document of one letter has a token, and none to predict after position 0.
        assert (row["tokens"], row["documents"]) == (tokens.sum(), 7)
    assert (found.documents, found.empty) == (9, 1)


def test_batch_size_and_padding_do_not_matter(tiny, kind, tokenizer, documents):
    model = tiny(kind)
    numbers = ["cross_entropy", "change", "change_error"]
    expected = measure_utility(model, tokenizer, documents, batch_size=1).table()
    for batch_size, padding in itertools.product((2, 8), ("left", "right")):
        found = measure_utility(model, tokenizer, documents, batch_size=batch_size, padding=padding).table()
        np.testing.assert_allclose(found[numbers], expected[numbers], rtol=1e-5, atol=1e-5)
        assert (found[["tokens", "documents"]] == expected[["tokens", "documents"]]).all(axis=None)


def test_a_block_that_does_nothing_is_worth_nothing(tiny, tokenizer, documents):
    """Block 2 adds 0: skipped or repeated, the loss stays; swapped either way, it stays too."""
    model = tiny("llama")
    with torch.no_grad():
        for layer in (model.model.layers[1].self_attn.o_proj, model.model.layers[1].mlp.down_proj):
            layer.weight.zero_()
    table = measure_utility(model, tokenizer, documents).table().set_index(["intervention", "layer"])
    for row in (("skip", 2), ("repeat", 2), ("swap", 1), ("swap", 2)):
        assert abs(table["change"][row]) < 1e-6 and table["change_error"][row] < 1e-6
    assert abs(table["change"]["skip", 1]) > 1e-3


def test_only_the_blocks_from_there_on_are_run(tiny, tokenizer, documents):
    """The pass, 3 states in turn, and what each intervention adds to them."""
    model, calls = tiny("llama"), []
    for number, block in enumerate(model.model.layers, start=1):
        block.register_forward_hook(lambda *_, number=number: calls.append(number))
    measure_utility(model, tokenizer, documents[:1])
    assert calls == [1, 2, 3, *(2, 3), *(2, 1, 3), *(1, 1, 2, 3), 1, *(3,), *(3, 2), *(2, 2, 3), 2, *(3, 3), 3]


@pytest.mark.parametrize("cuts", [[], [1], [3, 4], [1, 2, 3, 4, 5]])
def test_errors_over_documents_do_not_depend_on_the_cut(cuts):
    generator = np.random.default_rng(0)
    tokens = np.array([5, 0, 12, 3, 40, 7])
    sums = (1e6 + generator.normal(size=(2, 6))) * tokens
    means = DocumentMeans(2)
    for one, other in zip(np.split(sums, cuts, axis=1), np.split(tokens, cuts), strict=True):
        means.add(one, other)
    mean = sums.sum(axis=1) / 67
    error = np.sqrt(5 / 4 * ((sums - mean[:, None] * tokens) ** 2).sum(axis=1)) / 67
    np.testing.assert_allclose(means.mean, mean, rtol=1e-14)
    np.testing.assert_allclose(means.error, error, rtol=1e-6)
    assert (means.documents, means.tokens) == (5, 67)


def test_errors_cover_where_tokens_of_a_document_are_alike():
    """Documents of equal tokens: an error that took tokens as independent would be five times too small."""
    generator = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        level = generator.normal(size=60)
        means = DocumentMeans(1).add(25 * level[None], np.full(60, 25))
        held += abs(means.mean[0]) < 1.96 * means.error[0]
    assert held / 400 == pytest.approx(0.95, abs=0.04)


def test_one_document_has_no_error(tiny, tokenizer, documents):
    table = measure_utility(tiny("opt"), tokenizer, documents[:1], interventions=["skip"]).table()
    assert table["intervention"].tolist() == ["skip"] * 3 and table["change_error"].isna().all()
    assert np.isfinite(table["change"]).all()


def test_what_is_not_finite_is_named(tiny, tokenizer, documents):
    model = tiny("llama").half()
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight.fill_(float("nan"))
    with pytest.raises(InputError, match=r"cross-entropy must be finite, got NaN or inf \(intact\)"):
        measure_utility(model, tokenizer, documents)
    model = tiny("llama")
    # Doubled twice it is beyond what float32 holds; once, not.
    with torch.no_grad():
        model.model.layers[2].forward = lambda state, *_, **__: state * 3e19
    with pytest.raises(InputError, match=r"got NaN or inf \(repeat, layer 3\)"):
        measure_utility(model, tokenizer, documents)


def test_a_model_that_does_more_between_its_blocks(tiny, tokenizer, documents):
    model = tiny("llama")
    parts = find_parts(model)
    parts.blocks[2].register_forward_pre_hook(lambda _module, args: (args[0] * calls.pop(), *args[1:]))
    calls = [1.0] * 100 + [2.0]
    with pytest.raises(RunError, match="blocks run one by one must give the model's last state"):
        measure_utility(model, tokenizer, documents[:1])


def test_wrong_settings(tiny, tokenizer, documents):
    for options, message in (
        ({"skip_first": -1}, "skip_first must be 0 or more, got -1"),
        ({"max_length": 513}, "max_length must be at most 512, the model's positions, got 513"),
        ({"interventions": ("drop",)}, "interventions must be of skip, swap, repeat, got drop"),
        ({"interventions": ()}, "interventions must be of skip, swap, repeat, got none"),
    ):
        with pytest.raises(InputError, match=message):
            measure_utility(tiny("gpt2"), tokenizer, documents, **({"max_length": 64} | options))
    with pytest.raises(InputError, match="a token to predict, got 2 documents without one after position 1"):
        measure_utility(tiny("gpt2"), tokenizer, ["", "x"])
    with pytest.raises(InputError, match="swap must have two blocks, got a model of 1"):
        measure_utility(tiny("gpt2", num_hidden_layers=1), tokenizer, documents, interventions=["swap"])
