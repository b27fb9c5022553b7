"""Fits: how the loss falls with depth, with intervals and caveats, from arrays or from the curves of runs.

    fit_depth_exponent   losses and depths -> alpha in L = c (depth - offset)^-alpha (+ L0)
    fit_drift            alpha along training -> whether it still moves
    fit_curves           the curves of one or many runs -> a table of exponents

numpy, scipy and pandas only: what a run leaves behind can be fitted where there is no jax.
"""

from toydepth.fit.depth import (
    DepthExponent,
    DepthFit,
    Drift,
    FitTable,
    LeftOut,
    fit_curves,
    fit_depth_exponent,
    fit_drift,
)

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
