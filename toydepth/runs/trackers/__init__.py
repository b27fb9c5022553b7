"""Trackers: where a run is watched while it goes. What it leaves behind never depends on them.

none    nothing
jsonl   metrics.jsonl in the run's folder, a line a step
wandb   Weights & Biases, offline unless there are a key and a network; imported only when it is chosen
"""

from toydepth.runs.trackers.base import NoTracker, TrackedRun, Tracker
from toydepth.runs.trackers.jsonl import JsonlTracker
from toydepth.runs.trackers.make import TRACKERS, make_tracker
from toydepth.runs.trackers.mode import can_connect, decide_mode
from toydepth.runs.trackers.safe import SafeTracker

__all__ = [
    "TRACKERS",
    "JsonlTracker",
    "NoTracker",
    "SafeTracker",
    "TrackedRun",
    "Tracker",
    "can_connect",
    "decide_mode",
    "make_tracker",
]
