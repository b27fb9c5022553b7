"""Sizes and steps: which fields stand beside each other."""

import numpy as np
import pytest

from toydepth.checkpoints import checkpoint_fields, find_checkpoints, find_step, neighbours
from toydepth.checkpoints.table import common_steps, size_labels
from toydepth.errors import InputError


@pytest.fixture
def family(tmp_path, safe):
    """Writes checkpoints whose only weight is step squared; returns the folder."""

    def write(name, steps, width=3, ending="/model.safetensors", word="step"):
        for step in steps:
            safe(tmp_path / name / f"{word}{step}{ending}", {"w": np.full(width, float(step) ** 2, np.float32)})
        return tmp_path / name

    return write


@pytest.mark.parametrize("word", ["step", "step_", "step-", "checkpoint-", "", "global_step", "model_step-"])
def test_names_of_steps(family, word):
    folder = family("a", (0, 9, 10, 100), word=word)
    found, notes = find_checkpoints(folder)
    assert (list(found), notes) == ([0, 9, 10, 100], ())
    assert [(field.step_before, field.step) for field in neighbours(folder)] == [(0, 9), (9, 10), (10, 100)]
    assert [field.values[0] for field in neighbours(folder)] == [81, 19, 9900]


def test_names_that_tell_no_step(family, tmp_path):
    names = ("latest", "stepper5", "v2", "step", "layer3", "misstep4", "step10b", "١٢")
    assert [find_step(name) for name in names] == [None] * len(names)
    assert find_step("epoch=1-step=2000.pt") == 2000 == find_step("step2000_checkpoint-2000")
    with pytest.raises(InputError, match="a name must tell one step, got step1_checkpoint-2"):
        find_step("step1_checkpoint-2")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes").mkdir()
    with pytest.raises(InputError, match=r"a folder of steps, as step1000 or checkpoint-1000, got"):
        find_checkpoints(tmp_path / "a")
    with pytest.raises(InputError, match=r"must be a folder that exists, got .*none"):
        find_checkpoints(tmp_path / "none")


def test_files_by_step_and_folders_below(family):
    assert list(find_checkpoints(family("files", (5, 40), ending=".safetensors"))[0]) == [5, 40]
    assert list(find_checkpoints(family("run/checkpoints", (5, 40)).parent)[0]) == [5, 40]


def test_two_entries_of_a_step(family):
    family("a", (1, 2))
    folder = family("a", (2,), word="step_")
    with pytest.raises(InputError, match=r"must have one entry a step, got step2 and step_2|got step_2 and step2"):
        find_checkpoints(folder)


def test_a_step_without_weights_is_named(family):
    folder = family("a", (1, 3))
    (folder / "step2").mkdir()
    found, notes = find_checkpoints(folder)
    assert list(found) == [1, 3] and len(notes) == 1 and notes[0].endswith("step2 holds no weights")
    assert checkpoint_fields([folder]).left_out == notes


def test_a_download_of_the_hub(tmp_path, safe):
    folder = tmp_path / "models--Org--tiny-70m"
    for step, commit in ((1, "aa"), (20, "bb")):
        safe(folder / "snapshots" / commit / "model.safetensors", {"w": np.full(2, step, np.float32)})
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / f"step{step}").write_text(commit)
    (folder / "refs" / "main").write_text("bb")
    (field,) = neighbours(folder)
    assert (field.step_before, field.step, field.size_label, field.values.tolist()) == (1, 20, "tiny-70m", [19, 19])


def test_neighbours_are_the_same_for_all_sizes(family):
    """Where a size lacks step 10, the others' step 10 is left out too: all differences are over the same steps."""
    folders = [family("small", (0, 10, 20)), family("mid", (0, 10, 20), 4), family("large", (0, 20, 30), 5)]
    table = checkpoint_fields(folders)
    assert (table.size_labels, table.steps) == (("small", "mid", "large"), (20,))
    assert table.left_out == ("small has no step 30", "mid has no step 30", "large has no step 10")
    fields = list(table.fields(20))
    assert [field.size_label for field in fields] == ["small", "mid", "large"]
    assert [len(field.values) for field in fields] == [3, 4, 5]
    assert all(field.step_before == 0 and field.values[0] == 400 for field in fields)
    with pytest.raises(InputError, match=r"step must be one that all sizes have, got 10\. There are 20"):
        table.fields(10)


def test_fields_are_read_when_asked_for(family, monkeypatch):
    import toydepth.checkpoints.families as families

    calls = []
    real = families.difference
    monkeypatch.setattr(families, "difference", lambda *a, **k: calls.append(k["size_label"]) or real(*a, **k))
    table = checkpoint_fields([family("a", (0, 1, 2)), family("b", (0, 1, 2))])
    rows = iter(table)
    _, fields = next(rows)
    assert calls == []
    next(fields)
    assert calls == ["a"]


def test_chosen_steps(family):
    table = checkpoint_fields([family("a", (0, 1, 2, 3)), family("b", (0, 2, 3))], steps=(0, 3))
    assert (table.steps, table.left_out) == ((3,), ())
    assert [field.values[0] for field in table.fields(3)] == [9, 9]
    with pytest.raises(InputError, match="all sizes have, got 1, which b lacks"):
        checkpoint_fields([family("a", ()), family("b", ())], steps=(0, 1))
    with pytest.raises(InputError, match=r"two or more steps in common, got \(3,\)"):
        checkpoint_fields([family("a", ())], steps=(3,))


def test_no_steps_in_common(family):
    with pytest.raises(InputError, match=r"steps in common, got none \(a has no step 2; b has no step 1\)"):
        checkpoint_fields([family("a", (1,)), family("b", (2,))])
    steps, left_out = common_steps({"a": range(0, 90, 10), "b": [0]})
    assert (steps, left_out) == ((0,), ("b has no step 10, 20, 30, 40, 50, 60, ... (8 steps)",))


def test_labels(tmp_path):
    assert list(size_labels(["x/a", "x/b"])) == ["a", "b"]
    assert list(size_labels(["x/run", "y/run", "y/other"])) == ["x/run", "y/run", "y/other"]
    assert list(size_labels(["x/models--a--tiny", "x/models--b--tiny"])) == ["models--a--tiny", "models--b--tiny"]
    with pytest.raises(InputError, match="each once, got none"):
        size_labels([])
    with pytest.raises(InputError, match="each once, got x/a twice"):
        size_labels(["x/a", "x/b", "x/../x/a"])


def test_identical_neighbours(family, safe):
    folder = family("a", (0, 1, 2))
    for step in (0, 1):
        safe(folder / f"step{step}" / "model.safetensors", {"w": np.ones(3, np.float32)})
    first, second = neighbours(folder)
    assert not first.values.any() and second.values.all()
