"""The answer of a law's fit: numbers with intervals and verdicts, what was left out, predictions; as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from toydepth.fit.checks import check_confidence, plain, refuse
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.law_text import law_lines
from toydepth.fit.law.parameter import Parameter, read_parameter
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law, space_name
from toydepth.intervals import t_interval


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

    def __repr__(self) -> str:
        return f"LawFit({self.law.formula()}; {self.estimate.num_rows} rows; report() tells all)"

    @property
    def values(self) -> dict[str, float]:
        """Every number of the law at the minimum, fixed ones too, identified or not: {name: value}."""
        return {name: one.estimate for name, one in self.parameters.items()}

    @property
    def covariance(self) -> pd.DataFrame:
        """Of (ln c, free exponents, ln L0), rows and columns named `ln c_m`, `alpha_m`, `ln L0`."""
        names = [space_name(name) for name in self.law.parameters]
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
        return {name: read_parameter(self, name, free, errors) for name in names}

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
        if confidence is not None:
            check_confidence(confidence)
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

    def report(self, show_all: bool = False) -> str:
        """Returns the fit as text; with show_all also the numbers that the rows do not determine."""
        return "\n".join(law_lines(self, show_all))

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
                "covariance_names": [space_name(name) for name in self.law.parameters],
                "covariance": e.covariance,
                "correlations": correlations,
                "seed": self.seed,
                "notes": [*self.rows.notes, *self.caveats],
            }
        )

    def to_json(self, show_all: bool = False) -> str:
        """Returns `to_dict` as a line of JSON."""
        return json.dumps(self.to_dict(show_all), allow_nan=False)

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
