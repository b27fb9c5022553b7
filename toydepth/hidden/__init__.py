"""Hidden states: how each block moves each token.

    angle             between vectors, exact at both ends
    measure_states    a residual stream -> angles, norms, progress of every token
    Accumulator       statistics of any number of tokens, in the memory of one batch
    find_regime       a table by layer -> ensemble averaging, procedural, compositional, mixed
    Profiles          profiles of angles: components, a sample of tokens, the clusters they fall into
    write_state       what accumulators hold, as a file, to go on from

numpy, pandas and scipy only; files by `runs`. Names are looked up when they are first used: the command's help reads
`rules` alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toydepth.hidden.accumulate import Accumulator
    from toydepth.hidden.angles import angle
    from toydepth.hidden.clusters import Clusters, find_clusters
    from toydepth.hidden.covariance import ProfileCovariance
    from toydepth.hidden.profiles import Profiles
    from toydepth.hidden.regime import Regime, find_regime
    from toydepth.hidden.reservoir import Reservoir
    from toydepth.hidden.rules import ClusterRule, RegimeRule
    from toydepth.hidden.saving import load_state, write_state
    from toydepth.hidden.trajectory import QUANTITIES, Trajectory, measure_states

__all__ = [
    "QUANTITIES",
    "Accumulator",
    "ClusterRule",
    "Clusters",
    "ProfileCovariance",
    "Profiles",
    "Regime",
    "RegimeRule",
    "Reservoir",
    "Trajectory",
    "angle",
    "find_clusters",
    "find_regime",
    "load_state",
    "measure_states",
    "write_state",
]

_HOMES = {
    "Accumulator": "toydepth.hidden.accumulate",
    "ClusterRule": "toydepth.hidden.rules",
    "Clusters": "toydepth.hidden.clusters",
    "ProfileCovariance": "toydepth.hidden.covariance",
    "Profiles": "toydepth.hidden.profiles",
    "QUANTITIES": "toydepth.hidden.trajectory",
    "Regime": "toydepth.hidden.regime",
    "RegimeRule": "toydepth.hidden.rules",
    "Reservoir": "toydepth.hidden.reservoir",
    "Trajectory": "toydepth.hidden.trajectory",
    "angle": "toydepth.hidden.angles",
    "find_clusters": "toydepth.hidden.clusters",
    "find_regime": "toydepth.hidden.regime",
    "load_state": "toydepth.hidden.saving",
    "measure_states": "toydepth.hidden.trajectory",
    "write_state": "toydepth.hidden.saving",
}


def __getattr__(name: str) -> object:
    """Looks a public name up in the module it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module 'toydepth.hidden' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
