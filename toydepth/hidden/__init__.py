"""Hidden states: how each block moves each token.

    angle             between vectors, exact at both ends
    measure_states    a residual stream -> angles, norms, progress of every token
    Accumulator       statistics of any number of tokens, in the memory of one batch
    find_regime       a table by layer -> ensemble averaging, procedural, compositional, mixed
    ProfileCovariance, Reservoir, find_clusters    profiles of angles: components, a sample, clusters of tokens

numpy, pandas and scipy only.
"""

from toydepth.hidden.accumulate import Accumulator
from toydepth.hidden.angles import angle
from toydepth.hidden.clusters import Clusters, find_clusters
from toydepth.hidden.covariance import ProfileCovariance
from toydepth.hidden.regime import Regime, RegimeRule, find_regime
from toydepth.hidden.reservoir import Reservoir
from toydepth.hidden.trajectory import QUANTITIES, Trajectory, measure_states

__all__ = [
    "QUANTITIES",
    "Accumulator",
    "Clusters",
    "ProfileCovariance",
    "Regime",
    "RegimeRule",
    "Reservoir",
    "Trajectory",
    "angle",
    "find_clusters",
    "find_regime",
    "measure_states",
]
