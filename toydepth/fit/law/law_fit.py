"""The answer of a law's fit: numbers with intervals and verdicts, what was left out, predictions; as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from toydepth.fit.checks import plain, refuse
from toydepth.fit.intervals import Interval, t_interval
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law
from toydepth.fit.law.text import align, significant


@dataclass(frozen=True)
class Parameter:
    """One number of a law.

    Attributes:
        name: c_<variable>, alpha_<variable> or L0.
        value: None where the rows do not determine it; `estimate` has what the minimum says even so.
        standard_error: of the value itself. Of c and L0 it is value times the error of the logarithm
            (`log_standard_error`): the two are easily taken for each other.
        low, high: of the headline interval.
        identified: whether the rows determine it; reason: why not.
        space: where the interval was built, "ln" for c and L0 (which are positive), "plain" for exponents.
        fixed: whether it was given, not fitted; shared_with: whose number it is.
        intervals: every method that was asked for, to (low, high), or None on a side, or as a whole, that is open.
    """

    name: str
    estimate: float
    value: float | None
    standard_error: float | None
    log_standard_error: float | None
    low: float | None
    high: float | None
    identified: bool
    reason: str | None
    space: str
    fixed: bool
    shared_with: str | None
    intervals: dict[str, tuple[float | None, float | None] | None]


@dataclass(frozen=True, eq=False)
class LawFit:
    """A law fitted to the rows of a table.

    Attributes:
        law, labels (symbol to column), offsets, rows (what was used and left out), estimate (the minimum).
        unidentified: {parameter: why}. headline: the method of `low`, `high`. confidence.
        natural_intervals: {method: {parameter: (low, high) | None}}, c and L0 already out of their logarithms.
        draws (k, p): bootstrap draws of (ln c, free exponents, ln L0), or None. caveats: sentences for the reader.
    """

    law: Law
    labels: dict[str, str]
    offsets: dict[str, float]
    rows: Rows
    estimate: Estimate
    unidentified: dict[str, str]
    headline: str
    confidence: float
    natural_intervals: dict[str, dict[str, tuple[float | None, float | None] | None]]
    draws: np.ndarray | None
    seed: int
    caveats: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        """Every number of the law at the minimum, fixed ones too, identified or not: {name: value}."""
        return {name: one.estimate for name, one in self.parameters.items()}

    @property
    def covariance(self) -> pd.DataFrame:
        """Of (ln c, free exponents, ln L0), rows and columns named `ln c_m`, `alpha_m`, `ln L0`."""
        names = [_space_name(name) for name in self.law.parameters]
        return pd.DataFrame(self.estimate.covariance, names, names)

    @property
    def correlations(self) -> pd.DataFrame:
        """Of the estimates, as `covariance`."""
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        return self.covariance / np.outer(errors, errors)

    @property
    def intervals(self) -> dict[str, dict[str, tuple[float | None, float | None] | None]]:
        """{method: {parameter: (low, high)}}; a side that is open is None."""
        return self.natural_intervals

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Every number of the law by name: coefficients, exponents, L0."""
        free = dict(zip(self.law.parameters, self.estimate.natural, strict=True))
        errors = dict(zip(self.law.parameters, np.sqrt(np.maximum(np.diag(self.estimate.covariance), 0)), strict=True))
        names = [term.coefficient for term in self.law.terms] + [term.alpha for term in self.law.terms] + ["L0"]
        return {name: self._parameter(name, free, errors) for name in names}

    @property
    def residual_std(self) -> float:
        """Of what the objective is of (ln L, or L), with n - p degrees of freedom."""
        return self.estimate.residual_std

    def predict(
        self,
        variables: Mapping[str, Any] | pd.DataFrame,
        *,
        new_run: bool = False,
        confidence: float | None = None,
    ) -> pd.DataFrame:
        """Returns the loss at given points with its interval.

        The interval is that of ln L by its derivatives and the covariance: ln L +- t sqrt(j^T V j), for a new run also
        with the variance of the residuals. What the law cannot say (a wrong form) it does not hold.

        Args:
            variables: symbol to number or array (n,), or a table with the fit's columns. Its offsets are taken off.
            new_run: the interval of one more run, rather than of the law.
            confidence: default: the fit's.

        Returns:
            A table (n rows): the variables, loss, low, high, and `distance`: how far outside the fitted rows, as the
            largest factor in any variable (1 inside).

        Raises:
            InputError: for a variable that is missing, or not above its offset.
        """
        values = self._points(variables)
        shifted = {name: values[name] - self.offsets.get(name, 0.0) for name in values}
        model = self.estimate.problem.model.on(shifted)
        log_loss, jacobian = model.jacobian(self.estimate.theta)
        variance = np.einsum("pn,pq,qn->n", jacobian, self.estimate.own_covariance, jacobian)
        if new_run:
            # In ln L, whatever the objective was of.
            noise = (
                self.residual_std if self.estimate.problem.objective.of_log else self.residual_std / np.exp(log_loss)
            )
            variance = variance + noise**2
        spans = [t_interval(x, e, self.estimate.interval_degrees, confidence or self.confidence)
                 for x, e in zip(log_loss, np.sqrt(variance), strict=True)]  # fmt: skip
        low, high = (np.array([np.nan if s is None else np.exp(s[i]) for s in spans]) for i in (0, 1))
        distance = np.ones(len(log_loss))
        for name, known in self.rows.variables.items():
            if name in shifted:
                distance = np.maximum(distance, np.maximum(shifted[name] / known.max(), known.min() / shifted[name]))
        return pd.DataFrame({**values, "loss": np.exp(log_loss), "low": low, "high": high, "distance": distance})

    def draw(self, count: int = 1000, seed: int | None = None) -> np.ndarray:
        """Returns draws (k, p) of (ln c, free exponents, ln L0): the bootstrap's, or else `count` normal ones."""
        if self.draws is not None:
            return self.draws
        generator = np.random.default_rng(self.seed if seed is None else seed)
        # By eigenvectors: a variance that is all but infinite makes the others' rounding look negative.
        values, vectors = np.linalg.eigh(self.estimate.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        return self.estimate.natural + generator.normal(size=(count, len(values))) @ root.T

    def report(self, show_all: bool = False) -> str:
        """Returns the fit as text; with show_all also the numbers that the rows do not determine."""
        e = self.estimate
        where = ", ".join(
            f"{name} = {self.labels[name]}" + (f" - {self.offsets[name]:g}" if self.offsets.get(name) else "")
            for name in self.law.variables
        )
        lines = [self.law.formula(), f"  {where}", ""]
        methods = list(self.natural_intervals)
        several = len(methods) > 1
        heads = [f"{method}" + (" *" if several and method == self.headline else "") for method in methods]
        table = [["", "value", "std. error", *[f"{100 * self.confidence:g} % {head}" for head in heads], ""]]
        reasons = list(dict.fromkeys(one.reason for one in self.parameters.values() if one.reason))
        for one in self.parameters.values():
            table.append(self._line(one, methods, reasons, show_all))
        lines += align(table)
        lines += [f"  ({i}) {reason}" for i, reason in enumerate(reasons, start=1)]
        lines += ["", f"objective: {e.problem.objective.in_words}, sum {e.value:.8g}, mean {e.value / e.num_rows:.8g}"]
        spread = "of ln L" if e.problem.objective.of_log else "of L"
        lines.append(
            f"rows: {e.num_rows} used of {self.rows.total}; {_counted(len(self.law.parameters), 'parameter')}; "
            f"residual standard deviation {self.residual_std:.4g} {spread}"
        )
        searched = f" (on {e.search_rows} rows, the best taken on to all)" if e.search_rows < e.num_rows else ""
        lines.append(
            f"minimum: {100 * e.share_agreeing:.0f} % of {e.num_starts} starts agree{searched}; "
            f"condition number {e.condition:.3g}; {self._strongest()}"
        )
        for left in self.rows.left_out:
            lines.append(f"left out: {left.count} row{'s' * (left.count > 1)}: {left.reason}")
        lines += [f"note: {note}" for note in (*self.rows.notes, *self.caveats)]
        return "\n".join(lines)

    def to_dict(self, show_all: bool = False) -> dict[str, Any]:
        """Returns the fit for JSON; numbers that the rows do not determine are None unless show_all."""
        e = self.estimate
        parameters = {}
        for name, one in self.parameters.items():
            shown = one.identified or show_all
            parameters[name] = {
                "value": one.estimate if shown else None,
                "standard_error": one.standard_error if shown else None,
                "log_standard_error": one.log_standard_error if shown else None,
                "low": one.low if shown else None,
                "high": one.high if shown else None,
                "identified": one.identified,
                "reason": one.reason,
                "space": one.space,
                "fixed": one.fixed,
                "shared_with": one.shared_with,
                "intervals": one.intervals if shown else {},
            }
        correlations = self.correlations.to_numpy()
        return plain(
            {
                "schema": 1,
                "law": {
                    "name": self.law.name,
                    "formula": self.law.formula(),
                    "terms": [{"variable": t.variable, "exponent": t.exponent} for t in self.law.terms],
                    "irreducible_loss": self.law.irreducible_loss,
                    "columns": self.labels,
                    "offsets": self.offsets,
                },
                "parameters": parameters,
                "confidence": self.confidence,
                "headline": self.headline,
                "objective": {
                    "kind": e.problem.objective.kind,
                    "in_words": e.problem.objective.in_words,
                    "sum": e.value,
                    "mean": e.value / e.num_rows,
                },
                "residual_std": self.residual_std,
                "rows_used": e.num_rows,
                "rows_total": self.rows.total,
                "left_out": [left.to_dict() for left in self.rows.left_out],
                "minimum": {
                    "num_starts": e.num_starts,
                    "share_agreeing": e.share_agreeing,
                    "search_rows": e.search_rows,
                    "converged": e.converged,
                },
                "condition_number": e.condition,
                "covariance_names": [_space_name(name) for name in self.law.parameters],
                "covariance": e.covariance,
                "correlations": correlations,
                "seed": self.seed,
                "notes": [*self.rows.notes, *self.caveats],
            }
        )

    def to_json(self, show_all: bool = False) -> str:
        """Returns `to_dict` as a line of JSON."""
        return json.dumps(self.to_dict(show_all), allow_nan=False)

    def _parameter(self, name: str, free: Mapping[str, float], errors: Mapping[str, float]) -> Parameter:
        logged = name == "L0" or name.startswith("c_")
        shared, source = None, name
        if name not in free:
            term = next((t for t in self.law.terms if t.alpha == name), None)
            exponent = self.law.irreducible_loss if term is None else term.exponent
            if not isinstance(exponent, str):
                number = float(exponent or 0.0)
                return Parameter(name, number, number, None, None, None, None, True, None, "plain", True, None, {})
            shared, source = exponent, exponent
        value = float(np.exp(free[source])) if logged else float(free[source])
        error = float(errors[source])
        reason = self.unidentified.get(source)
        spans = {method: found.get(source) for method, found in self.natural_intervals.items()}
        low, high = spans.get(self.headline) or (None, None)
        return Parameter(
            name,
            value,
            None if reason else value,
            value * error if logged else error,
            error if logged else None,
            low,
            high,
            reason is None,
            reason,
            "ln" if logged else "plain",
            False,
            shared,
            spans,
        )

    def _line(self, one: Parameter, methods: list[str], reasons: Sequence[str | None], show_all: bool) -> list[str]:
        if one.fixed:
            return [one.name, significant(one.estimate), "fixed"]
        number = "" if one.identified else f"({reasons.index(one.reason) + 1})"
        if not one.identified and not show_all:
            return [one.name, "?", f"not identified {number}"]
        cells = [
            one.name,
            significant(one.estimate, one.standard_error),
            significant(one.standard_error, one.standard_error),
        ]
        for method in methods:
            cells.append(interval_text(one.intervals.get(method), one.standard_error))
        tail = f"as {one.shared_with}" if one.shared_with else ""
        return [*cells, tail if one.identified else f"not identified {number}"]

    def _strongest(self) -> str:
        names = self.law.parameters
        table = np.array(self.correlations)
        if len(names) < 2:
            return "one parameter"
        upper = np.triu(np.abs(table), 1)
        i, j = np.unravel_index(int(np.argmax(np.nan_to_num(upper))), upper.shape)
        return f"largest correlation {table[i, j]:.2f} ({_space_name(names[i])}, {_space_name(names[j])})"

    def _points(self, variables: Mapping[str, Any] | pd.DataFrame) -> dict[str, np.ndarray]:
        found = {}
        for name in self.law.variables:
            known = name if name in variables else self.labels[name]
            if known not in variables:
                raise refuse(
                    "variables", f"with {name} (or {self.labels[name]})", ", ".join(map(str, variables)), "Add it."
                )
            values = np.atleast_1d(np.asarray(variables[known], float))
            offset = self.offsets.get(name, 0.0)
            if not (np.isfinite(values).all() and (values > offset).all()):
                wrong = values[~(np.isfinite(values) & (values > offset))][0]
                raise refuse(name, f"finite and greater than {offset:g}", f"{wrong:g}", "Give a point of the law.")
            found[name] = values
        return dict(zip(found, np.broadcast_arrays(*found.values()), strict=True))


def interval_text(interval: Interval | tuple[float | None, float | None] | None, error: float | None) -> str:
    """Writes `[0.83, 1.07]`; an open side as `...`, none as `-`."""
    if interval is None:
        return "-"
    low, high = interval
    return (
        f"[{'...' if low is None else significant(low, error)}, {'...' if high is None else significant(high, error)}]"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _space_name(name: str) -> str:
    return f"ln {name}" if name == "L0" or name.startswith("c_") else name
