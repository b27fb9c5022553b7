"""The posterior of a law's parameters, by NUTS: what the rows and a weak prior say together. Needs the extra `bayes`.

    sample_law   a LawFit -> Posterior: draws, intervals, how far they can be trusted, where the prior decides

    density.py     likelihood times prior of a fit, and the coordinates in which it is easy to walk
    sampling.py    sample_law: NUTS on that density, in float64, on the CPU
    quality.py     r_hat, effective sizes, what the prior moves; the rules by which draws are judged
    posterior.py   Posterior: intervals, report, JSON

jax is loaded at import, numpyro only when something is sampled.
"""

from toydepth.bayes.posterior import Posterior
from toydepth.bayes.sampling import sample_law

__all__ = ["Posterior", "sample_law"]
