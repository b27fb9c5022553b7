"""Folders, shards and numpy files; what is missing is told in a line."""

import json

import numpy as np
import pytest

from toydepth.checkpoints import open_tensors, read_field
from toydepth.errors import InputError


def test_numpy_archives(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, w=np.ones((2, 1), ">f4"), d=np.ones(2), n=np.arange(2), o=np.array([None]), h=np.ones(1, np.float16))
    found = open_tensors(path)
    assert {name: info.problem for name, info in found.infos.items()} == {
        **dict.fromkeys(("d", "h", "w")),
        "n": "not float (int64)",
        "o": "not float (object)",
    }
    assert [found.read(name).dtype.str for name in ("w", "d", "h")] == ["<f4", "<f8", "<f4"]
    np.savez_compressed(path, w=np.ones(300, np.float32))
    assert open_tensors(path).read("w").sum() == 300
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"a.npz must be a whole file of numpy arrays"):
        open_tensors(path)


def test_numpy_arrays(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3.0))
    assert open_tensors(tmp_path / "a.npy").read("a").tolist() == [0, 1, 2]
    np.save(tmp_path / "o.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(InputError, match=r"must have tensors, got none of .*o.npy \(o: not float \(object\)\)"):
        read_field(tmp_path / "o.npy")
    (tmp_path / "b.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match=r"b.npy must be a whole file of numpy arrays"):
        open_tensors(tmp_path / "b.npy")
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-8])
    with pytest.raises(InputError, match=r"a.npy must be a whole file of numpy arrays"):
        open_tensors(tmp_path / "a.npy").read("a")


def write_shards(folder, safe, tensors, kind="model.safetensors"):
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    places = {name: names[at % 2] for at, name in enumerate(tensors)}
    for file in names:
        safe(folder / file, {name: value for name, value in tensors.items() if places[name] == file})
    (folder / f"{kind}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return names


def test_shards_are_as_one_file(tmp_path, safe, neox):
    write_shards(tmp_path / "many", safe, neox())
    safe(tmp_path / "one" / "model.safetensors", neox())
    many, one = (read_field(tmp_path / name) for name in ("many", "one"))
    assert many.names == one.names
    np.testing.assert_array_equal(many.values, one.values)
    assert many.source == tmp_path / "many"


def test_damaged_shards(tmp_path, safe, neox):
    names = write_shards(tmp_path, safe, neox())
    second = tmp_path / names[1]
    whole = second.read_bytes()
    second.write_bytes(whole[:-100])
    with pytest.raises(InputError, match=r"00002-of-00002.safetensors must be a whole safetensors file"):
        open_tensors(tmp_path)
    second.unlink()
    with pytest.raises(InputError, match=r"must have its shards beside it, got no model-00002"):
        open_tensors(tmp_path)
    safe(second, {"other": np.ones(1, np.float32)})
    with pytest.raises(InputError, match=r"all its tensors in its shards, got \d+ missing, such as"):
        open_tensors(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(InputError, match=r"must be JSON with a weight_map"):
        open_tensors(tmp_path)


def test_a_tensor_that_the_index_leaves_out(tmp_path, safe):
    safe(tmp_path / "a.safetensors", {"w": np.ones(1, np.float32), "extra": np.ones(1, np.float32)})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "a.safetensors"}}))
    assert open_tensors(tmp_path).infos["extra"].problem == "not in the index"


def test_which_file_of_a_folder(tmp_path, safe):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"must be a folder with weights, got"):
        open_tensors(tmp_path)
    np.savez(tmp_path / "weights.npz", w=np.zeros(1))
    np.savez(tmp_path / "optimizer.npz", w=np.zeros(1))
    assert open_tensors(tmp_path).read("w")[0] == 0
    safe(tmp_path / "adapter.safetensors", {"w": np.ones(1, np.float32)})
    assert open_tensors(tmp_path).read("w")[0] == 1
    safe(tmp_path / "b.safetensors", {"w": np.ones(1, np.float32)})
    with pytest.raises(InputError, match=r"one file of weights, or an index, got adapter.safetensors, b.safetensors"):
        open_tensors(tmp_path)
    safe(tmp_path / "model.safetensors", {"w": np.full(1, 2, np.float32)})
    assert open_tensors(tmp_path).read("w")[0] == 2


def test_paths_that_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match=r"must be a file or folder that exists, got .*none"):
        open_tensors(tmp_path / "none")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InputError, match=r"must be one of .safetensors, .pt, .*, got .*a.txt"):
        open_tensors(tmp_path / "a.txt")


def test_torch_files_without_torch(tmp_path, monkeypatch):
    (tmp_path / "a.pt").write_bytes(b"")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"the extra llm must be installed to read .*a.pt, got no torch\..*toydepth\[llm\]"
    ):
        open_tensors(tmp_path / "a.pt")
