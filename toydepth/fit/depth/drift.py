"""Whether an exponent still moves as training goes on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toydepth.fit.checks import check_confidence, plain, refuse, whole
from toydepth.fit.depth.loglog import fit_lines
from toydepth.intervals import mean_interval, t_interval

_MIN_EVALUATIONS = 3


@dataclass(frozen=True)
class Drift:
    """slope = d alpha / d ln step with (low, high); change_per_doubling = slope * ln 2; None where there is no slope.

    verdict: 'still moving' | 'settled' | 'unknown'. window: first and last step used, None if none.
    num_evaluations: steps in the window.
    """

    slope: float | None
    low: float | None
    high: float | None
    change_per_doubling: float | None
    verdict: str
    window: tuple[float, float] | None
    num_evaluations: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as plain numbers, lists and None: ready for JSON."""
        return plain(asdict(self))


def fit_drift(
    steps: ArrayLike,
    alpha_by_replicate: ArrayLike,
    *,
    window_factor: float = math.e,
    tolerance: float = 0.1,
    confidence: float = 0.95,
) -> Drift:
    """Fits d alpha / d ln step over the end of training: steps >= last / window_factor, at least the last 3.

    Each replicate has its own slope; the drift is their mean. **A flat end is not convergence**: with a decaying
    learning rate it shows that the step size is gone, not that longer training would not move alpha.

    Args:
        steps: (evaluations,), distinct, any order; step 0 is dropped, since ln 0 is not a number.
        alpha_by_replicate: (evaluations,) or (evaluations, replicates); NaN where there was no fit. A replicate with
            fewer than 3 numbers in the window has no say.
        window_factor: > 1; e looks back over one e-fold of training.
        tolerance: change of alpha per doubling of the steps from which it counts as still moving.
        confidence: of the interval, in (0, 1).

    Returns:
        Drift: interval by Student t over replicates where there are two, else from the residuals of the line.
        Fewer than 3 evaluations: no slope, and the verdict 'unknown'.

    Raises:
        InputError: for shapes that do not match, repeated or negative steps, options out of range.

    Example:
        >>> drift = fit_drift([1000, 2000, 4000], [1.0, 1.5, 2.0], window_factor=4)
        >>> round(drift.change_per_doubling, 6), drift.verdict
        (0.5, 'still moving')
        >>> fit_drift([0, 1000], [0.0, 1.0]).verdict
        'unknown'

    Source: ours; docs/notation.md asks for d alpha / d ln step.
    """
    confidence = check_confidence(confidence)
    if not window_factor > 1:
        raise refuse("window_factor", "greater than 1", repr(window_factor), "Give e to look back over one e-fold.")
    if not tolerance >= 0:
        raise refuse("tolerance", "0 or more", repr(tolerance), "Give the change a doubling that matters.")
    step, alpha = _checked(steps, alpha_by_replicate)
    keep = (step > 0) & ~np.isnan(alpha).all(axis=1)
    step, alpha = step[keep], alpha[keep]
    if len(step):
        inside = step >= step[-1] / window_factor
        inside[-_MIN_EVALUATIONS:] = True
        step, alpha = step[inside], alpha[inside]
    window = (whole(step[0]), whole(step[-1])) if len(step) else None
    alpha = alpha[:, (~np.isnan(alpha)).sum(axis=0) >= _MIN_EVALUATIONS]
    if len(step) < _MIN_EVALUATIONS or not alpha.shape[1]:
        return Drift(None, None, None, None, "unknown", window, len(step))
    lines = fit_lines(np.log(step), alpha.T)
    slopes = lines.sxy / lines.sxx
    slope = float(slopes.mean())
    if len(slopes) > 1:
        interval = mean_interval(slopes, confidence)
    else:
        interval = t_interval(slope, lines.slope_error, lines.degrees, confidence)
    low, high = interval or (None, None)
    change = slope * math.log(2)
    verdict = "still moving" if abs(change) >= tolerance else "settled"
    return Drift(slope, low, high, change, verdict, window, len(step))


def _checked(steps: ArrayLike, alpha_by_replicate: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Returns steps (evaluations,), ascending, and alphas (evaluations, replicates); raises InputError."""
    step, alpha = np.asarray(steps, float), np.asarray(alpha_by_replicate, float)
    if step.ndim != 1:
        raise refuse("steps", "a list of numbers", f"shape {step.shape}", "Give one step for each evaluation.")
    if (~np.isfinite(step) | (step < 0)).any():
        wrong = step[~np.isfinite(step) | (step < 0)][0]
        raise refuse("steps", "finite and 0 or more", f"{wrong:g}", "Correct or remove it.")
    if len(np.unique(step)) < len(step):
        raise refuse("steps", "distinct", "a step twice", "Give several replicates as columns of alpha_by_replicate.")
    if alpha.ndim not in (1, 2) or len(alpha) != len(step):
        shape = f"({len(step)},) or ({len(step)}, replicates)"
        raise refuse("alpha_by_replicate", f"of shape {shape}", f"shape {alpha.shape}", "Give one row for each step.")
    if np.isinf(alpha).any():
        raise refuse("alpha_by_replicate", "finite, or NaN where there was no fit", "inf", "Put NaN there.")
    order = np.argsort(step)
    return step[order], alpha.reshape(len(step), -1)[order] if len(step) else alpha.reshape(0, 1)
