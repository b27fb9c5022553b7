"""Small files of the layouts that the room reads, written by hand where no library is needed."""

import json

import numpy as np
import pytest

_NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "int64": "I64", "bool": "BOOL", "uint8": "U8"}


def write_safetensors(path, tensors, kinds=None):
    """Writes a file of the format; `kinds` names those whose bits are of another type, as BF16 in uint16."""
    header: dict = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, value in tensors.items():
        kind = (kinds or {}).get(name) or _NAMES[value.dtype.name]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(value.tobytes() for value in tensors.values()))


@pytest.fixture
def neox():
    """Draws the tensors of a tiny GPT-NeoX, buffers and all; the vocabulary may be padded."""

    def draw(seed=0, width=4, vocabulary=11, dtype=np.float32):
        rng = np.random.default_rng(seed)

        def normal(*shape):
            return rng.normal(size=shape).astype(dtype)

        found = {"gpt_neox.embed_in.weight": normal(vocabulary, width)}
        for layer in (0, 1, 10):  # 10 stands after 1, and its text before
            name = f"gpt_neox.layers.{layer}.attention"
            found[f"{name}.query_key_value.weight"] = normal(3 * width, width)
            found[f"{name}.query_key_value.bias"] = normal(3 * width)
            found[f"{name}.bias"] = np.tril(np.ones((1, 1, 3, 3), bool))
            found[f"{name}.masked_bias"] = np.array(-1e9, dtype)
            found[f"{name}.rotary_emb.inv_freq"] = np.ones(2, dtype)
        return found | {"embed_out.weight": normal(vocabulary, width)}

    return draw


TRAINED = (
    "embed_out.weight",
    "gpt_neox.embed_in.weight",
    *(f"gpt_neox.layers.{n}.attention.query_key_value.{kind}" for n in (0, 1, 10) for kind in ("bias", "weight")),
)


@pytest.fixture
def trained():
    """The names that a field of `neox` has, in its order."""
    return TRAINED


@pytest.fixture
def safe():
    return write_safetensors
