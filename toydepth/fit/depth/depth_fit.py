"""The answer of a depth fit: the exponent, its intervals, what was left out, and what to be careful about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from toydepth.fit.checks import number_name, plain, refuse
from toydepth.fit.depth.points import LeftOut
from toydepth.intervals import Interval, mean_interval


@dataclass(frozen=True, eq=False)
class DepthFit:
    """L = c * (depth - offset)^-alpha + irreducible_loss.

    Attributes:
        alpha: the exponent; NaN where alpha and the floor cannot be told apart.
        low, high: headline interval of alpha, from interval_source ('replicates' where there are two, else
            'covariance'); None where there is none.
        intervals: 'covariance' and 'replicates' to (low, high) or None. standard_errors: the same, to a number or None.
        c: geometric mean over replicates, in the unit of the loss. irreducible_loss: None without a floor.
        offset: subtracted from every depth. window: lowest and highest depth used.
        confidence: of every interval. depths: used, ascending.
        num_replicates: used. replicates: their rows in the losses given. alpha_by_replicate (replicates,): each alone.
        losses (replicates, depths): used, NaN where left out. residual_std: of ln L about the fit, None without a
            degree of freedom. left_out: a record a point. caveats: sentences to print beside the number.
    """

    alpha: float
    low: float | None
    high: float | None
    interval_source: str
    intervals: dict[str, Interval | None]
    standard_errors: dict[str, float | None]
    c: float
    irreducible_loss: float | None
    offset: float
    window: tuple[float, float]
    confidence: float
    depths: tuple[float, ...]
    num_replicates: int
    replicates: tuple[int, ...]
    alpha_by_replicate: np.ndarray
    losses: np.ndarray
    residual_std: float | None
    left_out: tuple[LeftOut, ...]
    caveats: tuple[str, ...]

    @cached_property
    def local_slopes(self) -> pd.DataFrame:
        """The slope -d ln L / d ln (depth - offset) between neighbouring depths, a row a pair; see `local_slopes`."""
        return local_slopes(np.log(self.losses), np.array(self.depths, float), self.offset, self.confidence)

    def predict(self, depths: ArrayLike) -> np.ndarray:
        """Returns c * (depth - offset)^-alpha + irreducible_loss, in the shape of `depths`.

        Raises: InputError for a depth that is not greater than the offset.
        """
        values = np.asarray(depths, float)
        if not (values > self.offset).all():
            wrong = number_name(values[~(values > self.offset)].flat[0])
            raise refuse("depths", f"greater than the offset {self.offset:g}", wrong, "Leave it out.")
        return self.c * (values - self.offset) ** -self.alpha + (self.irreducible_loss or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything but the losses as plain numbers, lists and None: ready for JSON."""
        names = (
            "alpha low high interval_source intervals standard_errors c irreducible_loss offset window confidence "
            "depths num_replicates replicates alpha_by_replicate residual_std caveats"
        )
        result = plain({name: getattr(self, name) for name in names.split()})
        result["local_slopes"] = plain(self.local_slopes.to_dict("records"))
        result["left_out"] = [point.to_dict() for point in self.left_out]
        return result


def local_slopes(log_losses: np.ndarray, depths: np.ndarray, offset: float, confidence: float) -> pd.DataFrame:
    """Slopes between neighbouring depths: -(ln L2 - ln L1) / (ln(ell2 - offset) - ln(ell1 - offset)).

    Args: log_losses (replicates, depths), NaN where there is none; depths (depths,), ascending.
    Returns: a row a pair: depth_low, depth_high, depth_middle (geometric), slope (mean over the replicates that have
        both depths; NaN if none has), low, high (t over replicates; NaN with fewer than two).

    >>> local_slopes(np.log([[1.0, 0.5, 0.125]]), np.array([1.0, 2.0, 4.0]), 0.0, 0.95)["slope"].round(9).tolist()
    [1.0, 2.0]
    """
    slopes = -np.diff(log_losses, axis=1) / np.diff(np.log(depths - offset))
    rows = []
    for i, column in enumerate(slopes.T):
        values = column[~np.isnan(column)]
        mean = float(values.mean()) if len(values) else np.nan
        low, high = mean_interval(values, confidence) or (np.nan, np.nan)
        rows.append((depths[i], depths[i + 1], np.sqrt(depths[i] * depths[i + 1]), mean, low, high))
    return pd.DataFrame(rows, columns=["depth_low", "depth_high", "depth_middle", "slope", "low", "high"])
