"""A table of depth exponents: a row a group, weights and step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from toydepth.fit.checks import plain, refuse
from toydepth.fit.depth.depth_fit import DepthFit
from toydepth.fit.depth.drift import Drift


@dataclass(frozen=True, eq=False)
class DepthExponent:
    """The exponent of one group of arms at one step, for one kind of weights.

    alpha in [low, high] from interval_source; replicates: how many; verdict and drift: of the trajectory up to this
    step; replicate_names: (teacher_seed, replicate) of the rows of the fit; caveats: the fit's and the table's; last:
    whether this is the last step that could be fitted. The other fields are the group's columns.
    """

    experiment: str
    teacher: str
    rho: float
    init: str
    block: str
    loss: str
    temperature: float
    head: str
    width: int
    teacher_depth: int
    recipe: str
    weights: str
    average_decay: float
    step: int
    alpha: float
    low: float | None
    high: float | None
    interval_source: str
    replicates: int
    depths: list[float]
    verdict: str
    drift: Drift
    fit: DepthFit
    replicate_names: list[tuple[Any, Any]]
    caveats: tuple[str, ...]
    last: bool

    def to_dict(self) -> dict[str, Any]:
        """Returns the row for JSON: the group's columns, alpha and interval, drift, local slopes, left out, caveats."""
        names = (
            "experiment teacher rho init block loss temperature head width teacher_depth recipe weights average_decay "
            "step alpha low high interval_source replicates depths verdict"
        )
        result = plain({name: getattr(self, name) for name in names.split()})
        result |= plain({"drift_per_log_step": self.drift.slope, "change_per_doubling": self.drift.change_per_doubling})
        result["drift"] = self.drift.to_dict()
        details = self.fit.to_dict()
        kept = (
            "c irreducible_loss offset window confidence intervals standard_errors alpha_by_replicate residual_std "
            "local_slopes"
        )
        result |= {name: details[name] for name in kept.split()}
        result["left_out"] = [self._name_replicate(point) for point in details["left_out"]]
        result["caveats"] = list(self.caveats)
        result["last"] = self.last
        return result

    def _name_replicate(self, point: dict[str, Any]) -> dict[str, Any]:
        seed, replicate = self.replicate_names[point["replicate"]]
        return {**point, "replicate": replicate, "teacher_seed": seed}


@dataclass(frozen=True, eq=False)
class FitTable:
    """rows: the exponents; refused: {group, weights, step, reason} for each group, or step, that could not be fitted.

    trajectories: every fitted step of every group, ascending, whichever of them are in rows.
    """

    rows: list[DepthExponent]
    refused: list[dict[str, Any]]
    trajectories: list[list[DepthExponent]] = field(repr=False)

    @property
    def last(self) -> list[DepthExponent]:
        """The last row of each group, in the order of the groups."""
        return [trajectory[-1] for trajectory in self.trajectories]

    def early(self, fraction: float = 0.05) -> list[DepthExponent]:
        """For each row of `last`, its group's row at the fitted step nearest, in ln step, to fraction * last step.

        Shows how far alpha has moved since early training. Nothing is fitted again. A group with a single fitted step
        gives that step: compare `step`.

        Args: fraction in (0, 1].
        Raises: InputError for a fraction out of range.
        """
        if not 0 < fraction <= 1:
            raise refuse("fraction", "greater than 0 and at most 1", repr(fraction), "Give 0.05 for a twentieth.")
        rows = []
        for trajectory in self.trajectories:
            target = fraction * trajectory[-1].step
            started = [row for row in trajectory if row.step > 0] or trajectory[-1:]
            rows.append(min(started, key=lambda row: abs(math.log(row.step / target)) if target > 0 else 0.0))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Returns {rows, refused} for JSON; a last row also has alpha_early and step_early (at 5 % of the steps)."""
        early = {id(row): before for row, before in zip(self.last, self.early(), strict=True)}
        rows = []
        for row in self.rows:
            result = row.to_dict()
            if id(row) in early:
                result |= plain({"alpha_early": early[id(row)].alpha, "step_early": early[id(row)].step})
            rows.append(result)
        return {"rows": rows, "refused": plain(self.refused)}
