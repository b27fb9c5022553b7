"""Training a small bank: seeds, chunks, checkpoints and arms that diverge."""

import os
import signal

import jax
import numpy as np
import pytest

from toydepth.bank import make_bank, prepare_devices, train
from toydepth.bank.checkpoint import Checkpoints
from toydepth.bank.story import evaluation_steps
from toydepth.config import AverageConfig, StudentConfig, TeacherConfig, config_hash
from toydepth.errors import InputError

STEPS = 80  # the learning rate decays from step 24 on
SETTINGS = {
    "steps": STEPS,
    "points": 6,
    "student": StudentConfig(depths=2, init=("zero", "euler")),
    "average": AverageConfig(0.9),
    "replicates": 2,
}


@pytest.fixture(scope="module")
def config(tiny):
    return tiny(**SETTINGS)


@pytest.fixture(scope="module")
def kept(config):
    """The bank, and its state at the start in host memory."""
    bank = make_bank(config, prepare_devices(config))
    return bank, jax.device_get(bank.state)


@pytest.fixture
def bank(kept):
    """The bank as it was made; its programs are compiled once."""
    bank, start = kept
    bank.state = bank.place(start)
    return bank


@pytest.fixture(scope="module")
def unbroken(kept):
    bank, start = kept
    bank.state = bank.place(start)
    outcome = train(bank)
    return outcome.story.series, jax.device_get(outcome.state)


@pytest.fixture
def short_chunks(monkeypatch):
    monkeypatch.setattr("toydepth.bank.loop.CHUNK_SECONDS", 1e-9)


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_losses_fall_and_evaluations_are_where_they_should_be(config, unbroken):
    series, state = unbroken
    assert series["step"] == evaluation_steps(STEPS, 6) and int(state["step"]) == STEPS
    assert series["samples"] == [16 * step for step in series["step"]]
    assert np.isnan(series["train_loss"][0]).all() and np.isfinite(series["train_loss"][1:]).all()
    first, last = series["test_loss"][0], series["test_loss"][-1]
    assert last[0] < first[0] / 2 and last[2] < first[2] / 2


def test_a_new_bank_of_the_same_seed_is_equal_to_the_last_bit(config, unbroken):
    again = train(make_bank(config, prepare_devices(config)))
    assert_same(again.story.series, unbroken[0])
    assert_same(jax.device_get(again.state), unbroken[1])


def test_chunks_change_no_bit_and_are_traced_once(bank, unbroken, short_chunks):
    chunks = []
    outcome = train(bank, on_chunk=lambda step, losses: chunks.append(step))
    assert outcome.status == "complete" and len(chunks) > 10
    assert bank.num_traces == 1
    assert_same(outcome.story.series, unbroken[0])
    assert_same(jax.device_get(outcome.state), unbroken[1])


def test_another_seed_changes_everything_and_the_teachers_own_only_the_teacher(tiny, kept):
    bank, start = kept
    reseeded = tiny(**SETTINGS | {"seed": 1})
    other = make_bank(reseeded, prepare_devices(reseeded))
    for a, b in ((bank.teachers, other.teachers), (bank.test_inputs, other.test_inputs)):
        assert not np.array_equal(jax.tree.leaves(a)[0], jax.tree.leaves(b)[0])
    assert not np.array_equal(student(start)["w1"], student(other.state)["w1"])
    assert (jax.random.key_data(bank.problem.data_key) != jax.random.key_data(other.problem.data_key)).any()

    retaught = tiny(**SETTINGS | {"teacher": TeacherConfig(depth=3, seed=1)})
    taught = make_bank(retaught, prepare_devices(retaught))
    assert_same(taught.teachers, other.teachers)
    np.testing.assert_array_equal(taught.test_inputs, bank.test_inputs)
    assert_same(zeros(student(taught.state)), zeros(student(start)))
    np.testing.assert_array_equal(
        jax.random.key_data(bank.problem.data_key), jax.random.key_data(taught.problem.data_key)
    )


def student(state):
    return jax.device_get(state["depths"]["2"]["params"]["stack"]["block"]["mlp"])


def zeros(mlp):
    """The arms of init zero, every other one."""
    return jax.tree.map(lambda leaf: leaf[::2], mlp)


def test_replicates_differ_in_teacher_and_student_draws(kept):
    bank, start = kept
    for tree in (jax.device_get(bank.teachers), zeros(student(start))):
        leaf = jax.tree.leaves(tree)[-2]
        assert not np.array_equal(leaf[0], leaf[1])


def interrupt_at(step):
    sent = []

    def on_chunk(now, losses):
        if now >= step and not sent:
            sent.append(now)
            os.kill(os.getpid(), signal.SIGTERM)

    return on_chunk


def test_resuming_inside_the_decay_changes_no_bit(bank, config, unbroken, short_chunks, tmp_path):
    series, state = unbroken
    folder, digest = tmp_path / "checkpoints", config_hash(config)
    before = signal.getsignal(signal.SIGTERM)
    cut = train(bank, Checkpoints(folder, digest), on_chunk=interrupt_at(48))
    assert cut.status == "interrupted" and cut.signal == signal.SIGTERM and 48 <= cut.step < STEPS
    assert cut.step not in series["step"], "the cut must lie inside a window"
    assert signal.getsignal(signal.SIGTERM) is before

    # What a kill in the middle of a later save leaves behind is passed over.
    half = folder / f"{cut.step + 8}.orbax-checkpoint-tmp-1" / "state.orbax-checkpoint-tmp-1"
    half.mkdir(parents=True)
    (half / "_METADATA").write_text('{"tree')

    started, evaluated = [], []
    resumed = train(
        make_bank(config, prepare_devices(config)),
        Checkpoints(folder, digest),
        on_start=started.append,
        on_evaluation=lambda story: evaluated.append(story.last_step),
    )
    assert started == [cut.step] and resumed.from_step == cut.step and evaluated == [STEPS]
    assert resumed.status == "complete"
    assert_same(resumed.story.series, series)
    assert_same(jax.device_get(resumed.state), state)

    with pytest.raises(InputError, match="another"):
        Checkpoints(folder, "0123456789ab").restore(bank.place(unbroken[1]))


def test_no_checkpoint_is_read_where_none_is_wanted(bank, config, unbroken, tmp_path):
    assert Checkpoints(tmp_path / "none", "x").restore(bank.state) is None
    checkpoints = Checkpoints(tmp_path / "some", config_hash(config))
    checkpoints.save(STEPS, bank.place(unbroken[1]), {"series": unbroken[0], "diverged": {}})
    started = []
    outcome = train(bank, checkpoints, resume=False, on_start=started.append)
    assert started == [0]
    assert_same(outcome.story.series, unbroken[0])


def poison(bank, arm, value, name="w1"):
    """The bank's state with the weights of one arm's first layer set to `value`."""
    state = jax.device_get(bank.state)
    leaf = np.array(state["depths"]["2"]["params"]["stack"]["block"]["mlp"][name])
    leaf[arm, 0] = value
    state["depths"]["2"]["params"]["stack"]["block"]["mlp"][name] = leaf
    return bank.place(state)


def others(series, arm):
    return {
        name: [np.delete(row, arm) if isinstance(row, list) else row for row in rows] for name, rows in series.items()
    }


def test_an_arm_that_diverges_stops_alone(bank, unbroken):
    series, _ = unbroken
    middle = series["step"][3]
    bank.state = bank.advance(bank.state, middle - 1)
    arm = 2  # depth 2, replicate 1, init zero
    bank.state = poison(bank, arm, 1e25)  # finite, but its loss or gradient is not
    poisoned = student(bank.state)
    outcome = train(bank)
    assert outcome.status == "complete"
    assert outcome.story.diverged == {arm: {"last_finite_step": middle - 1, "first_non_finite_step": middle}}
    after = outcome.story.series
    for name in ("test_loss", "test_loss/0.9", "standard_error", "train_loss"):
        assert np.isnan([row[arm] for row in after[name]]).all()
    kept = student(outcome.state)
    for name, leaf in kept.items():
        assert np.isfinite(leaf).all()
        np.testing.assert_array_equal(leaf[arm], poisoned[name][arm])
    full = others(series, arm)
    # The run began late: from its second evaluation on, its rows are those of the unbroken run.
    mine = others(after, arm)
    for name in ("step", "test_loss", "test_loss/0.9", "standard_error", "tau", "learning_rate"):
        assert_same(mine[name][1:], full[name][-len(mine[name]) + 1 :])


def test_an_arm_with_a_nan_is_buried_at_the_first_evaluation(bank, unbroken):
    bank.state = poison(bank, 1, np.nan)
    outcome = train(bank)
    assert outcome.story.diverged == {1: {"last_finite_step": -1, "first_non_finite_step": 0}}
    assert_same(others(outcome.story.series, 1), others(unbroken[0], 1))
    assert np.isnan([row[1] for row in outcome.story.series["test_loss"]]).all()


def test_a_bank_of_which_every_arm_diverged_ends(bank):
    bank.state = bank.place(jax.tree.map(lambda leaf: leaf * np.nan if leaf.dtype == np.float32 else leaf, bank.state))
    outcome = train(bank)
    assert outcome.status == "diverged" and outcome.step < STEPS
    assert sorted(outcome.story.diverged) == [0, 1, 2, 3]
