"""Plain files as fields: what is one field, what several, and which size and step each is of."""

import numpy as np
import pytest

from toydepth.checkpoints import Selection, file_fields
from toydepth.errors import InputError


@pytest.fixture
def vectors(tmp_path):
    """Writes npy files of a name's own length; returns their paths."""

    def write(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            np.save(tmp_path / name, np.arange(len(name), dtype=np.float32))
        return [tmp_path / name for name in names]

    return write


def test_files_without_steps(vectors):
    table = file_fields(vectors("small.npy", "large.npy"))
    assert (table.size_labels, table.steps, table.left_out) == (("small", "large"), (None,), ())
    one, _ = table.fields(None)
    assert (one.values.tolist(), one.step, one.size_label, one.names) == (list(range(9)), None, "small", ("small",))


def test_steps_in_names(vectors):
    table = file_fields(vectors("small_step10.npy", "small_step2.npy", "mid/step2.npy", "mid/step10.npy"))
    assert (table.size_labels, table.steps) == (("small", "mid"), (2, 10))
    assert [field.source.name for field in table.fields(2)] == ["small_step2.npy", "step2.npy"]
    table = file_fields(vectors("small_step10.npy", "small_step2.npy", "mid/step2.npy"))
    assert (table.steps, table.left_out) == ((2,), ("mid has no step 10",))
    with pytest.raises(InputError, match=r"files must all tell a step or none, got none for large"):
        file_fields(vectors("large.npy", "small_step2.npy"))
    with pytest.raises(InputError, match=r"one a size and step, got two of small at step 2"):
        file_fields(vectors("small_step2.npy", "small-step-2.npy"))
    with pytest.raises(InputError, match=r"one a size and step, got two of small without a step"):
        file_fields(vectors("small.npy", "small.npy"))


def test_an_archive_of_tensors_is_one_field(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.ones((2, 3)), b=np.zeros(2))
    (field,) = file_fields([tmp_path / "a.npz"]).fields(None)
    assert (field.names, field.values.tolist()) == (("b", "w"), [0, 0, 1, 1, 1, 1, 1, 1])
    (field,) = file_fields([tmp_path / "a.npz"], Selection(("b",))).fields(None)
    assert field.names == ("b",)


def test_an_archive_of_steps(tmp_path, vectors):
    path = tmp_path / "small.npz"
    np.savez(path, steps=np.array([100, 7]), fields=np.arange(6, dtype=np.float32).reshape(2, 3))
    table = file_fields([path, *vectors("mid_step7.npy", "mid_step8.npy")])
    assert (table.size_labels, table.steps) == (("small", "mid"), (7,))
    field = next(iter(table.fields(7)))
    assert (field.values.tolist(), field.step, field.names) == ([3, 4, 5], 7, ("fields[1]",))
    wrong = (
        ([1], np.ones((2, 3))),
        ([1.0, 2.0], np.ones((2, 3))),
        ([1, 2], np.ones(2)),
        ([1, 2], np.ones((2, 3), int)),
    )
    for steps, fields in wrong:
        np.savez(path, steps=np.array(steps), fields=fields)
        with pytest.raises(InputError, match=r"must hold integers steps \(s,\) and floats fields \(s, n\), got"):
            file_fields([path])
    np.savez(path, steps=np.array([1, 1]), fields=np.ones((2, 3)))
    with pytest.raises(InputError, match=r"must hold each of its steps once"):
        file_fields([path])
    np.savez(tmp_path / "small_step3.npz", steps=np.array([1, 2]), fields=np.ones((2, 3)))
    with pytest.raises(InputError, match=r"steps in its name or its array, got both"):
        file_fields([tmp_path / "small_step3.npz"])


def test_what_is_refused(tmp_path, vectors):
    np.save(tmp_path / "matrix.npy", np.ones((2, 3)))
    with pytest.raises(InputError, match=r"an array of one axis, got shape \(2, 3\)\. Flatten it; or save an npz"):
        file_fields([tmp_path / "matrix.npy"])
    with pytest.raises(InputError, match="one or more files, got none"):
        file_fields([])
    with pytest.raises(InputError, match="must be files, got the folder"):
        file_fields([tmp_path])
    with pytest.raises(InputError, match=r"exists, got .*none.npy"):
        file_fields([tmp_path / "none.npy"])
    np.save(tmp_path / "ids.npy", np.arange(3))
    with pytest.raises(InputError, match=r"ids: not float \(int64\)"):
        next(iter(file_fields([tmp_path / "ids.npy"]).fields(None)))


def test_chosen_steps(vectors):
    files = vectors("a_step1.npy", "a_step2.npy", "b_step1.npy", "b_step2.npy")
    assert file_fields(files, steps=(2,)).steps == (2,)
    with pytest.raises(InputError, match="got 3, which a lacks"):
        file_fields(files, steps=(3,))
