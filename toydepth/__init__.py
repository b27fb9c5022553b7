"""What does depth buy? Students of many depths learn from a deeper teacher, and the loss tells what each block added.

    toydepth train +experiment=tied    trains a bank of students against its teachers, and leaves a run's folder
    toydepth law TABLE                 a scaling law of anybody's losses, and what the table cannot tell
    toydepth fit RUNS...               how the loss falls with depth: alpha in L = c depth^-alpha, with its interval
    toydepth figures RUNS...           loss against depth, alpha against step, training curves
    toydepth.load_runs(RUNS)           the curves of any number of runs as one table
    toydepth.fit_depth_exponent(...)   the fit by itself, from arrays
    toydepth.fit_law(table, ...)       a scaling law by itself, from a table

The rooms: config, net (the residual network), bank (many students at once), runs (what a run leaves), fit, report.
The names below are looked up when they are first used, so that `import toydepth` loads neither jax nor wandb.
"""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toydepth.config import TrainConfig
    from toydepth.fit import DepthFit, LawFit, fit_curves, fit_depth_exponent, fit_drift, fit_law
    from toydepth.runs import load_runs

__all__ = [
    "DepthFit",
    "LawFit",
    "TrainConfig",
    "__version__",
    "fit_curves",
    "fit_depth_exponent",
    "fit_drift",
    "fit_law",
    "load_runs",
]

try:
    __version__ = metadata.version("toydepth")
except metadata.PackageNotFoundError:  # a checkout that is on the path, but was not installed
    __version__ = "0+unknown"

_HOMES = {
    "DepthFit": "toydepth.fit",
    "LawFit": "toydepth.fit",
    "TrainConfig": "toydepth.config",
    "fit_curves": "toydepth.fit",
    "fit_depth_exponent": "toydepth.fit",
    "fit_drift": "toydepth.fit",
    "fit_law": "toydepth.fit",
    "load_runs": "toydepth.runs",
}


def __getattr__(name: str) -> object:
    """Looks a public name up in the room it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module 'toydepth' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the names that are looked up late as well."""
    return sorted({*globals(), *__all__})
