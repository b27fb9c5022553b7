"""Fields: which tensors, in which order, and what is left out."""

import numpy as np
import pytest

from toydepth.checkpoints import Selection, Skipped, difference, open_tensors, read_field
from toydepth.errors import InputError
from toydepth.transport import FieldProblem, check_field


@pytest.fixture
def pair(tmp_path, safe):
    """Writes two checkpoints; returns their paths."""

    def write(earlier, later):
        safe(tmp_path / "step1" / "model.safetensors", earlier)
        safe(tmp_path / "step2" / "model.safetensors", later)
        return tmp_path / "step1", tmp_path / "step2"

    return write


def reasons(field):
    return {one.name: one.reason for one in field.skipped}


def test_trained_tensors_in_natural_order(pair, neox, trained):
    weights = neox()
    path, _ = pair(weights, weights)
    field = read_field(path, step=7, size_label="tiny")
    assert (field.names, field.step, field.size_label, field.source) == (trained, 7, "tiny", path)
    np.testing.assert_array_equal(field.values, np.concatenate([weights[name].ravel() for name in trained]))
    left_out = reasons(field)
    assert left_out["gpt_neox.layers.1.attention.bias"] == "not float (bool)"
    assert left_out["gpt_neox.layers.1.attention.masked_bias"] == "buffer"
    assert left_out["gpt_neox.layers.1.attention.rotary_emb.inv_freq"] == "buffer"
    assert set(left_out) | set(trained) == set(weights)
    assert "gpt_neox.layers.1.attention.masked_bias" in read_field(path, Selection(buffers=True)).names


def test_the_order_of_the_file_does_not_matter(pair, neox):
    weights = neox()
    one, other = (read_field(path) for path in pair(weights, dict(reversed(weights.items()))))
    np.testing.assert_array_equal(one.values, other.values)


def test_a_mask_of_floats_is_told_from_a_bias(tmp_path):
    np.savez(tmp_path / "a.npz", **{"h.0.attn.bias": np.ones((1, 1, 3, 3)), "h.1.attn.bias": np.ones(3)})
    field = read_field(tmp_path / "a.npz")
    assert (field.names, reasons(field)) == (("h.1.attn.bias",), {"h.0.attn.bias": "buffer"})


def test_patterns(pair, neox):
    path, _ = pair(neox(), neox())
    field = read_field(path, Selection(("*.query_key_value.*", "*typo*"), ("*.bias",)))
    assert field.names == tuple(f"gpt_neox.layers.{n}.attention.query_key_value.weight" for n in (0, 1, 10))
    left_out = reasons(field)
    assert left_out["*typo*"] == "pattern that matches no tensor"
    assert left_out["embed_out.weight"] == "not selected"
    assert left_out["gpt_neox.layers.0.attention.query_key_value.bias"] == "excluded"
    with pytest.raises(InputError, match=r"got none of .*\(none\*: pattern that matches no tensor; .*not selected"):
        read_field(path, Selection(("none*",)))
    with pytest.raises(InputError, match="include must be one or more patterns"):
        Selection(())
    with pytest.raises(InputError, match="dtype must be float32 or float64, got float16"):
        Selection(dtype="float16")  # pyright: ignore


def test_precision(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.full(1, 0.1), b=np.full(1, 0.1, np.float32))
    np.savez(tmp_path / "b.npz", b=np.full(1, 0.1, np.float32))
    assert read_field(tmp_path / "a.npz").values.tolist() == [0.1, float(np.float32(0.1))]
    assert read_field(tmp_path / "b.npz").values.dtype == np.float32
    assert read_field(tmp_path / "a.npz", Selection(dtype="float32")).values.dtype == np.float32
    assert read_field(tmp_path / "b.npz", Selection(dtype="float64")).values.dtype == np.float64


def test_difference(pair, neox, trained):
    old, new = neox(0), neox(1)
    field = difference(*pair(old, new), steps=(1, 2), size_label="tiny")
    assert (field.names, field.step_before, field.step, field.size_label) == (trained, 1, 2, "tiny")
    np.testing.assert_array_equal(field.values, np.concatenate([(new[name] - old[name]).ravel() for name in trained]))


def test_difference_in_the_wider_precision(tmp_path):
    """1 + 2^-40 - 1: float32 sees no difference of what float64 stores, and the field's float32 holds it."""
    np.savez(tmp_path / "a.npz", w=np.ones(1))
    np.savez(tmp_path / "b.npz", w=np.full(1, 1 + 2.0**-40))
    field = difference(tmp_path / "a.npz", tmp_path / "b.npz", Selection(dtype="float32"))
    assert (field.values.dtype, field.values[0]) == (np.float32, 2.0**-40)
    # (1 + 2^-23) - 2^-30 needs more than 24 bits.
    np.savez(tmp_path / "a.npz", w=np.full(1, 2.0**-30, np.float32))
    np.savez(tmp_path / "b.npz", w=np.full(1, 1 + 2.0**-23, np.float32))
    wide = difference(tmp_path / "a.npz", tmp_path / "b.npz", Selection(dtype="float64"))
    assert wide.values[0] == 1 + 2.0**-23 - 2.0**-30


def test_identical_checkpoints_give_zeros(pair, neox):
    field = difference(*pair(neox(), neox()))
    assert field.values.size and not field.values.any()
    assert check_field(field.values).problem == FieldProblem.ZERO


def test_padded_vocabularies(pair, neox):
    old, new = neox(0, vocabulary=11), neox(1, vocabulary=16)
    paths = pair(old, new)
    field = difference(*paths)
    lost = {one.name: one for one in field.skipped}
    name = "embed_out.weight"
    assert lost[name] == Skipped(name, "shape (16, 4), (11, 4) in the earlier checkpoint", 64)
    assert name not in field.names
    common = difference(*paths, rows="common")
    assert common.names[0] == name
    np.testing.assert_array_equal(common.values[:44], (new[name][:11] - old[name]).ravel())
    lost = {one.name: one for one in common.skipped}
    assert lost[name] == Skipped(name, "rows from 11 on, in the later checkpoint alone", 20)
    back = {one.name: one for one in difference(*reversed(paths), rows="common").skipped}
    assert back[name] == Skipped(name, "rows from 11 on, in the earlier checkpoint alone", 20)
    with pytest.raises(InputError, match="rows must be skip or common, got all"):
        difference(*paths, rows="all")  # pyright: ignore


def test_missing_tensors(pair, neox):
    old, new = neox(0), neox(1)
    old_only = old | {"old": np.ones(3, np.float32), "ids": np.arange(2)}
    changed = new | {"new": np.ones(2, np.float32)}
    changed["gpt_neox.layers.0.attention.query_key_value.bias"] = np.ones((3, 4), np.float32)
    field = difference(*pair(old_only, changed), rows="common")
    left_out = {one.name: (one.reason, one.num_values) for one in field.skipped}
    assert left_out["old"] == ("missing in the later checkpoint", 3)
    assert left_out["new"] == ("missing in the earlier checkpoint", 2)
    assert left_out["ids"] == ("not float (int64)", 2)
    reason, _ = left_out["gpt_neox.layers.0.attention.query_key_value.bias"]
    assert reason == "shape (3, 4), (12,) in the earlier checkpoint"


def test_no_tensor_in_common(pair):
    paths = pair({"a": np.ones(2, np.float32)}, {"b": np.ones(2, np.float32)})
    with pytest.raises(InputError, match=r"b: missing in the earlier checkpoint; a: missing in the later"):
        difference(*paths)


def test_kinds_that_change(pair):
    paths = pair({"a": np.arange(2), "b": np.ones(1, np.float16)}, {"a": np.ones(2), "b": np.full(1, 3.0)})
    field = difference(*paths)
    assert (field.names, field.values.tolist(), field.values.dtype) == (("b",), [2.0], np.float64)
    assert reasons(field) == {"a": "not float (int64), in the earlier checkpoint"}


def test_infinities_pass_without_a_warning(pair):
    paths = pair({"a": np.array([np.inf, 1], np.float32)}, {"a": np.array([np.inf, np.nan], np.float32)})
    assert np.isnan(difference(*paths).values).all()


def test_one_tensor_at_a_time(pair, neox):
    """Each is read once, and none before it is needed."""
    path, _ = pair(neox(), neox())
    tensors, seen = open_tensors(path), []
    counted = type(tensors)(tensors.source, tensors.infos, lambda name: seen.append(name) or tensors.load(name))
    assert seen == []
    field = read_field(counted)
    assert tuple(seen) == field.names
