"""Gradient snapshots on disk: what is written is read, one arm at a time; what cannot be read is one line."""

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.runs import (
    RunRecord,
    count_parameters,
    gradients_file,
    load_gradients,
    make_curves,
    name_weights,
    student_name,
    write_curves,
    write_gradients,
)

WIDTH = 2


def nested(depth, value):
    """A gradient as a bank has it, N values from `value` on."""
    shapes = {"w2": (depth, 4 * WIDTH, WIDTH), "w1": (depth, WIDTH, 4 * WIDTH), "b1": (depth, 4 * WIDTH)}
    mlp, start = {}, value
    for name, shape in shapes.items():
        mlp[name] = np.arange(start, start + np.prod(shape), dtype=np.float32).reshape(shape)
        start += np.prod(shape)
    return {"stack": {"block": {"mlp": mlp}}}


@pytest.fixture
def write_snapshots(pieces):
    """Writes a run of two arms (depths 3 and 6) evaluated at 0, 10 and 20, with snapshots at the steps given."""

    def write(folder, steps=(4, 20), status="complete", diverged=None, points=2, listed=None):
        labels, arms, series = pieces
        labels |= {"width": WIDTH}
        folder.mkdir()
        for step in steps:
            names = [f"depth={arm['depth']},init=zero,replicate=0" for arm in arms]
            dead = [diverged is not None and index == 1 and step > diverged for index in range(2)]
            now = {"tau": step / 100, "learning_rate": 0.01}
            write_gradients(
                folder,
                step=step,
                samples=256 * step,
                stream="train",
                weights="raw",
                examples=256,
                labels=labels,
                arms=[
                    arm | now | {"name": name, "loss": np.nan if gone else 0.5 - step / 100, "diverged": gone}
                    for arm, name, gone in zip(arms, names, dead, strict=True)
                ],
                gradients=[
                    None if gone else name_weights(student_name(name), nested(arm["depth"], step))
                    for arm, name, gone in zip(arms, names, dead, strict=True)
                ],
            )
        entries = [{"step": step, "file": gradients_file(step)} for step in (steps if listed is None else listed)]
        config = {"gradients": {"points": points}} if points is not None else {}
        RunRecord("tied_mse", config, "a1b2", status=status, gradients=entries).write(folder)
        write_curves(folder, make_curves(labels, arms, series))
        return folder

    return write


def test_what_is_written_is_read(tmp_path, write_snapshots):
    fields = list(load_gradients(write_snapshots(tmp_path / "run")))
    assert [(f.labels["step"], f.labels["depth"]) for f in fields] == [(4, 3), (4, 6), (20, 3), (20, 6)]
    for field in fields:
        labels, depth = field.labels, field.labels["depth"]
        assert (labels["run"], labels["width"], labels["teacher"]) == (str(tmp_path / "run"), WIDTH, "tied")
        assert (labels["init"], labels["block"], labels["replicate"]) == ("zero", "euler", 0)
        assert np.isnan(labels["rho"]) and np.isnan(labels["temperature"]) and labels["diverged"] is False
        assert (labels["stream"], labels["weights"], labels["examples"]) == ("train", "raw", 256)
        assert labels["samples"] == 256 * labels["step"] and labels["tau"] == labels["step"] / 100
        assert labels["gradient_loss"] == 0.5 - labels["step"] / 100 and labels["learning_rate"] == 0.01
        # The alphabetical order of names, whatever order they were made in: b1 last of the bank's is first here.
        mlp = nested(depth, labels["step"])["stack"]["block"]["mlp"]
        assert field.names == ("b1", "w1", "w2") and field.shapes == tuple(mlp[n].shape for n in field.names)
        np.testing.assert_array_equal(field.values, np.concatenate([mlp[name].ravel() for name in field.names]))
        assert (
            field.values is not None
            and field.values.dtype == np.float32
            and len(field.values) == count_parameters(WIDTH, depth)
        )
    # Step 4 is nearer to 10 than to 0, where ln step has no number; losses as in the curves.
    assert [f.labels["evaluation_step"] for f in fields] == [10, 10, 20, 20]
    assert [f.labels["test_loss"] for f in fields] == pytest.approx([0.2, 0.1, 0.1, 0.05])


def test_the_same_content_is_the_same_bytes_and_nothing_else_is_left(tmp_path, write_snapshots):
    one, two = (write_snapshots(tmp_path / name) for name in ("one", "two"))
    files = sorted(path.name for path in (one / "gradients").iterdir())
    assert files == ["step=00000004.npz", "step=00000020.npz"]
    assert all((one / "gradients" / name).read_bytes() == (two / "gradients" / name).read_bytes() for name in files)


def test_an_arm_that_has_diverged_is_a_row_without_values(tmp_path, write_snapshots):
    fields = list(load_gradients(write_snapshots(tmp_path / "run", diverged=10)))
    assert [field.values is None for field in fields] == [False, False, False, True]
    assert fields[3].labels["diverged"] is True and np.isnan(fields[3].labels["gradient_loss"])
    with np.load(tmp_path / "run" / gradients_file(20)) as archive:
        assert {name.split("/")[1] for name in archive.files if name.startswith("student/")} == {
            "depth=3,init=zero,replicate=0"
        }


@pytest.mark.parametrize("points", [0, None])
def test_a_run_without_snapshots_is_one_line(tmp_path, write_snapshots, points):
    folder = write_snapshots(tmp_path / "run", steps=(), points=points)
    with pytest.raises(InputError) as caught:
        load_gradients(folder)
    assert str(caught.value) == (
        f"gradients.points must be above 0 for the run in {folder}, got 0. Train again with gradients.points=12."
    )


def test_a_run_that_has_not_ended_is_read_when_asked_for(tmp_path, write_snapshots):
    folder = write_snapshots(tmp_path / "run", status="interrupted", listed=(4,))
    with pytest.raises(InputError, match=r"must hold a finished run, got one whose status is interrupted\."):
        load_gradients(folder)
    (folder / "curves.parquet").unlink()  # as after a kill
    fields = list(load_gradients(folder, allow_unfinished=True))
    # A snapshot that no checkpoint has behind it is not listed, and not read.
    assert [f.labels["step"] for f in fields] == [4, 4]
    assert fields[0].labels["evaluation_step"] == -1 and np.isnan(fields[0].labels["test_loss"])
    early = write_snapshots(tmp_path / "early", steps=(), status="running")
    with pytest.raises(InputError, match=r"must hold gradient snapshots, got none \(status running\)\. Let it train"):
        load_gradients(early, allow_unfinished=True)
    with pytest.raises(InputError, match=r"got none \(status diverged\)\. Every arm diverged before the first"):
        load_gradients(write_snapshots(tmp_path / "wild", steps=(), status="diverged"))


def test_a_missing_or_damaged_file_is_one_line(tmp_path, write_snapshots):
    folder = write_snapshots(tmp_path / "run")
    path = folder / gradients_file(4)
    whole = path.read_bytes()
    middle = whole.index(nested(3, 4)["stack"]["block"]["mlp"]["w1"].tobytes()) + 100
    damaged = {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "text": b"no archive",
        "flipped": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
    }
    for content in damaged.values():
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            list(load_gradients(folder))
        message = str(caught.value)
        assert message.startswith(f"{path} must be a whole gradient snapshot, got: ") and "\n" not in message
        assert message.endswith("Restore the file, or train again in another folder.")
    path.unlink()
    with pytest.raises(InputError, match=r"must be a gradient snapshot, got no such file\."):
        list(load_gradients(folder))


@pytest.mark.parametrize("change", ["a weight less", "float64", "no labels"])
def test_a_file_with_something_else_in_it_is_refused(tmp_path, write_snapshots, change):
    folder = write_snapshots(tmp_path / "run")
    path = folder / gradients_file(4)
    with np.load(path) as archive:
        arrays = dict(archive)
    name = next(name for name in arrays if name.endswith("/w1"))
    if change == "a weight less":
        arrays[name] = arrays[name][:-1]
    elif change == "float64":
        arrays[name] = arrays[name].astype(float)
    else:
        del arrays["arm/depth"]
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"must be a whole gradient snapshot, got: "):
        list(load_gradients(folder))


def test_names_of_weights():
    params = {"head": np.ones(1), "stack": {"block": {"mlp_2": {"w1": np.ones(2)}, "mlp_1": {"b1": np.ones(3)}}}}
    assert list(name_weights("x", params)) == ["x/head", "x/mlp_1/b1", "x/mlp_2/w1"]
    # Two decays are two names, however close.
    assert student_name("a", 0.9990001) != student_name("a", 0.999)


def test_results_without_a_record_are_refused(tmp_path, write_snapshots):
    from toydepth.runs import claim_folder

    folder = write_snapshots(tmp_path / "run")
    for name in ("record.json", "curves.parquet"):
        (folder / name).unlink()
    with pytest.raises(InputError, match=r"got gradients without a record\.json"):
        claim_folder(folder, "a1b2")
