"""Hidden states: how each block moves each token.

    angle             between vectors, exact at both ends
    measure_states    a residual stream -> angles, norms, progress of every token
    Accumulator       statistics of any number of tokens, in the memory of one batch

numpy and pandas only.
"""

from toydepth.hidden.accumulate import Accumulator
from toydepth.hidden.angles import angle
from toydepth.hidden.trajectory import QUANTITIES, Trajectory, measure_states

__all__ = ["QUANTITIES", "Accumulator", "Trajectory", "angle", "measure_states"]
