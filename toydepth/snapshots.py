"""Gradient snapshots between the bank that takes them and the folder that keeps them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from toydepth.bank import Bank
from toydepth.bank.gradients import Snapshot, snapshot_steps
from toydepth.bank.labels import arm_labels, run_labels
from toydepth.bank.story import Story
from toydepth.config import GradientsConfig, TrainConfig, to_dict
from toydepth.errors import InputError
from toydepth.runs import RunRecord, gradients_file, name_weights, student_name, write_gradients


def check_gradients(config: TrainConfig, folder: Path, earlier: RunRecord) -> None:
    """Raises InputError where the run in a folder was trained with other snapshots: they are taken while it trains."""
    # A record of an earlier version has no such part: without snapshots, as by default.
    default = dataclasses.asdict(GradientsConfig())
    settings = [default | dict(earlier.config.get("gradients", {})), to_dict(config)["gradients"]]
    before, now = settings
    if now != before and (now["points"] or before["points"]):
        before, now = (", ".join(f"{key}={value}" for key, value in setting.items()) for setting in settings)
        advice = "They are taken while a run trains: choose another hydra.run.dir, or move the folder away."
        raise InputError(f"gradients must be those of the run in {folder} ({before}), got {now}. {advice}")


def earlier_snapshots(config: TrainConfig, folder: Path, step: int) -> list[dict[str, Any]]:
    """The record's entries of what was written up to the step where a run goes on; raises InputError for lost ones."""
    entries = [{"step": s, "file": gradients_file(s)} for s in snapshot_steps(config) if s <= step]
    lost = [entry["file"] for entry in entries if not (folder / entry["file"]).is_file()]
    if lost:
        advice = "Restore it, or train again in another folder (hydra.run.dir)."
        raise InputError(f"{folder} must hold {lost[0]} to go on from step {step}, got no such file. {advice}")
    return entries


def write_snapshot(folder: Path, bank: Bank, snapshot: Snapshot, story: Story) -> Path:
    """Writes one snapshot of all arms into a run's folder; returns its path."""
    config, rates = bank.config, story.rates_at(snapshot.step)
    decay = config.average.decays[0] if config.gradients.weights == "average" else None
    arms = [
        labels
        | {"name": arm.name, "loss": float(snapshot.losses[index]), "diverged": snapshot.gradients[index] is None}
        | {name: float(values[index]) for name, values in rates.items()}
        for index, (arm, labels) in enumerate(zip(bank.arms, arm_labels(config, bank.arms), strict=True))
    ]
    return write_gradients(
        folder,
        step=snapshot.step,
        samples=snapshot.step * config.batch_size,
        stream=config.gradients.stream,
        weights=config.gradients.weights,
        examples=snapshot.num_examples,
        labels=run_labels(config),
        arms=arms,
        gradients=[
            None if own is None else name_weights(student_name(arm.name, decay), own)
            for arm, own in zip(bank.arms, snapshot.gradients, strict=True)
        ],
    )
