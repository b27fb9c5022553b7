"""Models from folders and files; what cannot be loaded is told in a line."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")
transformers = pytest.importorskip("transformers", reason="the extra llm is not installed")

from toydepth.errors import InputError  # noqa: E402
from toydepth.llm import load_model, measure_model  # noqa: E402


@pytest.mark.parametrize(("dtype", "whole"), [("fp32", "float32"), ("bf16", "bfloat16"), ("float16", "float16")])
def test_a_folder(folder, dtype, whole):
    loaded = load_model(str(folder), dtype=dtype, device="cpu")
    assert (loaded.dtype, loaded.device, loaded.weights) == (whole, "cpu", "float32")
    assert {str(parameter.dtype) for parameter in loaded.model.parameters()} == {f"torch.{whole}"}
    assert not loaded.model.training
    found = measure_model(loaded.model, loaded.tokenizer, ["a b c", "c"])
    assert (found.tokens, found.first.num_tokens) == (4, 2)


def test_weights_are_those_that_were_saved(folder, tiny):
    loaded, saved = load_model(str(folder), device="cpu").model.state_dict(), tiny("llama").state_dict()
    assert loaded.keys() == saved.keys()
    for name, value in saved.items():
        torch.testing.assert_close(loaded[name], value, rtol=0, atol=0)


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


def test_a_gguf_file(tmp_path, capfd):
    """Its weights are those that were written, and the library's bar over its tensors is not shown."""
    gguf = pytest.importorskip("gguf", reason="the extra llm is not installed")
    path, width, inner, rng = tmp_path / "tiny.gguf", 32, 48, np.random.default_rng(0)
    file = gguf.GGUFWriter(path, "llama")
    file.add_block_count(2)
    file.add_context_length(512)
    file.add_embedding_length(width)
    file.add_feed_forward_length(inner)
    file.add_head_count(4)
    file.add_head_count_kv(4)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_tokenizer_model("gpt2")
    file.add_token_list(["<s>", "</s>", *"abcdefghijklmnopq", "ab"])
    file.add_token_merges(["a b"])
    file.add_bos_token_id(0)
    file.add_eos_token_id(1)
    square, wide, vector = (width, width), (inner, width), (width,)
    matrices = {"attn_q": square, "attn_k": square, "attn_v": square, "attn_output": square, "ffn_gate": wide}
    block = matrices | {"ffn_up": wide, "ffn_down": wide[::-1], "attn_norm": vector, "ffn_norm": vector}
    shapes = {f"blk.{layer}.{name}": shape for layer in range(2) for name, shape in block.items()}
    shapes |= {"token_embd": (20, width), "output": (20, width), "output_norm": vector}
    written = {name: rng.normal(scale=0.3, size=shape).astype(np.float32) for name, shape in shapes.items()}
    for name, value in written.items():
        file.add_tensor(f"{name}.weight", value)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    capfd.readouterr()
    shown = transformers.utils.logging.is_progress_bar_enabled()
    loaded = load_model(str(path), device="cpu")
    assert capfd.readouterr() == ("", "")
    assert transformers.utils.logging.is_progress_bar_enabled() == shown
    assert (loaded.weights, loaded.dtype) == ("gguf: F32 100 %", "float32")
    found = loaded.model.state_dict()
    for own, name in (("model.layers.1.mlp.down_proj", "blk.1.ffn_down"), ("model.norm", "output_norm")):
        np.testing.assert_array_equal(found[f"{own}.weight"].numpy(), written[name])
    assert measure_model(loaded.model, loaded.tokenizer, ["abc d"]).tokens > 2


def test_no_network(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"must be on the hub and within reach, got no/such-model: .*network"):
        load_model("no/such-model")


def test_wrong_dtype_and_device(folder):
    with pytest.raises(InputError, match="dtype must be float32, bfloat16 or float16, got int8"):
        load_model(str(folder), dtype="int8")
    with pytest.raises(InputError, match="device must be one that torch finds, got nowhere"):
        load_model(str(folder), device="nowhere")
