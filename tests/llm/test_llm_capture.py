"""The captured stream is that of a forward pass by hand; models that are not known are refused."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
transformers = pytest.importorskip("transformers", reason="the extra llm is not installed")

from toydepth.errors import InputError, RunError  # noqa: E402
from toydepth.llm.adapters import check_config, find_parts  # noqa: E402
from toydepth.llm.capture import capture, hooked  # noqa: E402

IDS = np.random.default_rng(0).integers(3, 50, size=(2, 9))
MASK = np.ones((2, 9), bool)


def by_hand(model):
    """h_0 ... h_L, block by block, without the model's own loop; no padding."""
    parts = find_parts(model)
    body, ids = parts.backbone, torch.as_tensor(IDS)
    places = torch.arange(9)[None]
    more = {}
    if parts.model_type == "gpt2":
        state = body.wte(ids) + body.wpe(places)
    elif parts.model_type == "opt":
        state = body.embed_tokens(ids) + body.embed_positions(torch.ones(2, 9), position_ids=places)
    else:
        state = model.get_input_embeddings()(ids)
        more = {"position_ids": places, "position_embeddings": body.rotary_emb(state, position_ids=places)}
    if parts.model_type == "mistral":
        far = places[0][:, None] - places[0][None]
        more["attention_mask"] = ((far >= 0) & (far < 4))[None, None]
    states = [state]
    with torch.no_grad():
        for block in parts.blocks:
            output = block(states[-1], **more)
            states.append(output[0] if isinstance(output, tuple) else output)
    return states


def test_states_are_those_of_a_pass_by_hand(tiny, kind):
    model = tiny(kind)
    found = capture(find_parts(model), IDS, MASK).states
    expected = by_hand(model)
    assert len(found) == len(expected) == 4
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_the_last_state_is_before_the_final_norm(tiny, kind):
    """The library's own last one is after it."""
    model = tiny(kind)
    parts = find_parts(model)
    found = capture(parts, IDS, MASK).states
    with torch.no_grad():
        output = model(torch.as_tensor(IDS), output_hidden_states=True)
        assert len(output.hidden_states) == len(found)
        for own, state in zip(output.hidden_states[:-1], found[:-1], strict=True):
            torch.testing.assert_close(own, state, rtol=1e-5, atol=1e-5)
        assert (output.hidden_states[-1] - found[-1]).abs().max() > 0.1
        torch.testing.assert_close(output.hidden_states[-1], parts.norm(found[-1]), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(output.logits, parts.head(parts.norm(found[-1])), rtol=1e-5, atol=1e-5)


def test_padding_moves_no_token(tiny, kind):
    parts = find_parts(tiny(kind))
    whole = capture(parts, IDS, MASK).states
    for side in ((3, 0), (0, 3)):
        ids, mask = (np.pad(each, ((0, 0), side)) for each in (IDS, MASK))
        found = capture(parts, ids, mask, keep=mask).states
        for one, other in zip(found, whole, strict=True):
            assert one.shape == (18, 32)
            torch.testing.assert_close(one, other.reshape(18, 32), rtol=1e-5, atol=2e-6)


def test_tokens_out_of_the_mask_are_not_kept(tiny):
    parts = find_parts(tiny("llama"))
    keep = MASK.copy()
    keep[0, :4] = False
    some, whole = capture(parts, IDS, MASK, keep).states, capture(parts, IDS, MASK).states
    for one, other in zip(some, whole, strict=True):
        torch.testing.assert_close(one, other[torch.as_tensor(keep)], rtol=0, atol=0)


def hooks(model):
    return sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules())


def test_hooks_are_gone_whatever_happens(tiny, monkeypatch):
    model = tiny("llama")
    before, parts = hooks(model), find_parts(model)
    capture(parts, IDS, MASK)
    assert hooks(model) == before
    with pytest.raises(InputError, match="tokens must be of the model's 50, got token 10"):
        capture(parts, IDS + 1000, MASK)
    with monkeypatch.context() as patch:
        patch.setattr(type(parts.blocks[2].mlp), "forward", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            capture(parts, IDS, MASK)
    with pytest.raises(KeyboardInterrupt), hooked(parts):
        assert hooks(model) == before + 5
        raise KeyboardInterrupt
    assert hooks(model) == before


def test_each_block_runs_once_and_the_head_not_at_all(tiny, kind):
    model = tiny(kind)
    parts, calls = find_parts(model), []
    for name, module in [*enumerate(parts.blocks), ("head", parts.head)]:
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    capture(parts, IDS, MASK)
    assert calls == [0, 1, 2]


def test_dropout_is_off_and_the_model_left_as_it_was(tiny):
    model = tiny("gpt2").train()
    model.transformer.h[1].eval()
    before = [module.training for module in model.modules()]
    one, other = (capture(find_parts(model), IDS, MASK).states[-1] for _ in range(2))
    torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert [module.training for module in model.modules()] == before


def test_a_model_that_leaves_a_block_out(tiny):
    model = tiny("llama")
    parts = find_parts(model)
    model.config.num_hidden_layers = 2
    with pytest.raises(RunError, match="through 3 blocks, got 2"):
        capture(parts, IDS, MASK)
    with pytest.raises(InputError, match=r"num_hidden_layers \(2\) blocks, one or more, got 3"):
        find_parts(model)


def test_opt_350m_is_refused_by_name(tiny):
    """It is post-norm, and embeds at half of its width: as its own config has it, and each alone."""
    own = {"do_layer_norm_before": False, "word_embed_proj_dim": 16}
    with pytest.raises(InputError, match=r"must be pre-norm.*OPT-350m"):
        find_parts(tiny("opt", **own))
    with pytest.raises(InputError, match=r"must be pre-norm.*OPT-350m"):
        find_parts(tiny("opt", do_layer_norm_before=False))
    with pytest.raises(InputError, match=r"word_embed_proj_dim 16, as OPT-350m"):
        find_parts(tiny("opt", word_embed_proj_dim=16))


def test_an_opt_without_a_final_norm(tiny):
    model = tiny("opt", _remove_final_layer_norm=True)
    parts = find_parts(model)
    found = capture(parts, IDS, MASK).states[-1]
    with torch.no_grad():
        torch.testing.assert_close(model(torch.as_tensor(IDS)).logits, parts.head(parts.norm(found)))


@pytest.mark.parametrize("name", ["bert", "gemma2", "t5", "bloom", None])
def test_unknown_types_are_named_and_refused(name):
    with pytest.raises(InputError, match=f"model type must be one of gpt2, gpt_neox.*got {name}"):
        check_config(SimpleNamespace(model_type=name))


def test_what_is_no_language_model_is_refused(tiny):
    with pytest.raises(InputError, match="causal language model, got LlamaModel"):
        find_parts(tiny("llama").model)
    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    bloom = transformers.BloomForCausalLM(transformers.BloomConfig(**sizes))
    with pytest.raises(InputError, match="got bloom"):
        find_parts(bloom)
