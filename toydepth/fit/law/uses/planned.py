"""Runs that are planned: their loss as the law has it, and which of them would teach most; as text and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from toydepth.errors import did_you_mean
from toydepth.fit.checks import plain, refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.text import align, significant
from toydepth.fit.law.uses.plan import next_runs


@dataclass(frozen=True, eq=False)
class Predictions:
    """table: the points, loss, low, high (of the law), run_low, run_high (of one more run), distance; confidence."""

    table: pd.DataFrame
    variables: tuple[str, ...]
    confidence: float

    def report(self) -> str:
        """Returns the losses as text; what lies beyond the rows is said."""
        level = f"{100 * self.confidence:g} %"
        rows = [[*self.variables, "loss", f"{level} of the law", f"{level} of a run", "beyond the rows"]]
        for point in self.table.to_dict("records"):
            error = (point["high"] - point["low"]) / 4
            spans = [
                f"[{significant(point[low], error)}, {significant(point[high], error)}]"
                for low, high in (("low", "high"), ("run_low", "run_high"))
            ]
            beyond = "no" if point["distance"] <= 1 else f"{point['distance']:.3g} times"
            rows.append(
                [*(f"{point[name]:g}" for name in self.variables), significant(point["loss"], error), *spans, beyond]
            )
        return "\n".join(["predicted losses", *align(rows)])

    def to_dict(self) -> dict[str, Any]:
        """Returns {runs: a record a point, confidence}."""
        return plain({"runs": self.table.to_dict("records"), "confidence": self.confidence})


@dataclass(frozen=True, eq=False)
class Plan:
    """table: of `next_runs`; target: what is to be known better; confidence: of its interval."""

    table: pd.DataFrame
    variables: tuple[str, ...]
    target: str
    confidence: float

    def report(self) -> str:
        """Returns the runs as text, best first."""
        has_cost = "cost" in self.table
        rows = [["run", *self.variables, *(["6 N D"] if has_cost else []), "half width", "of today's"]]
        for number, run in self.table.iterrows():
            cost = [f"{run['cost']:.3g}"] if has_cost else []
            points = [f"{run[name]:.4g}" for name in self.variables]
            rows.append([f"{number}", *points, *cost, f"{run['half_width']:.3g}", f"{100 * run['ratio']:.0f} %"])
        today = self.table["half_width_before"].iloc[0]
        head = (
            f"runs that would shrink the {100 * self.confidence:g} % interval of {self.target} most, one after another"
        )
        return "\n".join([f"{head} (half width by the covariance now {today:.3g}; if the law is right)", *align(rows)])

    def to_dict(self) -> dict[str, Any]:
        """Returns {target, runs: a record a run, confidence}."""
        runs = self.table.reset_index().to_dict("records")
        return plain({"target": self.target, "runs": runs, "confidence": self.confidence})


def predict_runs(fit: LawFit, text: str) -> Predictions:
    """Returns the loss of planned runs: "m=4096 ell=32 D=1e12", several separated by `;`.

    Example:
        >>> m = [64, 96, 128, 192, 256, 384]
        >>> from toydepth.fit.law.fitting import fit_law
        >>> runs = pd.DataFrame({"m": m, "loss": [40 / x + 1.7 for x in m]})
        >>> round(float(predict_runs(fit_law(runs, "universal", {"m": "m"}), "m=4000").table["loss"].iloc[0]), 4)
        1.71

    Raises:
        InputError: for what is no point, or lacks a variable of the law.
    """
    points = [_read_point(fit, part) for part in text.split(";") if part.strip()]
    if not points:
        raise refuse("predict", "a point such as m=4096 D=1e12", repr(text), "Name every variable of the law.")
    given = pd.DataFrame(points)
    table = fit.predict(given)
    run = fit.predict(given, new_run=True)
    table.insert(len(table.columns) - 1, "run_low", run["low"])
    table.insert(len(table.columns) - 1, "run_high", run["high"])
    return Predictions(table, fit.law.variables, fit.confidence)


def plan_runs(fit: LawFit, target: str, count: int = 5) -> Plan:
    """Returns the runs that would shrink the interval of a target most: see `next_runs`."""
    return Plan(next_runs(fit, target, count=count), fit.law.variables, target, fit.confidence)


def _read_point(fit: LawFit, text: str) -> dict[str, float]:
    point: dict[str, float] = {}
    for word in text.replace(",", " ").split():
        name, sign, value = word.partition("=")
        known = {label: symbol for symbol, label in fit.labels.items()} | {symbol: symbol for symbol in fit.labels}
        if not sign or name not in known:
            advice = f"Variables: {', '.join(fit.law.variables)}.{did_you_mean(name, known)}"
            raise refuse("predict", "of <variable>=<number>", word, advice)
        if known[name] in point:
            raise refuse("predict", "with each variable once", word, "Separate points by ;.")
        try:
            point[known[name]] = float(value)
        except ValueError:
            raise refuse("predict", "of <variable>=<number>", word, "For example m=4096.") from None
    missing = [name for name in fit.law.variables if name not in point]
    if missing:
        raise refuse("predict", f"with {', '.join(missing)}", repr(text.strip()), "Name every variable of the law.")
    return point
