"""Files of torch: weights alone, whatever stands around them; no pickle is run."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")

from toydepth.checkpoints import open_tensors, read_field  # noqa: E402
from toydepth.errors import InputError  # noqa: E402


def test_a_dict_of_tensors(tmp_path):
    written = {"b.10": torch.randn(2, 3).bfloat16(), "b.2": torch.randn(3, dtype=torch.float64), "n": torch.arange(2)}
    written |= {"p": torch.nn.Parameter(torch.ones(2)), "t": torch.arange(6.0).reshape(2, 3).T, "epoch": 3}
    torch.save(written, tmp_path / "a.pt")
    found = open_tensors(tmp_path / "a.pt")
    assert list(found.infos) == ["b.2", "b.10", "epoch", "n", "p", "t"]
    assert (found.infos["epoch"].problem, found.infos["n"].problem) == ("not a tensor (int)", "not float (int64)")
    assert found.infos["b.10"].dtype == "bfloat16"
    np.testing.assert_array_equal(found.read("b.10"), written["b.10"].float().numpy())
    assert found.read("b.2").dtype == np.float64
    # A transposed tensor is laid out by its axes, not by how its values lie in memory.
    field = read_field(tmp_path / "a.pt")
    assert field.names == ("b.2", "b.10", "p", "t")
    assert field.values[-6:].tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize(
    "words", [("model",), ("state_dict",), ("model_state_dict",), ("_model",), ("state_dict", "model")]
)
def test_weights_within_what_a_trainer_saves(tmp_path, words):
    found = {"w": torch.ones(2)}
    for word in words:
        found = {word: found, "optimizer": {"w": torch.zeros(9)}, "step": torch.tensor(3.0)}
    torch.save(found, tmp_path / "a.pth")
    assert list(open_tensors(tmp_path / "a.pth").infos) == ["w"]


def test_a_single_tensor(tmp_path):
    torch.save(torch.ones(2), tmp_path / "grad.pt")
    assert open_tensors(tmp_path / "grad.pt").read("grad").tolist() == [1.0, 1.0]


def test_tied_weights_count_once(tmp_path):
    """And tensors of one storage that lie apart in it, or that have no values, are tensors of their own."""
    shared, whole = torch.ones(3, 2), torch.arange(4.0)
    written = {"embed": shared, "head": shared, "view": shared.T, "low": whole[:2], "high": whole[2:]}
    written |= {"none": torch.zeros(0), "nothing": torch.zeros(0)}
    torch.save(written, tmp_path / "a.bin")
    infos = open_tensors(tmp_path / "a.bin").infos
    problems = {name: info.problem for name, info in infos.items() if info.problem}
    assert problems == {"head": "shares its values with embed"}


def test_the_old_format_too(tmp_path):
    torch.save({"w": torch.arange(3.0)}, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    assert open_tensors(tmp_path / "a.pt").read("w").tolist() == [0, 1, 2]


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("plain", [False, True])
def test_an_unsafe_pickle_is_not_run(tmp_path, plain):
    path, trace = tmp_path / "evil.pt", tmp_path / "trace"
    if plain:
        path.write_bytes(pickle.dumps({"w": Evil(trace)}))
    else:
        torch.save({"w": torch.ones(2), "x": Evil(trace)}, path)
    with pytest.raises(
        InputError, match=r"must hold tensors alone, got (.*open|other objects) in its pickle\. It is not loaded"
    ) as found:
        open_tensors(path)
    assert "\n" not in str(found.value) and "weights_only" not in str(found.value)
    assert not trace.exists()


def test_a_whole_module_is_refused(tmp_path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"must hold tensors alone, got torch.nn.modules.linear.Linear"):
        open_tensors(tmp_path / "a.pt")


def test_damaged_files(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pt")
    whole = (tmp_path / "a.pt").read_bytes()
    for number, content in enumerate((b"", whole[:300], b"no pickle")):
        path = tmp_path / f"{number}.pt"
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"{number}.pt must ") as found:
            open_tensors(path)
        assert "\n" not in str(found.value)


def test_no_weights_and_two_sets(tmp_path):
    torch.save({"step": 3, "args": {"lr": 0.1}}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"must hold tensors by name, got step, args"):
        open_tensors(tmp_path / "a.pt")
    torch.save([torch.ones(2)], tmp_path / "b.pt")
    with pytest.raises(InputError, match=r"must hold a dict of tensors, got list"):
        open_tensors(tmp_path / "b.pt")
    torch.save({"model": {"w": torch.ones(2)}, "state_dict": {"w": torch.ones(2)}}, tmp_path / "c.pt")
    with pytest.raises(InputError, match=r"one set of weights, got model and state_dict"):
        open_tensors(tmp_path / "c.pt")


def test_kinds_that_give_no_values(tmp_path):
    written = {"sparse": torch.eye(2).to_sparse(), "complex": torch.ones(2, dtype=torch.complex64)}
    written |= {"w": torch.ones(2).to(torch.float8_e4m3fn), "w_scale": torch.ones(1)}
    written |= {"e8": torch.ones(2).to(torch.float8_e8m0fnu)}
    torch.save(written, tmp_path / "a.pt")
    found = open_tensors(tmp_path / "a.pt")
    assert found.infos["sparse"].problem == "sparse, or without values"
    assert found.infos["complex"].problem == "not float (complex64)"
    assert found.infos["e8"].problem == "stored as float8_e8m0fnu, which is not read"
    assert found.infos["w"].problem == "float8_e4m3fn with a scale in another tensor"
