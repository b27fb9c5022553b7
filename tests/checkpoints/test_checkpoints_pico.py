"""Folders as pico-train writes them: learning dynamics, logs, evaluations."""

import numpy as np
import pytest

from toydepth.checkpoints import Selection, pico_curves, pico_fields
from toydepth.errors import InputError

LAYERS = ("attention.v_proj", "attention.o_proj", "swiglu.w_2")


def write_step(folder, step, width=4, splits=("train", "val"), kinds=("gradients", "weights", "activations")):
    torch = pytest.importorskip("torch", reason="the extra llm is not installed")
    at = folder / f"step_{step}" / "learning_dynamics"
    at.mkdir(parents=True)
    for number, split in enumerate(splits):
        for kind in kinds:
            tensors = {
                f"layers.{layer}.{name}": torch.full((2, width), step + layer + number, dtype=torch.bfloat16)
                for layer in (0, 1, 10)
                for name in LAYERS
            }
            torch.save(tensors, at / f"{split}_{kind}.pt")
    (at / "train_data").mkdir()


@pytest.fixture
def run(tmp_path):
    """Writes a run with its steps; returns its folder."""

    def write(name, steps=(0, 100), width=4, inside="checkpoints", **options):
        for step in steps:
            write_step(tmp_path / name / inside, step, width, **options)
        return tmp_path / name

    return write


def test_runs_of_several_sizes(run):
    tiny, small = run("tiny"), run("small", (0, 100, 200), 6)
    (tiny / "checkpoints" / "latest").symlink_to("step_100", target_is_directory=True)
    table = pico_fields([tiny, small])
    assert (table.size_labels, table.steps) == (("tiny", "small"), (0, 100))
    assert table.left_out == ("tiny has no step 200",)
    one, other = table.fields(100)
    # Layer 10 comes last; within a layer, names in order.
    assert one.names[:3] == tuple(f"layers.0.{name}" for name in sorted(LAYERS)) and "layers.10" in one.names[-1]
    np.testing.assert_array_equal(one.values, np.repeat([101, 102, 111], 3 * 8).astype(np.float32))
    assert (len(other.values), other.size_label, other.step, other.step_before) == (108, "small", 100, None)
    (trained, _) = pico_fields([tiny, small], split="train").fields(100)
    assert trained.values[0] == 100


def test_splits_kinds_and_layers(run):
    tiny = run("tiny", (0,))
    (field,) = pico_fields([tiny], Selection(("*.v_proj",)), kind="weights").fields(0)
    assert len(field.names) == 3 and {one.reason for one in field.skipped} == {"not selected"}
    assert field.source.name == "val_weights.pt"
    with pytest.raises(InputError, match="split must be one of val, train, got test"):
        pico_fields([tiny], split="test")  # pyright: ignore
    with pytest.raises(InputError, match="kind must be one of gradients, weights, activations, got losses"):
        pico_fields([tiny], kind="losses")  # pyright: ignore


def test_the_last_step_has_val_only(run):
    tiny = run("tiny")
    write_step(tiny / "checkpoints", 150, splits=("val",))
    table = pico_fields([tiny], split="train")
    assert (table.steps, table.left_out) == ((0, 100), ("tiny has no train_gradients.pt at step 150",))
    assert pico_fields([tiny]).steps == (0, 100, 150)


def test_other_places_of_the_same_files(run, tmp_path):
    tiny = run("tiny")
    assert pico_fields([tiny / "checkpoints"]).steps == (0, 100)
    assert pico_fields([run("plain", inside="")]).steps == (0, 100)
    flat = tmp_path / "flat"
    flat.mkdir()
    for step in (0, 100):
        (tiny / "checkpoints" / f"step_{step}" / "learning_dynamics").rename(flat / f"step_{step}")
    assert pico_fields([flat]).steps == (0, 100)


def test_a_single_snapshot_of_the_hub(run):
    """One commit holds one step, and does not say which."""
    at = run("tiny", (100,)) / "checkpoints" / "step_100"
    other = run("small", (100,), 5) / "checkpoints" / "step_100"
    homes = [at.rename(at.parents[1] / "tiny-snapshot"), other.rename(other.parents[1] / "small-snapshot")]
    table = pico_fields(homes)
    assert (table.steps, table.size_labels) == ((None,), ("tiny-snapshot", "small-snapshot"))
    assert [len(field.values) for field in table.fields(None)] == [72, 90]
    with pytest.raises(InputError, match=r"must all tell their steps, got none in tiny-snapshot"):
        pico_fields([homes[0], run("mid", (100,))])
    assert pico_fields([homes[0].rename(homes[0].parent / "step_7")]).steps == (7,)


def test_no_such_files(run, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"must hold learning_dynamics/val_gradients.pt, .* got none"):
        pico_fields([tmp_path / "empty"])
    tiny = run("tiny", splits=("val",), kinds=("weights",))
    with pytest.raises(InputError, match=r"train_gradients.pt, at steps named step_N, got only val_weights.pt"):
        pico_fields([tiny], split="train")
    with pytest.raises(InputError, match=r"got 7, which tiny lacks"):
        pico_fields([tiny], kind="weights", steps=(7,))


LOG = """\
2025-01-01 00:00:00 - pico-train - INFO - ├── Loss: 99.0
2025-01-01 00:00:00 - pico-train - INFO - Step 0 -- 🔄 Training Metrics
2025-01-01 00:00:00 - pico-train - INFO - ├── Loss: 10.9000
2025-01-01 00:00:00 - pico-train - INFO - ├── Learning Rate: 0.00e+00
2025-01-01 00:00:00 - pico-train - INFO - └── Inf/NaN count: 0
2025-01-01 00:00:01 - pico-train - INFO - Step 100 -- 🔄 Training Metrics
2025-01-01 00:00:01 - pico-train - INFO - ├── Loss: 7.2500
2025-01-01 00:00:01 - pico-train - INFO - ├── Learning Rate: 1.20e-05
2025-01-01 00:00:02 - pico-train - INFO - Step 100 -- 📊 Evaluation Results
2025-01-01 00:00:02 - pico-train - INFO - └── Loss: 55
"""


def test_curves(tmp_path):
    assert pico_curves(tmp_path) is None
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "log_20250101_000000.log").write_text(LOG, encoding="utf-8")
    resumed = LOG.replace("7.2500", "7.1000").replace("Step 0 ", "Step 50 ")
    (tmp_path / "logs" / "log_20250102_000000.log").write_text(resumed, encoding="utf-8")
    (tmp_path / "eval_results").mkdir()
    (tmp_path / "eval_results" / "step_100.json").write_text('{"paloma": 120.5, "note": "x"}')
    table = pico_curves(tmp_path / "checkpoints")
    assert table is not None
    assert table["step"].tolist() == [0, 50, 100]
    assert table["train_loss"].tolist() == [10.9, 10.9, 7.1]
    assert table["learning_rate"].tolist() == [0.0, 0.0, 1.2e-5]
    assert table["paloma"].isna().tolist() == [True, True, False] and table["paloma"].iloc[2] == 120.5
    (tmp_path / "eval_results" / "step_100.json").write_text("[1]")
    with pytest.raises(InputError, match=r"step_100.json must be a JSON object of metrics"):
        pico_curves(tmp_path)
