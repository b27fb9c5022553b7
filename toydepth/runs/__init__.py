"""Runs: what a run leaves behind, and how it is read again.

    claim_folder, lock_folder    a folder of its own for each config, and one process at a time
    RunRecord, read_record       record.json: what ran, on what, how long, how it ended
    make_curves, read_curves     curves.parquet: one row an arm and evaluation
    load_gradients               gradients/: the gradient of every arm at some steps, one at a time
    find_runs, load_runs         the folders of runs; the curves of many runs as one table
    make_tracker                 W&B, JSON lines or nothing, while the run goes
    ProgressLine                 one line at the terminal

numpy and pandas only: what a run leaves behind can be read where there is no jax.
"""

from toydepth.runs.columns import CURVE_COLUMNS, average_columns, find_decays
from toydepth.runs.curves import make_curves, read_curves, write_curves
from toydepth.runs.environment import find_git, find_versions, utc_now
from toydepth.runs.fitted import write_fit
from toydepth.runs.folder import claim_folder, lock_folder
from toydepth.runs.gradients import GradientField, gradients_file, load_gradients, write_gradients
from toydepth.runs.load import find_runs, load_runs
from toydepth.runs.naming import count_parameters, name_weights, student_name
from toydepth.runs.progress import ProgressLine
from toydepth.runs.record import SCHEMA_VERSION, RunRecord, read_record
from toydepth.runs.trackers import SafeTracker, TrackedRun, Tracker, make_tracker

__all__ = [
    "CURVE_COLUMNS",
    "SCHEMA_VERSION",
    "GradientField",
    "ProgressLine",
    "RunRecord",
    "SafeTracker",
    "TrackedRun",
    "Tracker",
    "average_columns",
    "claim_folder",
    "count_parameters",
    "find_decays",
    "find_git",
    "find_runs",
    "find_versions",
    "gradients_file",
    "load_gradients",
    "load_runs",
    "lock_folder",
    "make_curves",
    "make_tracker",
    "name_weights",
    "read_curves",
    "read_record",
    "student_name",
    "utc_now",
    "write_curves",
    "write_fit",
    "write_gradients",
]
