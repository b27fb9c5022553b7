"""Safetensors files: every kind of float exactly, and no file that does not fit its header."""

import json

import numpy as np
import pytest

from toydepth.checkpoints import open_tensors
from toydepth.errors import InputError


def test_names_shapes_kinds_and_values(tmp_path, safe):
    rng = np.random.default_rng(0)
    written = {"h.10.w": rng.normal(size=(2, 3)).astype(np.float32), "h.2.w": rng.normal(size=3)}
    written |= {"half": np.array([1.5, -2.0], np.float16), "ids": np.arange(3), "mask": np.ones(2, bool)}
    written |= {"number": np.array(3.0, np.float32), "empty": np.zeros((0, 3), np.float32)}
    safe(tmp_path / "a.safetensors", written)
    found = open_tensors(tmp_path / "a.safetensors")
    assert list(found.infos) == ["empty", "h.2.w", "h.10.w", "half", "ids", "mask", "number"]
    assert found.infos["ids"].problem == "not float (int64)" and found.infos["mask"].problem == "not float (bool)"
    for name in ("h.10.w", "h.2.w", "half", "number", "empty"):
        values = found.read(name)
        assert values.dtype == (np.float64 if name == "h.2.w" else np.float32)
        np.testing.assert_array_equal(values, written[name])
        assert values.shape == written[name].shape
    with pytest.raises(InputError, match=r"ids must be a tensor of floats in .*, got not float \(int64\)"):
        found.read("ids")
    with pytest.raises(InputError, match="got no such name"):
        found.read("h.3.w")


@pytest.mark.parametrize(
    ("kind", "name", "bits"), [("BF16", "bfloat16", 16), ("F8_E4M3", "float8_e4m3fn", 8), ("F8_E5M2", "float8_e5m2", 8)]
)
def test_every_value_of_floats_that_numpy_lacks(tmp_path, safe, kind, name, bits):
    import ml_dtypes

    raw = np.arange(2**bits).astype(np.uint16 if bits == 16 else np.uint8)
    safe(tmp_path / "a.safetensors", {"w": raw.view(f"u{bits // 8}")}, {"w": kind})
    found = open_tensors(tmp_path / "a.safetensors")
    assert found.infos["w"].dtype == name
    with np.errstate(invalid="ignore"):
        expected = raw.view(getattr(ml_dtypes, name)).astype(np.float32)
    np.testing.assert_array_equal(found.read("w"), expected)


def test_known_bits(tmp_path, safe):
    """1.0 is 3F80 in bfloat16, 38 in E4M3, 3C in E5M2; 448 is E4M3's largest."""
    values = {"b": np.array([0x3F80, 0xC000], np.uint16), "e4": np.array([0x38, 0x7E], np.uint8)}
    values |= {"e5": np.array([0x3C, 0x7C], np.uint8)}
    safe(tmp_path / "a.safetensors", values, {"b": "BF16", "e4": "F8_E4M3", "e5": "F8_E5M2"})
    found = open_tensors(tmp_path / "a.safetensors")
    assert found.read("b").tolist() == [1.0, -2.0]
    assert found.read("e4").tolist() == [1.0, 448.0]
    assert found.read("e5").tolist() == [1.0, np.inf]


def test_kinds_that_give_no_values(tmp_path, safe):
    byte = np.zeros(2, np.uint8)
    written = {"a.weight": byte, "a.weight_scale": np.ones(1, np.float32), "b": byte, "new": byte}
    safe(tmp_path / "a.safetensors", written, {"a.weight": "F8_E4M3", "b": "F8_E4M3", "new": "F8_E8M0"})
    infos = open_tensors(tmp_path / "a.safetensors").infos
    assert infos["a.weight"].problem == "float8_e4m3fn with a scale in another tensor"
    assert infos["new"].problem == "stored as F8_E8M0, which is not read"
    assert infos["b"].problem is None


def test_as_the_library_writes_it(tmp_path):
    torch = pytest.importorskip("torch", reason="the extra llm is not installed")
    library = pytest.importorskip("safetensors.torch", reason="the extra llm is not installed")
    kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
    written = {f"w.{at}": torch.randn(3, at + 1).to(kind) for at, kind in enumerate(kinds)}
    library.save_file(written, tmp_path / "a.safetensors", metadata={"format": "pt"})
    found = open_tensors(tmp_path / "a.safetensors")
    for name, value in written.items():
        assert found.infos[name].dtype == str(value.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(found.read(name), value.to(torch.float64).numpy())


@pytest.mark.parametrize("cut", [0, 4, 7, 30, -1, -9])
def test_a_file_cut_short(tmp_path, safe, cut):
    path = tmp_path / "a.safetensors"
    safe(path, {"w": np.ones(3, np.float32), "v": np.ones(2, np.float32)})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"a.safetensors must be a whole safetensors file, got .*again"):
        open_tensors(path)


def test_a_file_that_shrinks_after_it_was_opened(tmp_path, safe):
    path = tmp_path / "a.safetensors"
    safe(path, {"w": np.ones(8, np.float32)})
    found = open_tensors(path)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match="must hold all of w, got 5 of 8 values"):
        found.read("w")


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("[]", "a header without names"),
        ("{", "not JSON"),
        ('{"a": 1, "a": 2}', "a name twice"),
        (json.dumps({"w": {"dtype": "F32", "shape": [2]}}), "an entry of w"),
        (json.dumps({"w": 3}), "an entry of w"),
        (json.dumps({"w": ENTRY | {"shape": [3]}}), "does not fit its shape"),
        (json.dumps({"w": ENTRY | {"shape": [-2]}}), "does not fit its shape"),
        (json.dumps({"w": ENTRY, "v": ENTRY}), "values of w that begin at 0, not at 8"),
        (json.dumps({"w": ENTRY | {"data_offsets": [4, 12]}}), "begin at 4, not at 0"),
    ],
)
def test_headers_that_do_not_fit(tmp_path, header, reason):
    text = header.encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(InputError, match=reason):
        open_tensors(path)
