"""Tiny random models of every type, built from their configs: no hub."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SIZES = {"vocab_size": 50, "num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4}
POSITIONS = {"max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GATED = {"intermediate_size": 48, "num_key_value_heads": 2}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", {}),
    "gpt_neox": ("GPTNeoXConfig", {"intermediate_size": 64}),
    "gpt_neox in sequence": ("GPTNeoXConfig", {"intermediate_size": 64, "use_parallel_residual": False}),
    "llama": ("LlamaConfig", GATED),
    "mistral": ("MistralConfig", GATED | {"sliding_window": 4}),
    "opt": ("OPTConfig", {"ffn_dim": 64, "word_embed_proj_dim": 32}),
    "qwen2": ("Qwen2Config", GATED),
    "qwen3": ("Qwen3Config", GATED | {"head_dim": 8}),
}
KINDS = list(CONFIGS)


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Any]:
    """tiny("llama", seed=0, **config) -> a causal model of random weights, far enough from its start to have angles."""
    transformers = pytest.importorskip("transformers", reason="the extra llm is not installed")
    torch = pytest.importorskip("torch", reason="the extra llm is not installed")

    def build(kind: str, seed: int = 0, **more: Any) -> Any:
        name, own = CONFIGS[kind]
        config = getattr(transformers, name)(**(SIZES | POSITIONS | own | more))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = transformers.AutoModelForCausalLM.from_config(config)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
        return model.eval()

    return build


@pytest.fixture(scope="session")
def folder(tiny: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved tiny llama with a tokenizer of whole words: a, b, c."""
    import tokenizers
    import transformers

    path = tmp_path_factory.mktemp("llama")
    tiny("llama").save_pretrained(path)
    words = {"[UNK]": 0, "a": 3, "b": 4, "c": 5}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]").save_pretrained(path)
    return path


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def tokenizer() -> Callable[..., dict[str, list[int]]]:
    """A token a letter, after a first one."""

    def spell(text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [1, *(3 + ord(letter) % 47 for letter in text)] if text else []}

    return spell


@pytest.fixture(scope="session")
def documents() -> list[str]:
    """Of many lengths, one of them empty, one a single letter."""
    text = "what does depth buy in a network whose layers are much alike and whose updates stand at right angles"
    return [text[:20], text[5:9], "", text[30:60], "x", text[60:], text[3:40], text[7:16], text]
