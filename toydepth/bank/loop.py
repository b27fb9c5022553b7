"""The training loop: chunks between evaluations, checkpoints by the clock, and an end that loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from toydepth.bank.bank import Bank, State
from toydepth.bank.checkpoint import Checkpoints
from toydepth.bank.gradients import Gradients, Snapshot, snapshot_steps
from toydepth.bank.story import Story, evaluation_steps
from toydepth.interrupt import Interrupt

# A chunk is as many steps as take about this long: the host is asked rarely, and a signal is answered soon.
CHUNK_SECONDS = 1.0
_FIRST_CHUNK = 8


@dataclass
class Outcome:
    """How training ended.

    status: complete | diverged (every arm) | interrupted (by `signal`); step: updates done; from_step: where this
    process began; seconds: of training and evaluation in this process, compilation included; steps_per_second: after
    the first chunk, which compiles, evaluations included; snapshot_seconds: of taking and handing out gradients, which
    the speed leaves out.
    """

    status: str
    step: int
    from_step: int
    seconds: float
    signal: int | None
    story: Story
    state: State
    steps_per_second: float | None = None
    snapshot_seconds: float = 0.0


def train(
    bank: Bank,
    checkpoints: Checkpoints | None = None,
    *,
    resume: bool = True,
    on_start: Callable[[int], None] = lambda step: None,
    on_evaluation: Callable[[Story], None] = lambda story: None,
    on_chunk: Callable[[int, np.ndarray], None] = lambda step, losses: None,
    on_checkpoint: Callable[[int, int], None] = lambda first, step: None,
    on_gradients: Callable[[Snapshot, Story], None] | None = None,
) -> Outcome:
    """Trains all arms of a bank to the last step, from the last whole checkpoint where there is one.

    How the steps are cut into chunks changes no bit of the result: the batch of a step depends on the step alone, and
    sums over an evaluation window go on from chunk to chunk.

    Args:
        bank: from `make_bank`; its state is used up.
        checkpoints: where to save and look; None for neither.
        resume: whether to look.
        on_start: called once, with the step where this process begins.
        on_evaluation: called after every evaluation of this process.
        on_chunk: called after every chunk with the step and the running mean training loss of each arm, (arms,).
        on_checkpoint: called after every checkpoint but the last, with the step where this process began and the step.
        on_gradients: called with every snapshot that config.gradients asks for, after the evaluation at its step and
            before the checkpoint: what a checkpoint has behind it has been handed out. None: no snapshots are taken.
    """
    started = time.monotonic()
    story, state = Story(bank.config, bank.arms), bank.state
    if checkpoints is not None and resume and (saved := checkpoints.restore(state)):
        story.load(saved[1])
        state = bank.place(saved[0])
    first = int(state["step"])
    on_start(first)
    evaluations = {s for s in evaluation_steps(bank.config.steps, bank.config.eval.points) if s > story.last_step}
    snapshots = {s for s in snapshot_steps(bank.config) if s > first} if on_gradients else set()
    gradients = Gradients(bank) if snapshots else None
    saved_at, size, signal = time.monotonic(), _FIRST_CHUNK, None
    step, status = first, "complete"
    warm: tuple[float, int] | None = None
    aside = 0.0

    def save_if_due() -> None:
        nonlocal saved_at
        every = bank.config.checkpoint.every_seconds
        if checkpoints and every and time.monotonic() - saved_at > every:
            checkpoints.save(step, state, story.to_json())
            on_checkpoint(first, step)
            saved_at = time.monotonic()

    with Interrupt() as interrupt:
        for stop in sorted(evaluations | snapshots):
            while step < stop and not interrupt.signal:
                begun, before = time.monotonic(), step
                step = min(stop, step + size)
                state = jax.block_until_ready(bank.advance(state, step))
                size = _next_size(size, step - before, time.monotonic() - begun)
                warm = warm or (time.monotonic(), step)
                on_chunk(step, _window_loss(bank, state))
                if not bank.by_arm(state, "alive").any():
                    break
                if step < stop:  # else evaluation and snapshot come first, so that the checkpoint has them behind it
                    save_if_due()
            if (step == stop and step in evaluations) or not bank.by_arm(state, "alive").any():
                state = _evaluate(bank, state, story, step)
                on_evaluation(story)
            alive = bank.by_arm(state, "alive").any()
            # Of dead arms too: each step up to that of a checkpoint has its snapshot, and it says who has diverged.
            if gradients and on_gradients and step == stop and step in snapshots:
                begun = time.monotonic()
                on_gradients(gradients.take(state), story)
                aside += time.monotonic() - begun
            if step == stop < bank.config.steps and alive:
                save_if_due()
            if not alive:
                status = "diverged"
                break
            if interrupt.signal:
                if step < bank.config.steps:
                    status, signal = "interrupted", interrupt.signal
                break
    if checkpoints and (step > first or not checkpoints.folder.is_dir()):
        checkpoints.save(step, state, story.to_json())
    ended = time.monotonic()
    speed = (step - warm[1]) / (ended - warm[0] - aside) if warm and step > warm[1] else None
    return Outcome(status, step, first, ended - started, signal, story, state, speed, aside)


def _evaluate(bank: Bank, state: State, story: Story, step: int) -> State:
    for index in np.nonzero(~bank.by_arm(state, "alive"))[0]:
        bad = int(bank.by_arm(state, "first_bad")[index])
        where = {"last_finite_step": bad - 1, "first_non_finite_step": bad}
        story.diverged.setdefault(int(index), where)
    test = bank.evaluate(state)
    wild = ~np.all([np.isfinite(v) for k, v in test.items() if k.startswith("test_loss")], axis=0)
    wild &= bank.by_arm(state, "alive")
    if wild.any():
        for index in np.nonzero(wild)[0]:
            interval = {"last_finite_step": story.last_step, "first_non_finite_step": step}
            story.diverged.setdefault(int(index), interval)
        state = bank.bury(state, wild, step)
    story.add(step, _window_loss(bank, state), test)
    return bank.reset_window(state)


def _window_loss(bank: Bank, state: State) -> np.ndarray:
    """Mean training loss since the last evaluation, (arms,); NaN before the first update, and of a dead arm."""
    count = int(state["count"])
    mean = bank.by_arm(state, "loss_sum").astype(float) / max(count, 1)
    return np.where(bank.by_arm(state, "alive") & (count > 0), mean, np.nan)


def _next_size(size: int, done: int, seconds: float) -> int:
    """Grows or shrinks the chunk towards CHUNK_SECONDS; the first is slow to compile, and must not shrink it to 1."""
    wanted = done * CHUNK_SECONDS / max(seconds, 1e-3)
    return int(min(max(wanted, _FIRST_CHUNK, size / 4), size * 4))
