"""Depth exponents of whole runs: alpha at the end, or at every evaluation, of every group of arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.fit.checks import check_fit_options, number_name, plain, whole
from toydepth.fit.depth.depth_fit import DepthFit
from toydepth.fit.depth.drift import Drift, fit_drift
from toydepth.fit.depth.exponent import fit_depth_exponent
from toydepth.fit.depth.grouping import Group, split_groups
from toydepth.fit.depth.points import MIN_DEPTHS
from toydepth.fit.depth.table import DepthExponent, FitTable


def fit_curves(
    curves: pd.DataFrame,
    *,
    weights: Sequence[str] = ("raw", "average"),
    all_steps: bool = False,
    floor: bool = False,
    offset: float = 0.0,
    window: tuple[float, float] | None = None,
    noise_factor: float = 10.0,
    confidence: float = 0.95,
    num_bootstrap: int = 2000,
    seed: int = 0,
) -> FitTable:
    """Fits L = c (ell - offset)^-alpha for every group of arms in the curves of one or many runs.

    A group is everything but depth and replicate: (experiment, teacher, rho, init, block, loss, temperature, head,
    width, teacher_depth, recipe), and the decay for averaged weights; NaN is a value. Replicates are (teacher_seed,
    replicate) pairs. A step is fitted where at least 3 depths were evaluated at it, so one bank and one job a depth
    give the same exponent.

    Args:
        curves: a row an arm and evaluation, with the group's columns and teacher_seed, replicate, depth, step,
            test_loss, test_loss_average, average_decay (both NaN where averaging is off), noise_floor, diverged (its
            arm is kept out at every step). Other columns are ignored. A loss <= 0 counts as noise.
        weights: which losses: 'raw' (test_loss), 'average' (test_loss_average), or both.
        all_steps: a row for every step that can be fitted, not only for the last.
        floor, offset, window, noise_factor, confidence, num_bootstrap, seed: as in `fit_depth_exponent`.

    Returns:
        FitTable: rows, and what was refused and why. Each row's drift is that of the trajectory up to its step.

    Raises:
        InputError: for missing columns, one arm and step with two losses, options out of range, or where no group at
            all can be fitted.

    Example:
        >>> labels = dict(experiment="demo", teacher="tied", rho=float("nan"), init="zero", block="euler", loss="mse",
        ...               temperature=float("nan"), head="none", width=8, teacher_depth=64, recipe="a", teacher_seed=0,
        ...               replicate=0, test_loss_average=float("nan"), average_decay=float("nan"), noise_floor=0.0,
        ...               diverged=False)
        >>> rows = [dict(labels, depth=ell, step=100, test_loss=ell**-2.0) for ell in (3, 6, 12)]
        >>> table = fit_curves(pd.DataFrame(rows))
        >>> [(row.weights, row.step, round(row.alpha, 6), row.verdict) for row in table.rows]
        [('raw', 100, 2.0, 'unknown')]

    Source: docs/notation.md, "Depth exponent".
    """
    options: dict[str, Any] = {"offset": offset, "window": window, "noise_factor": noise_factor}
    options |= {"confidence": confidence, "num_bootstrap": num_bootstrap, "seed": seed}
    check_fit_options(**options)
    options["floor"] = floor
    trajectories, refused = [], []
    for group in split_groups(curves, weights):
        rows, refusals = _fit_group(group, options)
        if rows:
            trajectories.append(rows)
        # Without all_steps nobody asked about earlier steps; a refused end is said, as the row then is not the end.
        final = refusals[-1:] if refusals and (not rows or refusals[-1]["step"] > rows[-1].step) else []
        refused += refusals if all_steps and rows else final
    if not trajectories:
        others = len(refused) - 1
        more = f" ({others} more group{'s' * (others > 1)} cannot be fitted either.)" if others else ""
        raise InputError(f"{refused[0]['reason']}{more}")
    rows = [row for rows in trajectories for row in (rows if all_steps else rows[-1:])]
    return FitTable(rows, refused, trajectories)


def _fit_group(group: Group, options: dict[str, Any]) -> tuple[list[DepthExponent], list[dict[str, Any]]]:
    """Fits every step that can be; returns the rows, ascending, and the refusals."""
    fits: list[tuple[int, DepthFit, list[int]]] = []
    refusals = []
    thin: list[int] = []
    label = {"group": group.name, **plain(group.labels), "weights": group.weights}
    for i, step in enumerate(group.steps):
        # Jobs differ in their steps: only what was evaluated at this step can be missing from it.
        replicates = np.nonzero(group.present[i].any(axis=1))[0]
        depths = np.nonzero(group.present[i].any(axis=0))[0]
        if len(depths) < MIN_DEPTHS:
            thin.append(int(step))
            continue
        part = np.ix_(np.array([i]), replicates, depths)
        try:
            fit = fit_depth_exponent(
                group.losses[part][0], group.depths[depths], noise_floor=group.noise_floor[part][0], **options
            )
        except InputError as error:
            refusals.append({**label, "step": whole(step), "reason": f"{error} ({group.name}, step {whole(step)})"})
            continue
        fits.append((int(step), fit, [int(r) for r in replicates]))
    if not fits and not refusals:
        refusals.append({**label, "step": None, "reason": _no_step(group)})
    end = f"step {refusals[-1]['step']} could not be fitted: {refusals[-1]['reason']}" if refusals else None
    late = end if fits and refusals and refusals[-1]["step"] > fits[-1][0] else None
    if fits and not late and thin and thin[-1] > fits[-1][0]:
        late = f"not the end of training: fewer than {MIN_DEPTHS} depths share a later step (they go on to {thin[-1]})"
    return _rows(group, fits, options["confidence"], late), refusals


def _rows(
    group: Group, fits: list[tuple[int, DepthFit, list[int]]], confidence: float, late: str | None
) -> list[DepthExponent]:
    steps = np.array([step for step, _, _ in fits])
    alphas = np.full((len(fits), len(group.replicates)), np.nan)
    for i, (_, fit, replicates) in enumerate(fits):
        alphas[i, [replicates[r] for r in fit.replicates]] = fit.alpha_by_replicate
    rows = []
    for i, (step, fit, replicates) in enumerate(fits):
        drift = fit_drift(steps[: i + 1], alphas[: i + 1], confidence=confidence)
        earlier = [other for at, other, _ in fits[: i + 1] if drift.window and at >= drift.window[0]]
        caveats = fit.caveats + _table_caveats(group, fit, drift, earlier) + _not_learning(group, fit, step, replicates)
        labels: dict[str, Any] = {**group.labels, "weights": group.weights, "average_decay": group.average_decay}
        rows.append(
            DepthExponent(
                **labels,
                step=step,
                alpha=fit.alpha,
                low=fit.low,
                high=fit.high,
                interval_source=fit.interval_source,
                replicates=fit.num_replicates,
                depths=list(fit.depths),
                verdict=drift.verdict,
                drift=drift,
                fit=fit,
                replicate_names=[group.replicates[r] for r in replicates],
                caveats=caveats,
                last=i == len(fits) - 1,
            )
        )
    if rows and late:
        rows[-1] = replace(rows[-1], caveats=(*rows[-1].caveats, late))
    return rows


def _table_caveats(group: Group, fit: DepthFit, drift: Drift, earlier: list[DepthFit]) -> tuple[str, ...]:
    caveats = []
    if len(fit.depths) < len(group.depths) or fit.num_replicates < len(group.replicates):
        caveats.append(
            f"{len(fit.depths)} of {len(group.depths)} depths and {fit.num_replicates} of {len(group.replicates)} "
            "replicates of the group are in this fit"
        )
    if drift.slope is not None and len({other.depths for other in earlier}) > 1:
        caveats.append("the depths in the fit change within the drift window: part of the drift may be theirs")
    return tuple(caveats)


def _not_learning(group: Group, fit: DepthFit, step: int, replicates: list[int]) -> tuple[str, ...]:
    """Names arms whose loss is no lower than before training: stuck, or blown up under a norm that bounds the loss."""
    if group.steps[0] != 0 or step == 0:
        return ()
    rows, used = [replicates[r] for r in fit.replicates], np.isin(group.depths, fit.depths)
    now, start = (losses[rows][:, used] for losses in (group.losses[group.steps == step][0], group.losses[0]))
    stuck = now >= start
    if not stuck.any():
        return ()
    depths = ", ".join(number_name(depth) for depth in group.depths[used][stuck.any(axis=0)])
    return (f"{stuck.sum()} of {stuck.size} arms are not below their loss at step 0 (depths {depths})",)


def _no_step(group: Group) -> str:
    found = ", ".join(number_name(depth) for depth in group.depths)
    where, why = ("", "cannot show a power law") if len(group.depths) < MIN_DEPTHS else (" at one step", "share a step")
    return (
        f"curves must hold at least 3 distinct depths{where}, got depths {found} for {group.name}. "
        f"Fewer than 3 distinct depths {why}: give the runs of the other depths too."
    )
