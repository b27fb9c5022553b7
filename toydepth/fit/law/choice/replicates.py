"""Pure error: what repeated runs of one point differ by, and whether a law misses by more than that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import fdtrc

from toydepth.fit.checks import plain
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.text import significant


@dataclass(frozen=True, eq=False)
class PureError:
    """The spread of losses at points that several rows have: a noise that no law enters.

    Attributes:
        rows: without copies, that is rows whose point and loss are those of an earlier row.
        copies: how many of those there were. num_points: points with two rows or more; num_rows: rows there.
        num_distinct: points in all. sum_squares, degrees: of the spread within points, of ln L or L as the objective
            has it. std: its root mean square. within_groups: repeated points of which one group has two rows.
        reason: why there is none; None where there is.
    """

    rows: Rows
    copies: int
    num_points: int
    num_rows: int
    num_distinct: int
    sum_squares: float
    degrees: int
    within_groups: int
    of_log: bool
    reason: str | None

    @property
    def std(self) -> float | None:
        """Of one row at a point, None without repeats."""
        return None if self.reason else float(np.sqrt(self.sum_squares / self.degrees))

    def lines(self) -> list[str]:
        """Returns it as sentences."""
        found = []
        if self.copies:
            found.append(
                f"{self.copies} row{'s have' if self.copies > 1 else ' has'} the point and the very loss of another: "
                "taken as copies, not as noise, and counted out here"
            )
        if self.reason:
            return [*found, self.reason]
        of = "ln L" if self.of_log else "L"
        found.append(
            f"{self.num_rows} rows repeat {self.num_points} point{'s' * (self.num_points > 1)}: replicate noise "
            f"{significant(self.std)} of {of}, {self.degrees} degrees of freedom"
        )
        if self.within_groups:
            found.append(
                f"at {self.within_groups} of these points rows of one group differ: "
                "noise within a group may be less than that between groups"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        names = ("copies", "num_points", "num_rows", "degrees", "std", "within_groups", "reason")
        return plain({name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class LackOfFit:
    """F test of a law against pure error: statistic, its degrees (law, noise), p value; or why there is none."""

    statistic: float | None
    degrees: tuple[int, int] | None
    p_value: float | None
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return plain(
            {"F": self.statistic, "degrees": self.degrees, "p_value": self.p_value, "reason": self.reason},
        )


def find_pure_error(rows: Rows, objective: Objective) -> PureError:
    """Finds rows that repeat a point, in every variable of the table, and what their losses differ by.

    sum_squares = sum over points and their rows of w (y - mean y)^2, y = ln L or, for the objective linear, L; the
    degrees of freedom are the rows less one, of each point. A row with the very loss of another at its point is a copy
    (the same run twice, or losses that were rounded): it says nothing of noise and would make it too small, so it is
    counted out. Where rounding makes true repeats equal, the noise found here is a little too large instead.

    Args:
        rows: as chosen.
        objective: of which residuals are.

    Example:
        >>> from toydepth.fit.law.table.choose import choose_rows
        >>> table = {"N": [1, 1, 1, 2, 3], "loss": [3.0, 3.2, 3.2, 2.0, 1.5]}
        >>> pure = find_pure_error(choose_rows(table, {"N": "N"}, "loss"), Objective("linear"))
        >>> pure.copies, pure.num_points, pure.degrees, round(pure.std, 4)
        (1, 1, 1, 0.1414)

    Source: Draper and Smith, Applied Regression Analysis, 3rd edition, section 2.1.
    """
    points = np.array(list(rows.variables.values()))
    both = np.vstack([points, rows.loss])
    first = np.sort(np.unique(both, axis=1, return_index=True)[1])
    copies = rows.num_rows - len(first)
    unique = rows.take(first) if copies else rows
    codes = np.unique(points[:, first], axis=1, return_inverse=True)[1].ravel()
    weights = np.ones(unique.num_rows) if unique.weights is None else unique.weights
    y = np.log(unique.loss) if objective.of_log else unique.loss
    times = np.bincount(codes)
    means = np.bincount(codes, weights * y) / np.bincount(codes, weights)
    repeated = times > 1
    again = repeated[codes]
    squares = float(np.sum((weights * (y - means[codes]) ** 2)[again]))
    degrees = int(np.sum(times[repeated] - 1))
    within = 0
    if unique.groups is not None:
        pairs, count = np.unique(np.array([codes, unique.groups]), axis=1, return_counts=True)
        within = len(np.unique(pairs[0, count > 1]))
    reason = None
    if not degrees:
        reason = "no row repeats another's point" + (" with another loss" if copies else "")
        reason += ": no replicate noise to compare with"
    return PureError(
        unique,
        copies,
        int(repeated.sum()),
        int(times[repeated].sum()),
        len(times),
        squares,
        degrees,
        within,
        objective.of_log,
        reason,
    )


def lack_of_fit(pure: PureError, sum_squares: float, num_parameters: int, objective: Objective) -> LackOfFit:
    """Tests whether a law misses the points by more than repeats differ.

    F = ((SSR - SSP) / (points - p)) / (SSP / degrees), SSR the fit's sum of squares on the rows without copies, SSP
    that of pure error.

    Args:
        pure: of the rows.
        sum_squares: SSR.
        num_parameters: p.
        objective: of the fit; F is of least squares, so that huber and student have none.

    Example:
        >>> from toydepth.fit.law.table.choose import choose_rows
        >>> table = {"N": [1, 1, 2, 3], "loss": [1.0, 3.0, 4.0, 6.0]}
        >>> pure = find_pure_error(choose_rows(table, {"N": "N"}, "loss"), Objective("linear"))
        >>> found = lack_of_fit(pure, 6.0, 1, Objective("linear"))  # ((6 - 2) / 2) / (2 / 1)
        >>> found.statistic, found.degrees, round(found.p_value, 4)
        (1.0, (2, 1), 0.5774)
    """
    if pure.reason:
        return LackOfFit(None, None, None, pure.reason)
    if objective.kind not in ("log", "linear"):
        why = f"F is of least squares, not of the {objective.in_words}: compare the residual std with the noise"
        return LackOfFit(None, None, None, why)
    left = pure.num_distinct - num_parameters
    if left < 1:
        why = f"{pure.num_distinct} distinct points for {num_parameters} parameters leave nothing to test"
        return LackOfFit(None, None, None, why)
    noise = pure.sum_squares / pure.degrees
    # A sum of squares is never below that of the means but for rounding.
    statistic = max(sum_squares - pure.sum_squares, 0.0) / left / noise
    return LackOfFit(statistic, (left, pure.degrees), float(fdtrc(left, pure.degrees, statistic)), None)
