"""tau, the sum of learning rates over the updates of a run: from logged rates, or from a schedule."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from toydepth.errors import did_you_mean
from toydepth.fit.checks import number_name, refuse
from toydepth.fit.law.table.arguments import broadcast, check_all

SCHEDULES = ("constant", "linear", "cosine", "wsd")

_LATE = 1.5


def tau_from_rates(steps: ArrayLike, rates: ArrayLike, runs: ArrayLike | None = None) -> np.ndarray:
    """Returns tau = sum over s = 1 ... step of eta_s, from learning rates logged at some steps of each run.

    The rate logged at step s is that of update s. Between two logged steps a < b it lies on a line: the updates
    a + 1 ... b add (b - a) (eta_a + eta_b) / 2 + (eta_b - eta_a) / 2, the trapezoid and what a sum has more than an
    integral. With every step logged, tau is the plain sum. Our choice: before the first logged step the rate is that
    of the first logged one; a log that begins later than 1.5 of its gaps is refused, since a warmup would be lost.

    Args:
        steps: (n,) whole numbers, 0 or more, in any order.
        rates: (n,) learning rates, 0 or more.
        runs: (n,) names of the runs, numbers or text; None: one run.

    Returns: (n,) tau, in the order given.

    Raises: InputError for a step or rate that is missing or out of range, a step that a run has twice, or a log that
        begins late.

    >>> tau_from_rates([2, 4, 1, 2], [0.2, 0.4, 0.1, 0.1], ["a", "a", "b", "b"])
    array([0.4, 1.1, 0.1, 0.2])
    """
    given = broadcast(steps=steps, rates=rates)
    step, rate = np.atleast_1d(given["steps"]), np.atleast_1d(given["rates"])
    if step.ndim != 1:
        raise refuse("steps", "a list of numbers", f"shape {step.shape}", "Give one step and one rate for each row.")
    if not step.size:
        return np.empty(0)
    _check_steps(step)
    check_all("rates", rate, np.isfinite(rate) & (rate >= 0), "finite and 0 or more", "Leave such rows out.")
    codes, names = _runs(runs, len(step))
    order = np.lexsort((step, codes))
    codes, step, rate = codes[order], step[order], rate[order]
    first = np.r_[True, codes[1:] != codes[:-1]]
    ahead = np.r_[0.0, np.diff(step)]
    twice = np.flatnonzero(~first & (ahead == 0))
    if twice.size:
        run = "" if runs is None else f"run {names[codes[twice[0]]]!r}, "
        got = f"{run}step {number_name(float(step[twice[0]]))} twice"
        raise refuse("steps", "distinct in each run", got, "Leave one of them out, or name the runs apart.")
    _check_begins(step, first, codes, names, runs is not None)
    before = np.r_[0.0, rate[:-1]]
    added = np.where(first, step * rate, ahead * (before + rate) / 2 + (rate - before) / 2)
    tau = np.empty_like(step)
    # A sum for each run: a difference of sums over all of them would lose digits.
    starts = np.flatnonzero(first)
    for start, end in zip(starts, [*starts[1:], len(step)], strict=True):
        tau[order[start:end]] = np.cumsum(added[start:end])
    return tau


def _check_begins(step: np.ndarray, first: np.ndarray, codes: np.ndarray, names: list[Any], named: bool) -> None:
    """Raises InputError for a run whose log begins late: what its rate was before, a warmup perhaps, nobody knows."""
    starts = np.flatnonzero(first)
    gaps = np.r_[np.diff(step), 1.0][starts]
    alone = np.r_[first[1:], True][starts]
    late = starts[step[starts] > _LATE * np.where(alone, 1.0, gaps)]
    if late.size:
        run = f" of run {names[codes[late[0]]]!r}" if named else ""
        advice = "Earlier rates are not known: add them, or give the schedule (tau_from_schedule, --tau-schedule)."
        got = (
            f"{number_name(float(step[late[0]]))}, followed by gaps of {number_name(float(gaps[starts == late[0]][0]))}"
        )
        raise refuse(f"the first logged step{run}", f"at most {_LATE:g} of the gaps that follow", got, advice)


def tau_from_schedule(
    steps: ArrayLike,
    *,
    peak: ArrayLike,
    total_steps: ArrayLike,
    kind: str = "cosine",
    warmup_steps: ArrayLike = 0,
    final_fraction: ArrayLike = 0.0,
    decay_fraction: ArrayLike | None = None,
) -> np.ndarray:
    """Returns tau = sum over s = 1 ... step of eta_s, exactly, for a schedule of the learning rate over T updates.

    With W of warmup: eta_s = peak s / W for s <= W; then eta_s = peak (f + (1 - f) g(x)), f the final fraction, which
    the last update has, and

        constant    g = 1, whatever f
        linear      g = 1 - x,                x = (s - W) / (T - W)
        cosine      g = (1 + cos(pi x)) / 2,  x = (s - W) / (T - W)
        wsd         g = 1 - x,                x = (s - T + C) / C, or 0 before; C = decay_fraction T

    Args:
        steps: whole numbers in 0 ... T.
        peak: the highest learning rate, 0 or more; with peak 1, tau is in units of the peak.
        total_steps: T. warmup_steps: W, at most T (wsd: T - C). Whole numbers.
        kind: "constant", "linear", "cosine" or "wsd".
        final_fraction: f, in [0, 1].
        decay_fraction: in (0, 1], for wsd only.
        All but kind may be arrays that broadcast with steps, such as (n,): each row its own run.

    Returns: tau, of the shape that the arguments broadcast to.

    Raises: InputError for an unknown kind, or a number out of range.

    >>> tau_from_schedule([0, 1, 2, 4], peak=1.0, total_steps=4, kind="linear")
    array([0.  , 0.75, 1.25, 1.5 ])
    """
    if not isinstance(kind, str) or kind not in SCHEDULES:
        raise refuse(
            "kind", f"one of {', '.join(SCHEDULES)}", repr(kind), f"Choose one.{did_you_mean(str(kind), SCHEDULES)}"
        )
    if (kind == "wsd") != (decay_fraction is not None):
        got = "None with wsd" if kind == "wsd" else f"{reprlib.repr(decay_fraction)} with {kind}"
        raise refuse("decay_fraction", "given for wsd, and for no other kind", got, "Give such as 0.2 with wsd.")
    given = broadcast(
        steps=steps,
        peak=peak,
        total_steps=total_steps,
        warmup_steps=warmup_steps,
        final_fraction=final_fraction,
        decay_fraction=1.0 if decay_fraction is None else decay_fraction,
    )
    step, peaks, total, warmup, final, decay = given.values()
    _check_steps(step)
    _check_steps(total, "total_steps")
    _check_steps(warmup, "warmup_steps")
    check_all("steps", step, step <= total, "at most total_steps", "The schedule says nothing of later updates.")
    check_all("peak", peaks, np.isfinite(peaks) & (peaks >= 0), "finite and 0 or more", "Give the highest rate.")
    check_all("final_fraction", final, (final >= 0) & (final <= 1), "between 0 and 1", "Give 0.1 for a tenth.")
    check_all("decay_fraction", decay, (decay > 0) & (decay <= 1), "in (0, 1]", "Give 0.2 for the last fifth.")
    length = total * decay if kind == "wsd" else total - warmup
    room = warmup <= total - length if kind == "wsd" else warmup <= total
    limit = "at most total_steps" + (" (1 - decay_fraction)" if kind == "wsd" else "")
    check_all("warmup_steps", warmup, room, limit, "Shorten it.")

    risen = np.minimum(step, warmup)
    rising = np.divide(risen * (risen + 1), 2 * warmup, out=np.zeros_like(step), where=warmup > 0)
    later = step - risen  # updates after the warmup
    if kind == "constant":
        return peaks * (rising + later)
    if kind == "cosine":
        shape = (later + _cosines(later, length)) / 2
    else:
        start = total - length  # a whole number but for wsd
        falling = np.maximum(step - np.floor(start), 0.0)
        # 1 - (s - start) / length, summed over s = floor(start) + 1 ... step.
        sum_ahead = falling * (falling + 1) / 2 - falling * (start - np.floor(start))
        shape = later - np.divide(sum_ahead, length, out=np.zeros_like(step), where=length > 0)
    return peaks * (rising + final * later + (1 - final) * shape)


def _cosines(count: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Returns the sum over j = 1 ... count of cos(pi j / length), in closed form."""
    half = np.pi / (2 * np.maximum(length, 1.0))
    return np.sin(count * half) * np.cos((count + 1) * half) / np.sin(half)


def _check_steps(steps: np.ndarray, name: str = "steps") -> None:
    good = np.isfinite(steps) & (steps >= 0) & (steps == np.floor(steps))
    check_all(name, steps, good, "whole numbers, 0 or more", "Correct or remove it.")


def _runs(runs: ArrayLike | None, count: int) -> tuple[np.ndarray, list[Any]]:
    """Returns the run of each row as a place in a list of names; raises InputError."""
    if runs is None:
        return np.zeros(count, dtype=np.int64), [None]
    labels = (
        runs if isinstance(runs, pd.Series | pd.Index) else pd.Series(list(np.atleast_1d(np.asarray(runs, object))))
    )
    if len(labels) != count:
        raise refuse("runs", "one name for each step", f"{len(labels)} for {count} steps", "Give one for each row.")
    try:
        codes, names = pd.factorize(labels)
    except TypeError:
        raise refuse("runs", "numbers or text", "lists or the like", "Give one name for each row.") from None
    missing = np.flatnonzero(codes < 0)
    if missing.size:
        raise refuse("runs", "a name for each step", f"none (number {missing[0] + 1})", "Name it, or remove the row.")
    return codes, [name.item() if isinstance(name, np.generic) else name for name in names]
