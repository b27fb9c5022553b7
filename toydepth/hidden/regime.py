"""What kind of work the blocks do, read off the angles in the middle of the network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from toydepth.hidden.rules import RegimeRule

RIGHT_ANGLE = np.pi / 2


@dataclass(frozen=True)
class Regime:
    """verdict: a word; why: a sentence with the numbers.

    ensemble averaging: even steps, each in a new direction. procedural: even steps in one direction, as of a flow.
    compositional: half of the middle or more (`stopped_share`) has stopped moving states. mixed: none of these.
    unknown: fewer than two middle layers.
    """

    verdict: str
    why: str
    updates: float
    unevenness: float
    stopped_fraction: float


def find_regime(table: pd.DataFrame, rule: RegimeRule | None = None) -> Regime:
    """Returns the regime of one network from its table by layer (columns relative_depth, theta_states, theta_updates).

    updates: mean of theta_updates over middle layers, in right angles. unevenness: standard deviation over mean of
    theta_states there. stopped_fraction: of middle layers, those that turn states by less than `stopped` of the largest
    turn of any layer.

    Example:
        >>> depth = np.arange(9) / 8
        >>> even = pd.DataFrame({"relative_depth": depth, "theta_states": 0.2, "theta_updates": 1.5})
        >>> find_regime(even).verdict
        'ensemble averaging'

    Source: the three regimes, arXiv 2602.05970; the thresholds are ours.
    """
    rule = rule or RegimeRule()
    low, high = rule.middle
    place, all_steps = table["relative_depth"].to_numpy(float), table["theta_states"].to_numpy(float)
    middle = (place >= low) & (place <= high)
    steps, turns = all_steps[middle], table["theta_updates"].to_numpy(float)[middle]
    steps, turns = steps[np.isfinite(steps)], turns[np.isfinite(turns)]
    if len(steps) < 2 or len(turns) < 2:
        return Regime(
            "unknown", f"fewer than two layers between {low:g} and {high:g} of the depth", *[float("nan")] * 3
        )
    updates = float(turns.mean() / RIGHT_ANGLE)
    unevenness = float(steps.std() / steps.mean()) if steps.mean() > 0 else float("nan")
    stopped = float(np.mean(steps < rule.stopped * np.nanmax(all_steps)))
    numbers = f"updates at {updates:.2f} of pi/2, steps uneven by {unevenness:.2f}"
    numbers += f", {100 * stopped:.0f} % of the middle stopped"
    if stopped >= rule.stopped_share:
        verdict = "compositional"
    elif unevenness <= rule.even and updates >= rule.orthogonal:
        verdict = "ensemble averaging"
    elif unevenness <= rule.even and updates <= rule.aligned:
        verdict = "procedural"
    else:
        verdict = "mixed"
    return Regime(verdict, numbers, updates, unevenness, stopped)
