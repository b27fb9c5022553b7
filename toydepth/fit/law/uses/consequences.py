"""What follows from one fitted law: the best shape, and the best use of a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toydepth.fit.checks import check_confidence
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.uses.allocation import Compute
from toydepth.fit.law.uses.compute import best_allocation
from toydepth.fit.law.uses.cost import DEFAULT_COST, make_cost
from toydepth.fit.law.uses.draws import draw_laws
from toydepth.fit.law.uses.shape import Shape, best_shape


@dataclass(frozen=True)
class Consequences:
    """What follows from a fit.

    Attributes:
        formula: of the law. confidence: of the intervals. draws: how many, and of what, they are percentiles of.
        shape: m / ell at a fixed N. compute: N*, D* and L* at budgets. Each has numbers, or the reason for none.
    """

    formula: str
    confidence: float
    draws: str
    shape: Shape
    compute: Compute

    def report(self) -> str:
        """Returns all of it as text."""
        parts = [self.shape.report(), self.compute.report()]
        if not (self.shape.reason and self.compute.reason):
            parts.append(f"intervals: percentiles of draws, {self.draws}")
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Returns all of it for JSON."""
        return {
            "schema": 1,
            "formula": self.formula,
            "confidence": self.confidence,
            "draws": self.draws,
            "shape": self.shape.to_dict(),
            "compute": self.compute.to_dict(),
        }


def consequences(
    fit: LawFit,
    *,
    cost: str | Callable[..., Any] = DEFAULT_COST,
    budgets: Sequence[float] | None = None,
    confidence: float | None = None,
    seed: int = 0,
) -> Consequences:
    """Returns the best shape and the best use of budgets that a law implies, each with intervals.

    Args:
        fit: of any law.
        cost: as in `best_allocation`.
        budgets: in the units of the cost; default: five about those of the rows.
        confidence: of the intervals; default: the fit's.
        seed: of the draws, which both share.

    Raises:
        InputError: for a cost of names that do not follow from the law's variables (the default says why instead), or
            an option out of range.

    Example:
        >>> import numpy as np, pandas as pd
        >>> from toydepth.fit.law.fitting import fit_law
        >>> m, ell = (x.ravel() for x in np.meshgrid([128, 256, 512, 1024], [4, 8, 16, 32]))
        >>> runs = pd.DataFrame({"m": m, "ell": ell, "loss": 400 / m + 4 / ell + 1.7})
        >>> found = consequences(fit_law(runs, "universal", {"m": "m", "ell": "ell"}))
        >>> found.shape.at[0].ratio.text(), found.compute.reason
        ('50.00', 'the cost 6*N*D needs D, which does not follow from m, ell')

    Source: see `best_shape`, `best_allocation`.
    """
    confidence = check_confidence(fit.confidence if confidence is None else confidence)
    laws = draw_laws(fit, seed)
    shape = best_shape(fit, confidence=confidence, laws=laws)
    missing = make_cost(cost).missing(fit.law.variables)
    if cost == DEFAULT_COST and missing and "tau" not in fit.law.variables:
        known = ", ".join(fit.law.variables)
        why = f"the cost {cost} needs {', '.join(missing)}, which does not follow from {known}"
        compute = Compute(str(cost), confidence, None, (), why)
    else:
        compute = best_allocation(fit, cost, budgets, confidence=confidence, laws=laws)
    return Consequences(fit.law.formula(), confidence, laws.origin, shape, compute)
