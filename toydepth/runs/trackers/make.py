"""Trackers by name."""

from __future__ import annotations

from toydepth.errors import InputError, did_you_mean
from toydepth.runs.trackers.base import NoTracker, Tracker
from toydepth.runs.trackers.jsonl import JsonlTracker
from toydepth.runs.trackers.safe import SafeTracker

TRACKERS = ("wandb", "jsonl", "none")


def make_tracker(name: str, *, project: str = "toydepth", mode: str = "auto", entity: str | None = None) -> SafeTracker:
    """Builds the tracker called `name`, guarded so that its failures never end a run.

    Args:
        name: wandb | jsonl | none.
        project, mode, entity: for wandb; mode auto | online | offline.

    Returns:
        SafeTracker: with the tracker itself as `inner`.

    Raises:
        InputError: for an unknown name or mode, or where the mode or the package cannot be had: before anything runs.

    Example:
        >>> make_tracker("none").name
        'none'
        >>> make_tracker("wandbb")
        Traceback (most recent call last):
        ...
        toydepth.errors.InputError: tracker must be one of wandb, jsonl, none, got 'wandbb'. Did you mean 'wandb'?
    """
    if name not in TRACKERS:
        advice = did_you_mean(name, TRACKERS) or " Use none to track nothing."
        raise InputError(f"tracker must be one of {', '.join(TRACKERS)}, got {name!r}.{advice}")
    inner: Tracker
    if name == "wandb":
        from toydepth.runs.trackers.wandb import WandbTracker

        inner = WandbTracker(project, mode=mode, entity=entity)
    elif name == "jsonl":
        inner = JsonlTracker()
    else:
        inner = NoTracker()
    return SafeTracker(inner, name)
