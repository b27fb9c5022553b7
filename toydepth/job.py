"""One job, from a checked configuration to everything that a run leaves behind."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from rich.console import Console

from toydepth.bank import Bank, Outcome, choose_layout, make_bank, train
from toydepth.bank.arms import shortest
from toydepth.bank.checkpoint import Checkpoints
from toydepth.bank.gradients import Snapshot
from toydepth.bank.labels import arm_labels, run_labels
from toydepth.bank.noise import measure_noise_floor
from toydepth.bank.story import Story
from toydepth.config import TrainConfig, config_hash, to_dict
from toydepth.errors import InputError
from toydepth.fit import FitTable, fit_curves
from toydepth.report import print_table, write_figures
from toydepth.runs import (
    ProgressLine,
    RunRecord,
    SafeTracker,
    TrackedRun,
    average_columns,
    claim_folder,
    find_git,
    find_versions,
    lock_folder,
    make_curves,
    make_tracker,
    read_curves,
    utc_now,
    write_curves,
    write_fit,
)
from toydepth.snapshots import check_gradients, earlier_snapshots, write_snapshot


@dataclass
class Finished:
    """A job that ended: its folder, how (record.status), the fits (None where nothing can be fitted), the signal."""

    folder: Path
    status: str
    table: FitTable | None
    why_no_fit: str = ""
    signal: int | None = None


def run_job(config: TrainConfig, folder: Path, overrides: list[str], console: Console) -> Finished:
    """Trains the bank of `config` in `folder`, and writes record, curves, fit and figures there.

    A folder that holds a complete run of the same config is read, not run again. An interrupted one goes on.

    Args:
        config: checked.
        folder: the run's own.
        overrides: as typed, for the record.
        console: where a person reads; warnings and the table go there.

    Raises:
        InputError: before anything is compiled, for a folder, a device or an optimiser that cannot be used, and for
            gradient snapshots that the run in the folder was not trained with; for a resumed run that has lost some.
    """
    digest = config_hash(config)
    claim_folder(folder, digest)
    with lock_folder(folder):
        earlier = claim_folder(folder, digest)  # again, now that nobody else writes
        if earlier:
            check_gradients(config, folder, earlier)
        if earlier and earlier.status in ("complete", "diverged"):
            return _read_again(config, folder, earlier, console)
        return _train_and_report(config, folder, overrides, console, digest, earlier)


def _train_and_report(
    config: TrainConfig, folder: Path, overrides: list[str], console: Console, digest: str, earlier: RunRecord | None
) -> Finished:
    started, begun = time.monotonic(), utc_now()
    notes = config.warnings()
    measuring = "measuring how much to work on at a time: some seconds, once for a shape on a machine"
    say = lambda text: console.print(text, style="dim", highlight=False)  # noqa: E731
    layout = choose_layout(config, earlier.device if earlier else None, lambda: say(measuring))
    bank = make_bank(config, layout)
    say(layout.in_words())
    tracker = make_tracker(config.tracker.name, project=config.tracker.project, mode=config.tracker.mode)
    for warning in notes:
        console.print(f"warning: {warning}", style="yellow", highlight=False)
    record = RunRecord(
        experiment=config.name,
        config=to_dict(config),
        config_hash=digest,
        overrides=overrides,
        versions=find_versions(),
        git=find_git(),
        device=layout.describe(),
        precision=config.device.precision,
        seeds={"seed": config.seed, "teacher": config.teacher_seed},
        started=earlier.started if earlier else begun,
        wall_seconds=earlier.wall_seconds if earlier else 0.0,
        segments=earlier.segments if earlier else [],
        gradients=earlier.gradients if earlier else [],
        warnings=list(dict.fromkeys([*(earlier.warnings if earlier else []), *notes])),
    )
    (folder / "config.yaml").write_text(yaml.safe_dump(to_dict(config), sort_keys=False))
    floors = measure_noise_floor(bank)
    record.noise_floor = _describe_floors(config, floors)
    record.write(folder)
    checkpoints = Checkpoints(folder / "checkpoints", digest)
    earlier_segments, earlier_seconds = record.segments, record.wall_seconds

    def count_segment(from_step: int, step: int) -> None:
        seconds = time.monotonic() - started
        record.steps_done, record.wall_seconds = step, earlier_seconds + seconds
        segment = {"started": begun, "from_step": from_step, "to_step": step, "seconds": seconds}
        record.segments = [*earlier_segments, segment | {"device_count": layout.count, "kernel": layout.kernel}]
        # After a checkpoint too: a process that is killed does not get to say what was paid for.
        record.write(folder)

    outcome = _train(bank, checkpoints, floors, folder, tracker, console, count_segment, record)
    # The tracker, like the terminal, only watches: everything below is written from memory.
    curves = make_job_curves(bank, outcome.story, floors)
    write_curves(folder, curves)
    count_segment(outcome.from_step, outcome.step)
    _fill_record(record, bank, outcome)
    if outcome.status == "interrupted":
        console.print(f"interrupted at step {outcome.step} of {config.steps}, which is saved", highlight=False)
    finished = _report(folder, curves, outcome.status, console)
    finished.signal = outcome.signal
    _finish_tracker(tracker, finished, outcome, config.average.decays)
    record.warnings += tracker.warnings
    record.write(folder)
    if tracker.where:
        console.print(f"tracker: {tracker.where}", highlight=False, soft_wrap=True)
    return finished


def make_job_curves(bank: Bank, story: Story, floors: np.ndarray) -> pd.DataFrame:
    """Returns the curves table of a run so far; columns: `toydepth.runs.CURVE_COLUMNS`."""
    config = bank.config
    decays = config.average.decays
    arms = []
    for index, (arm, labels) in enumerate(zip(bank.arms, arm_labels(config, bank.arms), strict=True)):
        which = config.target.temperatures.index(arm.temperature) if arm.temperature is not None else 0
        arms.append(
            labels
            | {
                "average_decay": decays[0] if decays else None,
                "noise_floor": floors[arm.replicate, which],
                "diverged": index in story.diverged,
            }
        )
    names = {"test_loss": "test_loss", "standard_error": "standard_error"}
    names |= {name: name for name in ("step", "samples", "tau", "learning_rate", "train_loss")}
    for index, decay in enumerate(decays):
        loss, error = average_columns(decay) if index else ("test_loss_average", "standard_error_average")
        names |= {f"test_loss/{decay}": loss, f"standard_error/{decay}": error}
    series = {column: np.array(story.series[name], float) for name, column in names.items()}
    series |= {name: np.array(story.series[name], int) for name in ("step", "samples")}
    return make_curves(run_labels(config), arms, series)


def _train(
    bank: Bank,
    checkpoints: Checkpoints,
    floors: np.ndarray,
    folder: Path,
    tracker: SafeTracker,
    console: Console,
    on_checkpoint: Callable[[int, int], None],
    record: RunRecord,
) -> Outcome:
    config = bank.config
    depths = {depth: [i for i, arm in enumerate(bank.arms) if arm.depth == depth] for depth in config.student.depths}

    def on_evaluation(story: Story) -> None:
        if config.tracker.name == "none":
            return
        tracker.log(_metrics(bank, story, floors), story.last_step)

    def on_gradients(snapshot: Snapshot, story: Story) -> None:
        path = write_snapshot(folder, bank, snapshot, story)
        # Entered in memory; the file of the record follows at the next checkpoint, without which it does not count.
        record.gradients.append({"step": snapshot.step, "file": str(path.relative_to(folder))})

    with ProgressLine(config.steps) as progress:

        def on_chunk(step: int, losses: np.ndarray) -> None:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a depth whose arms have all diverged
                progress.update(step, {depth: float(np.nanmean(losses[arms])) for depth, arms in depths.items()})

        def on_start(step: int) -> None:
            record.gradients = earlier_snapshots(config, folder, step)
            progress.resume(step)
            name = f"{config.name}/{folder.name}"
            group, tags = config.name, tuple(config.tracker.tags)
            resumed = step if step else None
            tracker.start(TrackedRun(folder, name, group, tags, to_dict(config), resumed))
            if step:
                console.print(f"going on from step {step} of {config.steps}", highlight=False)

        return train(
            bank,
            checkpoints,
            resume=config.resume,
            on_start=on_start,
            on_evaluation=on_evaluation,
            on_chunk=on_chunk,
            on_checkpoint=on_checkpoint,
            on_gradients=on_gradients,
        )


def _metrics(bank: Bank, story: Story, floors: np.ndarray) -> dict[str, float]:
    """What a tracker is told at an evaluation: the mean test loss of each kind of arm, and alpha of each group."""
    config, latest = bank.config, make_job_curves(bank, story, floors)
    now: pd.DataFrame = latest.loc[latest["step"] == story.last_step]
    keys = ["depth", *[name for name in ("temperature", "init") if len(set(now[name].astype(str))) > 1]]
    metrics: dict[str, float] = {}
    # The mean over replicates; of all of them or none, so that no curve jumps when one diverges.
    losses = [name for name in now.columns if name.startswith("test_loss")]
    means: Any = now.groupby(keys, dropna=False)[losses].agg(lambda values: values.mean(skipna=False))
    for values, losses in means.iterrows():
        values = values if isinstance(values, tuple) else (values,)
        name = ",".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
        metrics |= {f"{kind}/{name}": float(loss) for kind, loss in losses.items() if np.isfinite(loss)}
    table = _fit(now)[0]
    return metrics | {_alpha_name(row, config.average.decays): row.alpha for row in (table.rows if table else [])}


def _alpha_name(row: Any, decays: tuple[float, ...]) -> str:
    weights = f"average={shortest(row.average_decay)}" if row.weights == "average" and len(decays) > 1 else row.weights
    temperature = "" if np.isnan(row.temperature) else f",temperature={shortest(row.temperature)}"
    return f"alpha_ell/{weights},init={row.init}{temperature}"


def _fit(curves: pd.DataFrame, **options: Any) -> tuple[Any, str]:
    try:
        return fit_curves(curves, **options), ""
    except InputError as error:
        return None, str(error)


def _report(folder: Path, curves: pd.DataFrame, status: str, console: Console) -> Finished:
    """Fits, writes fit.json and figures, and prints the table."""
    table, why = _fit(curves, all_steps=True) if len(curves) else (None, "no arm has a finite loss")
    write_fit(folder, table.to_dict() if table else {"rows": [], "refused": [{"reason": why}]})
    figures = write_figures(curves, table, folder / "figures") if len(curves) else None
    if table:
        print_table(table, console)
    elif len(curves) and len(set(curves["depth"])) < 3:
        advice = f"toydepth fit {folder.parent} joins the jobs of a sweep over depths"
        console.print(f"no fit: fewer than 3 distinct depths here; {advice}", highlight=False, soft_wrap=True)
    else:
        console.print(f"no fit: {why}", highlight=False)
    console.print(f"{status}: {folder}", highlight=False, soft_wrap=True)
    if status == "interrupted":
        console.print("the same command goes on from its checkpoint; no number above is final", highlight=False)
    if figures and figures.paths:
        console.print(f"figures: {folder / 'figures'}", highlight=False, soft_wrap=True)
    return Finished(folder, status, table, why)


def _read_again(config: TrainConfig, folder: Path, record: RunRecord, console: Console) -> Finished:
    if not config.resume:
        raise InputError(
            f"resume must be true for a folder that holds a finished run, got false for {folder}. "
            "Choose another hydra.run.dir, or move the folder away."
        )
    console.print(f"{folder} holds this run already ({record.status}): read, not run again", highlight=False)
    return _report(folder, read_curves(folder), record.status, console)


def _describe_floors(config: TrainConfig, floors: np.ndarray) -> list[dict[str, Any]]:
    temperatures = config.target.temperatures if config.loss.name == "kl" else (None,)
    return [
        {
            "loss": config.loss.name,
            "temperature": temperature,
            "replicate": replicate,
            "floor": float(floors[replicate, i]),
        }
        for replicate in range(config.replicates)
        for i, temperature in enumerate(temperatures)
    ]


def _fill_record(record: RunRecord, bank: Bank, outcome: Outcome) -> None:
    record.status = outcome.status
    record.steps_per_second = outcome.steps_per_second
    record.diverged = [{"arm": bank.arms[arm].name, **where} for arm, where in sorted(outcome.story.diverged.items())]
    counts = {s["device_count"] for s in record.segments}
    if len(counts) > 1:
        record.warnings.append(f"segments ran on {sorted(counts)} devices: not bitwise what one of them would give")
    kernels = {s.get("kernel", "xla") for s in record.segments}  # older segments name none
    if len(kernels) > 1:
        told = " and ".join(sorted(kernels))
        record.warnings.append(f"segments ran with the kernels {told}: not bitwise what one of them would give")


def _finish_tracker(tracker: SafeTracker, finished: Finished, outcome: Outcome, decays: tuple[float, ...]) -> None:
    for path in sorted((finished.folder / "figures").glob("*.png")):
        tracker.image(path.stem, path, outcome.step)
    summary: dict[str, Any] = {"status": finished.status, "steps_done": outcome.step}
    for row in finished.table.last if finished.table else []:
        name = _alpha_name(row, decays)
        summary |= {name: row.alpha, f"{name},low": row.low, f"{name},high": row.high}
    tracker.summary(summary)
    tracker.finish(finished.status)
