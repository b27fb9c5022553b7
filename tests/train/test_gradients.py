"""Gradient snapshots of whole jobs: names as exported, the same files after an interruption, other settings refused."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toydepth.bank.checkpoint import Checkpoints
from toydepth.export import export_weights
from toydepth.runs import count_parameters, load_gradients

pytestmark = pytest.mark.usefixtures("compile_each_program_once", "quick_compilation")
JOB = ("steps=20", "student.depths=[1,2]", "replicates=2", "gradients.points=4")


def snapshots(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "gradients").iterdir())}


def plain_net(layers, x):
    """net(x) of docs/notation.md, batch first; layers of {w1, b1, w2}."""
    rms = lambda x: x / jnp.sqrt(jnp.mean(x**2, axis=1, keepdims=True) + jnp.finfo(jnp.float32).eps)  # noqa: E731
    x = rms(x)
    for layer in layers:
        x = x + jnp.maximum(rms(x) @ layer["w1"] + layer["b1"], 0) ** 2 @ layer["w2"]
    return rms(x)


@pytest.mark.parametrize("stream, weights", [("train", "raw"), ("test", "average")])
def test_a_gradient_is_that_of_a_plain_loss_at_the_exported_weights(train, tmp_path, record, stream, weights):
    assert train(*JOB, f"gradients.stream={stream}", f"gradients.weights={weights}")[0] == 0
    folder = tmp_path / "run"
    assert [entry["step"] for entry in record(folder)["gradients"]] == [1, 3, 7, 20]
    assert all((folder / entry["file"]).is_file() for entry in record(folder)["gradients"])

    exported = export_weights(folder, tmp_path / "weights.npz")
    last = np.load(folder / "gradients" / "step=00000020.npz")
    kind = "raw" if weights == "raw" else "average=0.998"
    names = [name for name in exported if name.startswith("student/") and f"/{kind}/" in name]
    assert sorted(names) == sorted(name for name in last.files if name.startswith("student/"))
    key = jax.random.key(0, impl="threefry2x32")  # seed 0: the third stream is the data, the fourth the test set
    if stream == "train":
        x = jax.random.normal(jax.random.fold_in(jax.random.fold_in(key, 2), 20), (16, 4))
    else:
        x = jax.random.normal(jax.random.fold_in(key, 3), (64, 4))
    fields = [field for field in load_gradients(folder) if field.labels["step"] == 20]
    assert len(fields) == 4
    for field in fields:
        depth, replicate = field.labels["depth"], field.labels["replicate"]
        prefix = f"student/depth={depth},init=zero,replicate={replicate}/{kind}"
        teacher = {name: exported[f"teacher/replicate={replicate}/{name}"][0] for name in ("w1", "b1", "w2")}

        def loss(params, teacher=teacher, depth=depth):
            layers = [{name: array[k] for name, array in params.items()} for k in range(depth)]
            return jnp.mean((plain_net(layers, x) - plain_net([teacher] * 4, x)) ** 2)

        params = {name: jnp.asarray(exported[f"{prefix}/{name}"]) for name in ("b1", "w1", "w2")}
        value, gradient = jax.jit(jax.value_and_grad(loss))(params)
        expected = np.concatenate([np.asarray(gradient[name]).ravel() for name in field.names])
        assert field.labels["gradient_loss"] == pytest.approx(float(value), rel=1e-5)
        assert field.values is not None
        np.testing.assert_allclose(field.values, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())
        assert len(field.values) == count_parameters(4, depth)
        if stream == "test":
            assert field.labels["evaluation_step"] == 20 and field.labels["weights"] == "average"


class Killed(BaseException):
    """The process ends without a word, right after a checkpoint."""


def test_a_run_that_goes_on_writes_the_same_files(train, record, tmp_path, monkeypatch):
    monkeypatch.setattr("toydepth.bank.loop._FIRST_CHUNK", 3)
    monkeypatch.setattr("toydepth.bank.loop.CHUNK_SECONDS", 1e-9)
    words = (*JOB, "eval.points=3", "checkpoint.every_seconds=1e-9")
    assert train(*words, run="unbroken")[0] == 0
    whole = snapshots(tmp_path / "unbroken")
    assert list(whole) == [f"step={step:08d}.npz" for step in (1, 3, 7, 20)]

    saved = Checkpoints.save

    def save(self, step, state, story):
        if step == 7:  # the snapshot of step 7 is written, the checkpoint that would have it behind it is not
            raise Killed
        saved(self, step, state, story)

    monkeypatch.setattr(Checkpoints, "save", save)
    with pytest.raises(Killed):
        train(*words)
    folder = tmp_path / "run"
    assert [entry["step"] for entry in record(folder)["gradients"]] == [1, 3]
    assert list(snapshots(folder)) == list(whole)[:3]
    monkeypatch.setattr(Checkpoints, "save", saved)

    # One that was lost is not passed over in silence; nor is another setting.
    lost = folder / "gradients" / "step=00000003.npz"
    content = lost.read_bytes()
    lost.unlink()
    code, _, err = train(*words)
    assert code == 2 and err.count("\n") == 1 and f"must hold gradients/{lost.name} to go on from step" in err
    lost.write_bytes(content)
    code, _, err = train(*words, "gradients.points=5")
    assert code == 2 and "gradients must be those of the run in" in err

    assert train(*words)[0] == 0
    assert snapshots(folder) == whole
    assert record(folder)["gradients"] == record(tmp_path / "unbroken")["gradients"]
    assert len(record(folder)["segments"]) >= 2


def test_a_finished_run_is_not_read_as_one_with_other_snapshots(train, record, tmp_path, capsys):
    words = ("steps=3", "student.depths=1")
    assert train(*words)[0] == 0
    folder = tmp_path / "run"
    assert record(folder)["gradients"] == [] and not (folder / "gradients").exists()
    code, _, err = train(*words, "gradients.points=2")
    assert code == 2 and err.count("\n") == 1 and "got points=2, stream=train, weights=raw. They are taken while" in err
    # Where none are wanted, a record from before there were any is read, and exported.
    content = json.loads((folder / "record.json").read_text())
    del content["config"]["gradients"], content["gradients"]
    (folder / "record.json").write_text(json.dumps(content))
    assert train(*words, "gradients.stream=test")[0] == 0
    assert export_weights(folder, tmp_path / "weights.npz")["step"] == 3
