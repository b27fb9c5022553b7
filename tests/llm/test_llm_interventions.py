"""Blocks left out, swapped and repeated, against models built so by hand."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
pytest.importorskip("transformers", reason="the extra llm is not installed")

from toydepth.errors import InputError  # noqa: E402
from toydepth.llm.adapters import find_parts  # noqa: E402
from toydepth.llm.capture import capture  # noqa: E402
from toydepth.llm.interventions import INTERVENTIONS, blocks_in_order, intervened, recorded  # noqa: E402

IDS = np.random.default_rng(0).integers(3, 50, size=(2, 9))
MASK = np.ones((2, 9), bool)
EVERY = [(kind, layer) for kind in INTERVENTIONS for layer in range(1, 4 - (kind == "swap"))]


def logits(model):
    with torch.no_grad():
        return model(torch.as_tensor(IDS), use_cache=False).logits


def rebuilt(tiny, kind, intervention, layer):
    """The model with another list of blocks: one that the library itself runs."""
    model = tiny(kind)
    parts = find_parts(model)
    blocks = [parts.blocks[number - 1] for number in blocks_in_order(intervention, layer, 3)]
    setattr(parts.backbone, "h" if kind == "gpt2" else "layers", torch.nn.ModuleList(blocks))
    model.config.num_hidden_layers = len(blocks)
    if getattr(model.config, "layer_types", None):
        model.config.layer_types = ["full_attention"] * len(blocks)
    return model


def hooks(model):
    return sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules())


def test_a_model_changed_inside_is_the_one_rebuilt(tiny, kind):
    model = tiny(kind)
    intact, before = logits(model), hooks(model)
    for intervention, layer in EVERY:
        with intervened(find_parts(model), intervention, layer):
            changed = logits(model)
        torch.testing.assert_close(changed, logits(rebuilt(tiny, kind, intervention, layer)), rtol=1e-5, atol=1e-5)
        assert (changed - intact).abs().max() > 0.01, (intervention, layer)
        torch.testing.assert_close(logits(model), intact, rtol=0, atol=0)
        assert hooks(model) == before


def test_blocks_run_one_by_one_are_the_model_changed(tiny, kind):
    parts = find_parts(tiny(kind))
    with recorded(parts) as record:
        capture(parts, IDS, MASK)
    with torch.inference_mode():
        torch.testing.assert_close(record.run(parts, record.first, [1, 2, 3]), record.last, rtol=0, atol=0)
        for intervention, layer in EVERY:
            with intervened(parts, intervention, layer):
                expected = capture(parts, IDS, MASK).states[-1]
            found = record.run(parts, record.first, blocks_in_order(intervention, layer, 3))
            torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_a_swapped_block_keeps_its_own_window(tiny):
    """Of two blocks, the second sees three tokens back at most; swapped, it is the first that runs, and still does."""
    window = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1, "num_hidden_layers": 2}
    for kind in ("qwen2", "qwen3"):
        model = tiny(kind, **window)
        assert model.config.layer_types == ["full_attention", "sliding_attention"]
        parts = find_parts(model)
        with recorded(parts) as record:
            capture(parts, IDS, MASK)
        with intervened(parts, "swap", 1):
            found = capture(parts, IDS, MASK).states[-1]
        with torch.inference_mode():
            torch.testing.assert_close(record.run(parts, record.first, [2, 1]), found)
        # The same blocks where the model is built with windows the other way round.
        other = tiny(kind, **window)
        other.model.layers = torch.nn.ModuleList(list(other.model.layers)[::-1])
        other.config.layer_types = other.config.layer_types[::-1]
        torch.testing.assert_close(capture(find_parts(other), IDS, MASK).states[-1], found, rtol=1e-5, atol=1e-5)


def test_outputs_as_tuples_stay_so(tiny):
    """Blocks of older libraries return (state, ...)."""
    model = tiny("llama")
    expected = {}
    for one in EVERY:
        with intervened(find_parts(model), *one):
            expected[one] = capture(find_parts(model), IDS, MASK).states[-1]
    for block in model.model.layers:
        forward = block.forward
        block.forward = lambda state, *args, forward=forward, **named: (forward(state, *args, **named), None)
        block.register_forward_hook(lambda _module, _args, output: output)
    parts = find_parts(model)

    def run(state):
        for block in parts.blocks:
            output = block(state, attention_mask=None, position_embeddings=embeddings)
            assert isinstance(output, tuple) and len(output) == 2
            state = output[0]
        return state

    with torch.inference_mode():
        state = model.model.embed_tokens(torch.as_tensor(IDS))
        embeddings = model.model.rotary_emb(state, position_ids=torch.arange(9)[None])
        for one in EVERY:
            with intervened(parts, *one):
                torch.testing.assert_close(run(state), expected[one], rtol=1e-5, atol=1e-5)


def test_hooks_are_gone_whatever_happens(tiny):
    model = tiny("gpt2")
    before, parts = hooks(model), find_parts(model)
    for intervention in INTERVENTIONS:
        with pytest.raises(KeyboardInterrupt), intervened(parts, intervention, 1):
            assert hooks(model) > before
            raise KeyboardInterrupt
        assert hooks(model) == before
    with pytest.raises(KeyboardInterrupt), recorded(parts):
        raise KeyboardInterrupt
    assert hooks(model) == before


def test_what_cannot_be_changed_is_refused():
    for arguments, message in (
        (("skip", 0, 3), r"layer must be in 1 ... 3 for skip, got 0"),
        (("repeat", 4, 3), r"layer must be in 1 ... 3 for repeat, got 4"),
        (("swap", 3, 3), r"layer must be in 1 ... 2 for swap, got 3. A swap needs a next block"),
        (("drop", 1, 3), r"intervention must be one of skip, swap, repeat, got drop"),
    ):
        with pytest.raises(InputError, match=message):
            blocks_in_order(*arguments)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_offloaded_weights_change_no_number(tiny, kind):
    """Weights that wait elsewhere come in for each call of a block, changed or not."""
    accelerate = pytest.importorskip("accelerate", reason="the extra llm is not installed")
    spread = tiny(kind)
    accelerate.cpu_offload(spread, execution_device=torch.device("cpu"))
    assert next(find_parts(spread).blocks[0].parameters()).device.type == "meta"
    plain, spread = find_parts(tiny(kind)), find_parts(spread)
    for one in EVERY:
        with intervened(plain, *one), intervened(spread, *one):
            expected, found = (capture(parts, IDS, MASK).states[-1] for parts in (plain, spread))
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
        with recorded(spread) as record:
            capture(spread, IDS, MASK)
        with torch.inference_mode():
            state = record.run(spread, record.first, blocks_in_order(*one, 3))
        torch.testing.assert_close(state, expected, rtol=1e-6, atol=1e-6)
