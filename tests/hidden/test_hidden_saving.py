"""A state as a file: what went in comes out, and what is no state is told in a line."""

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.hidden import load_state, write_state

STATE = {
    "schema": 1,
    "words": [" the", 'a "b"', "ü"],
    "none": None,
    "text": "array:not one",
    "nan": float("nan"),
    "parts": {"mean": np.array([1.5, np.nan, np.inf]), "counts": np.arange(6, dtype=np.int64).reshape(2, 3)},
    "priorities": np.array([2**64 - 1], np.uint64),
    "empty": np.zeros((3, 0)),
    "number": np.float64(0.1),
}


def test_what_goes_in_comes_out(tmp_path):
    write_state(tmp_path / "state.npz", STATE)
    found = load_state(tmp_path / "state.npz")
    assert found.keys() == STATE.keys()
    for name in ("schema", "words", "none", "text", "number"):
        assert found[name] == STATE[name]
    assert np.isnan(found["nan"])
    for name in ("mean", "counts"):
        np.testing.assert_array_equal(found["parts"][name], STATE["parts"][name])
        assert found["parts"][name].dtype == STATE["parts"][name].dtype
    assert found["priorities"][0] == 2**64 - 1 and found["empty"].shape == (3, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


@pytest.mark.parametrize("content", [b"", b"no state", b"PK\x03\x04 cut off"])
def test_what_is_no_state(tmp_path, content):
    (tmp_path / "state.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"state.npz must be a saved state, got: .*Remove it"):
        load_state(tmp_path / "state.npz")


def test_a_state_that_is_cut_off(tmp_path):
    write_state(tmp_path / "state.npz", STATE)
    whole = (tmp_path / "state.npz").read_bytes()
    for length in (1, len(whole) // 2, len(whole) - 30):
        (tmp_path / "state.npz").write_bytes(whole[:length])
        with pytest.raises(InputError, match="must be a saved state"):
            load_state(tmp_path / "state.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InputError, match="must be a saved state"):
        load_state(tmp_path / "other.npz")


def test_no_half_is_left_where_a_state_cannot_be_written(tmp_path):
    write_state(tmp_path / "state.npz", {"a": 1})
    with pytest.raises(TypeError):
        write_state(tmp_path / "state.npz", {"a": object()})
    assert load_state(tmp_path / "state.npz") == {"a": 1}
