"""Causal tracing of tiny models: what a restored state must bring back, and by brute force."""

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.llm.facts import Fact, locate, read_facts


class Letters:
    """A token a letter, after a first one; tells where they stand."""

    def __call__(self, text, return_offsets_mapping=False, **_):
        found = {"input_ids": [1, *(3 + ord(letter) % 47 for letter in text)]}
        offsets = [(0, 0), *((place, place + 1) for place in range(len(text)))]
        return found | ({"offset_mapping": offsets} if return_offsets_mapping else {})


class Words(Letters):
    """A token a word with the space before it."""

    def __call__(self, text, return_offsets_mapping=False, **_):
        words = text.replace(" ", "\n ").split("\n")
        ends = np.cumsum([len(word) for word in words]).tolist()
        found = {"input_ids": [3 + sum(map(ord, word)) % 47 for word in words]}
        return found | {"offset_mapping": list(zip([0, *ends[:-1]], ends, strict=True))}


FACT = Fact("well the blue sea lies far away from", "blue sea", "home")


@pytest.fixture
def run(tiny):
    pytest.importorskip("torch", reason="the extra llm is not installed")
    from toydepth.llm.tracing import trace_facts

    def trace(kind="llama", facts=(FACT,), tokenizer=None, **options):
        options = {"include_unknown": True, "samples": 3} | options
        return trace_facts(tiny(kind), tokenizer or Words(), facts, **options)

    return trace


def test_roles_of_positions():
    found = locate(FACT, Words())
    assert found.subject.tolist() == [2, 3]
    roles = ["", "", "first subject", "last subject", "first after", "further", "further", "last token"]
    assert found.roles == roles
    assert [FACT.prompt[start:end] for start, end in found.spans][2:4] == [" blue", " sea"]
    assert found.answer == Words()(" home")["input_ids"][-1]


def test_what_restoring_must_give(run, kind):
    """The source's identities, on every adapter; random weights, so that no two agree by chance."""
    found = run(kind)
    (one,) = found.facts
    assert one.restored.shape == (4, 8) and abs(one.clean - one.corrupted) > 1e-5
    close = {"rel": 1e-4, "abs": 1e-7}
    # The last state at the last position is what is read.
    assert one.restored[3, -1] == pytest.approx(one.clean, **close)
    # At the last layer other positions are read by nobody; before the subject nothing was hidden.
    assert one.restored[3, :-1] == pytest.approx(one.corrupted, **close)
    assert one.restored[:, :2] == pytest.approx(one.corrupted, **close)
    # Nor were embeddings after it.
    assert one.restored[0, 4:] == pytest.approx(one.corrupted, **close)
    # Elsewhere something happens, but where a window of 4 lets nothing through to the last position.
    assert kind == "mistral" or np.abs(one.restored[1:3, 2:] - one.corrupted).min() > 1e-8


def test_a_subject_of_one_token_is_all_that_was_hidden(run, kind):
    (one,) = run(kind, [Fact("well the sea lies far away from", "sea", "home")]).facts
    assert one.restored[0, 2] == pytest.approx(one.clean, rel=1e-4)
    assert one.located.roles[2] == "last subject"


def test_every_restored_state_by_brute_force(run, tiny, kind):
    """A whole pass of the model for each draw, layer and position, with hooks of this test's own."""
    torch = pytest.importorskip("torch")
    from toydepth.llm.adapters import find_parts
    from toydepth.llm.capture import capture
    from toydepth.llm.tracing import _draw

    found = run(kind, samples=2, seed=5)
    (one,) = found.facts
    model = tiny(kind)
    parts, ids = find_parts(model), one.located.ids[None]
    clean = [state.clone() for state in capture(parts, ids, np.ones_like(ids, bool)).states]
    noise = torch.as_tensor(_draw(FACT, one.located, found.noise, 2, 5, 32))

    def answer(draw, layer, place):
        def hide(_module, args, kwargs):
            state = args[0].clone()
            state[0, one.located.subject] += noise[draw]
            if layer == 0:
                state[0, place] = clean[0][0, place]
            return (state, *args[1:]), kwargs

        def put_back(_module, _args, output):
            state = output.clone()
            state[0, place] = clean[layer][0, place]
            return state

        handles = [parts.blocks[0].register_forward_pre_hook(hide, with_kwargs=True)]
        if layer:
            handles.append(parts.blocks[layer - 1].register_forward_hook(put_back))
        with torch.no_grad():
            logits = model(torch.as_tensor(ids), use_cache=False).logits[0, -1]
        for handle in handles:
            handle.remove()
        return float(torch.softmax(logits.double(), dim=-1)[one.located.answer])

    for layer in range(4):
        for place in range(8):
            expected = np.mean([answer(draw, layer, place) for draw in range(2)])
            assert one.restored[layer, place] == pytest.approx(expected, rel=1e-4), (layer, place)


def test_noise_is_that_many_deviations_of_the_subjects(run, tiny):
    weight = tiny("llama").model.embed_tokens.weight.detach().numpy()
    rows = np.concatenate([locate(fact, Words()).ids[[2, 3]] for fact in (FACT,)])
    assert run(noise=2.0).noise == pytest.approx(2 * weight[rows].std(), rel=1e-6)


def test_a_little_noise_hides_little(run):
    (little,), (much,) = (run(noise=noise).facts for noise in (1e-4, 3.0))
    assert little.clean == much.clean
    assert abs(little.clean - little.corrupted) < 1e-3 * abs(much.clean - much.corrupted)


OTHERS = [FACT, Fact("so the old grey wolf sleeps in", "the old grey wolf", "caves"), Fact("his sea is", "sea", "wide")]


def test_rows_at_a_time_and_other_facts_do_not_matter(run):
    expected = run(facts=OTHERS, batch_size=10**4)
    for batch_size in (1, 6, 7):
        found = run(facts=OTHERS, batch_size=batch_size)
        np.testing.assert_allclose(found.positions()["restored"], expected.positions()["restored"], rtol=1e-4)
    again = run(facts=OTHERS[::-1])
    for one, other in zip(again.facts[::-1], expected.facts, strict=True):
        np.testing.assert_allclose(one.restored, other.restored, rtol=1e-5)
    assert run(facts=OTHERS, seed=1).facts[0].corrupted != expected.facts[0].corrupted


def test_averages_by_role(run):
    found = run(facts=OTHERS)
    table = found.table()
    assert list(dict.fromkeys(table["role"])) == [
        *("first subject", "middle subject", "last subject", "first after", "further", "last token")
    ]
    counts = table.query("layer == 0").set_index("role")["facts"].to_dict()
    assert counts == {
        **{"first subject": 2, "middle subject": 1, "last subject": 3},
        **{"first after": 2, "further": 1, "last token": 3},
    }
    row = table.query("role == 'last subject' and layer == 2").iloc[0]
    values = np.array([one.restored[2, one.located.subject[-1]] - one.corrupted for one in found.facts])
    assert row["effect"] == pytest.approx(values.mean())
    # 4.303: Student's t of 2 degrees of freedom, 97.5 %.
    assert row["effect_high"] - row["effect"] == pytest.approx(4.303 * values.std(ddof=1) / 3**0.5, rel=1e-3)
    assert row["relative_depth"] == pytest.approx(2 / 3)
    middle = table.query("role == 'middle subject' and layer == 1").iloc[0]
    wolf = found.facts[1]
    assert middle["effect"] == pytest.approx(wolf.restored[1, [2, 3]].mean() - wolf.corrupted)
    assert np.isnan(middle["effect_low"])
    last = table.query("role == 'last token' and layer == 3").iloc[0]
    assert last["effect"] == pytest.approx(found.total()[0], rel=1e-3)


def test_facts_that_are_not_known_are_counted_and_left_out(run, tiny):
    torch = pytest.importorskip("torch")
    ids = locate(FACT, Words()).ids
    with torch.no_grad():
        best = int(tiny("llama")(torch.as_tensor(ids[None])).logits[0, -1].argmax())
    words = {locate(Fact(FACT.prompt, FACT.subject, word), Words()).answer: word for word in map(chr, range(33, 97))}
    known = Fact(FACT.prompt, FACT.subject, words[best])
    found = run(facts=[FACT, known, OTHERS[1]], include_unknown=False)
    assert [one.known for one in found.facts] == [False, True, False]
    assert found.num_unknown == 2 and len(found.used) == 1 and (found.table()["facts"] == 1).all()
    assert found.facts[0].restored.size == 0 and found.facts[0].predicted == best
    assert set(found.positions()["fact"]) == {1}
    whole = run(facts=[FACT, known, OTHERS[1]])
    assert len(whole.used) == 3 and set(whole.positions()["fact"]) == {0, 1, 2}
    with pytest.raises(InputError, match=r"facts must hold one that the model knows, got 0 of 1"):
        run(include_unknown=False)


def test_progress_is_told(run):
    told = []
    run(facts=OTHERS, after_fact=lambda found, count: told.append((len(found.facts), count)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_what_cannot_be_traced(run, tiny):
    torch = pytest.importorskip("torch")
    for options, message in (
        ({"samples": 0}, "samples must be 1 or more, got 0"),
        ({"noise": 0.0}, "noise must be greater than 0 and finite, got 0.0"),
        ({"noise": float("nan")}, "noise must be greater than 0 and finite, got nan"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"facts": []}, "facts must be one or more, got none"),
        ({"facts": [Fact("x " * 600 + "sea is", "sea", "y")]}, "prompt must be at most 512 tokens, got 602"),
    ):
        with pytest.raises(InputError, match=message):
            run(**options)
    from toydepth.llm.tracing import trace_facts

    model = tiny("llama")
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight.fill_(float("nan"))
    with pytest.raises(InputError, match="probabilities must be finite, got NaN for 'well the blue sea"):
        trace_facts(model, Words(), [FACT], include_unknown=True)


class Merging(Letters):
    """Ends of texts make tokens of their own."""

    def __call__(self, text, **options):
        found = super().__call__(text, **options)
        found["input_ids"][-1] = 2
        return found


class Slow:
    def __call__(self, text, return_offsets_mapping=False, **_):
        raise NotImplementedError


def test_tokenizers_that_will_not_do():
    plain = lambda text, **_: {"input_ids": [1]}  # noqa: E731
    for tokenizer, message in (
        (Slow(), "tokenizer must tell where its tokens stand in the text, got Slow"),
        (plain, "tokenizer must tell where its tokens stand in the text, got function"),
        (Merging(), "answer must begin with a token of its own after"),
        (Letters(), "answer must begin with a token that holds a letter of it, got a space alone"),
    ):
        with pytest.raises(InputError, match=message):
            locate(FACT, tokenizer)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("the sea is", "lake", "big"), "subject must be in its prompt once, got 0 times 'lake'"),
        (("the sea by the sea is", "sea", "big"), "subject must be in its prompt once, got 2 times 'sea'"),
        (("the sea is ", "sea", "big"), "prompt must not end in a space"),
        (("the sea is", "sea", " "), "answer must be text, got ' '"),
        (("the sea is", 3, "big"), "subject must be text, got 3"),
    ],
)
def test_facts_that_are_none(parts, message):
    with pytest.raises(InputError, match=message):
        Fact(*parts)


def test_the_examples_are_facts(repository):
    facts = read_facts(repository / "docs" / "examples" / "facts.jsonl")
    assert len(facts) >= 20 and len({fact.prompt for fact in facts}) == len(facts)
