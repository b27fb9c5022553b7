"""Models from folders and files; what cannot be loaded is told in a line."""

import importlib.util
import json

import pytest

from toydepth.errors import InputError
from toydepth.llm import load_model, measure_model
from toydepth.llm.models import require_llm

needs_llm = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")),
    reason="the extra llm is not installed",
)


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    """A saved tiny llama with a tokenizer of whole words."""
    import tokenizers
    import transformers

    path = tmp_path_factory.mktemp("llama")
    tiny("llama").save_pretrained(path)
    words = {"[UNK]": 0, "a": 3, "b": 4, "c": 5}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]").save_pretrained(path)
    return path


@needs_llm
@pytest.mark.parametrize(("dtype", "whole"), [("fp32", "float32"), ("bf16", "bfloat16"), ("float16", "float16")])
def test_a_folder(folder, dtype, whole):
    loaded = load_model(str(folder), dtype=dtype, device="cpu")
    assert (loaded.dtype, loaded.device, loaded.weights) == (whole, "cpu", "float32")
    assert {str(parameter.dtype) for parameter in loaded.model.parameters()} == {f"torch.{whole}"}
    assert not loaded.model.training
    found = measure_model(loaded.model, loaded.tokenizer, ["a b c", "c"])
    assert (found.tokens, found.first.num_tokens) == (4, 2)


@needs_llm
def test_weights_are_those_that_were_saved(folder, tiny):
    import torch

    loaded, saved = load_model(str(folder), device="cpu").model.state_dict(), tiny("llama").state_dict()
    assert loaded.keys() == saved.keys()
    for name, value in saved.items():
        torch.testing.assert_close(loaded[name], value, rtol=0, atol=0)


@needs_llm
def test_weights_that_are_not_all_there(folder, tmp_path):
    """The library would draw them at random, and say so in a warning."""
    import shutil

    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, tmp_path / "some")
    file = tmp_path / "some" / "model.safetensors"
    weights = load_file(file)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"must be complete, got 1 missing from .*layers.1.mlp.up_proj.weight"):
        load_model(str(tmp_path / "some"))


@needs_llm
def test_refused_before_weights_are_loaded(folder, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match=r"model type must be one of .* got bert"):
        load_model(str(tmp_path))
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    (tmp_path / "tokenizer.json").write_text((folder / "tokenizer.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text((folder / "tokenizer_config.json").read_text())
    with pytest.raises(InputError, match=r"model must be one that transformers can load, got .*Check its files"):
        load_model(str(tmp_path))


def test_paths_that_are_not_there(tmp_path):
    for name in (str(tmp_path / "none"), "./none", "~/none/x", "a/b/c", ""):
        with pytest.raises(InputError, match=r"model must be a folder, a .gguf file or a name on the hub"):
            load_model(name)
    with pytest.raises(InputError, match=r"model must be a file that exists, got .*none.gguf"):
        load_model(str(tmp_path / "none.gguf"))
    with pytest.raises(InputError, match=r"folder with config.json"):
        load_model(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"folder with \*.safetensors"):
        load_model(str(tmp_path))


@needs_llm
def test_no_network(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"must be on the hub and within reach, got no/such-model: .*network"):
        load_model("no/such-model")


@needs_llm
def test_wrong_dtype_and_device(folder):
    with pytest.raises(InputError, match="dtype must be float32, bfloat16 or float16, got int8"):
        load_model(str(folder), dtype="int8")
    with pytest.raises(InputError, match="device must be one that torch finds, got nowhere"):
        load_model(str(folder), device="nowhere")


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(InputError, match=r"extra llm must be installed.*got no torch\. .*toydepth\[llm\]"):
        require_llm()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "gguf" else object())
    with pytest.raises(InputError, match="got no gguf"):
        require_llm("gguf")
