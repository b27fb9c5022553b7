"""The depth exponent: alpha in L = c (depth - offset)^-alpha (+ L0), from arrays or from the curves of runs."""

from toydepth.fit.depth.curves import fit_curves
from toydepth.fit.depth.depth_fit import DepthFit
from toydepth.fit.depth.drift import Drift, fit_drift
from toydepth.fit.depth.exponent import fit_depth_exponent
from toydepth.fit.depth.points import LeftOut
from toydepth.fit.depth.table import DepthExponent, FitTable

__all__ = [
    "DepthExponent",
    "DepthFit",
    "Drift",
    "FitTable",
    "LeftOut",
    "fit_curves",
    "fit_depth_exponent",
    "fit_drift",
]
