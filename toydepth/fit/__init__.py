"""Fits: exponents of depth, and scaling laws, with intervals and caveats.

    fit_depth_exponent   losses and depths -> alpha in L = c (depth - offset)^-alpha (+ L0)
    fit_drift            alpha along training -> whether it still moves
    fit_curves           the curves of one or many runs -> a table of exponents
    fit_law              anybody's table of losses -> a scaling law: sum of c / x^alpha + L0

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
from toydepth.fit.law import Law, LawFit, Objective, Term, fit_law

__all__ = [
    "DepthExponent",
    "DepthFit",
    "Drift",
    "FitTable",
    "Law",
    "LawFit",
    "LeftOut",
    "Objective",
    "Term",
    "fit_curves",
    "fit_depth_exponent",
    "fit_drift",
    "fit_law",
]
