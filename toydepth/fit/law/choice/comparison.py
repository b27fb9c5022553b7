"""Laws side by side on the same rows: the answer of `compare_laws`, as text and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toydepth.fit.checks import plain
from toydepth.fit.law.choice.criteria import Criteria, likelihood_text
from toydepth.fit.law.choice.holdout import HoldOut
from toydepth.fit.law.choice.nested import NestedTest
from toydepth.fit.law.choice.replicates import LackOfFit, PureError
from toydepth.fit.law.choice.scales import ScaleErrors
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law
from toydepth.fit.law.text import align, p_value_text, significant


@dataclass(frozen=True, eq=False)
class Comparison:
    """Laws side by side on the same rows, by one objective.

    Attributes:
        rows, objective, confidence: as given. laws, estimates (minima), residual_std: by name.
        criteria: by name; empty where there are none (no_criteria says why).
        scales: predictions of model sizes left out. holdout: of the largest runs.
        pure_error: of repeated rows; misfit: {law: F test against it}. nested: the tests of pairs.
        skipped: {law: why it was not fitted}. notes: sentences.
    """

    rows: Rows
    objective: Objective
    confidence: float
    laws: dict[str, Law]
    estimates: dict[str, Estimate]
    residual_std: dict[str, float]
    criteria: dict[str, Criteria]
    no_criteria: str | None
    scales: ScaleErrors
    holdout: HoldOut
    pure_error: PureError
    misfit: dict[str, LackOfFit]
    nested: tuple[NestedTest, ...]
    skipped: dict[str, str]
    notes: tuple[str, ...]

    def report(self) -> str:
        """Returns the comparison as text."""
        of = "ln L" if self.objective.of_log else "L"
        count = len(self.laws)
        lines = [f"{count} law{'s' * (count > 1)} on {self.rows.num_rows} rows; objective: {self.objective.in_words}"]
        lines += [f"  {name}: {law.formula()}" for name, law in self.laws.items()]
        lines += [f"  {name}: not fitted, {why}" for name, why in self.skipped.items()]
        table = [["", "parameters", "objective", f"residual std of {of}", "AIC", "AICc", "BIC", "weight"]]
        for name, e in self.estimates.items():
            one = self.criteria.get(name)
            numbers = [one.aic, one.aicc, one.bic] if one else [None] * 3
            cells = ["-" if x is None else f"+{x:.1f}" for x in numbers]
            weight = "-" if one is None or one.weight is None else f"{one.weight:.3f}"
            table.append(
                [name, str(e.theta.size), f"{e.value:.6g}", significant(self.residual_std[name]), *cells, weight]
            )
        lines += ["", *align(table)]
        lines.append(
            f"  no criteria: {self.no_criteria}"
            if self.no_criteria
            else f"  AIC, AICc, BIC less the best law's; weights of AICc; likelihood: {likelihood_text(self.objective)}"
        )
        if self.nested:
            lines += ["", *(line for test in self.nested for line in test.lines())]
        lines += ["", *self.scales.lines(), "", *self.holdout.lines(), "", *self._misfit_lines()]
        if self.notes:
            lines += ["", *(f"note: {note}" for note in self.notes)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison for JSON."""
        laws = {}
        for name, law in self.laws.items():
            e, one = self.estimates[name], self.criteria.get(name)
            laws[name] = {
                "formula": law.formula(),
                "num_parameters": e.theta.size,
                "objective": e.value,
                "residual_std": self.residual_std[name],
                "criteria": None if one is None else dict(one.__dict__),
                "lack_of_fit": self.misfit[name].to_dict(),
                "share_agreeing": e.share_agreeing,
                "converged": e.converged,
            }
        return plain(
            {
                "schema": 1,
                "rows_used": self.rows.num_rows,
                "objective": {"kind": self.objective.kind, "in_words": self.objective.in_words},
                "likelihood": likelihood_text(self.objective),
                "confidence": self.confidence,
                "laws": laws,
                "skipped": self.skipped,
                "no_criteria": self.no_criteria,
                "nested": [test.to_dict() for test in self.nested],
                "leave_one_scale_out": self.scales.to_dict(),
                "hold_out_largest": self.holdout.to_dict(),
                "pure_error": self.pure_error.to_dict(),
                "notes": self.notes,
            }
        )

    def _misfit_lines(self) -> list[str]:
        lines = [f"lack of fit: {sentence}" for sentence in self.pure_error.lines()]
        if self.pure_error.reason:
            return lines
        for name, one in self.misfit.items():
            if one.reason or one.degrees is None or one.p_value is None:
                lines.append(f"  {name}: no test, {one.reason}")
                continue
            more = "misses by more than" if one.p_value < 1 - self.confidence else "misses by no more than"
            degrees = ", ".join(map(str, one.degrees))
            test = f"F({degrees}) = {significant(one.statistic)}, p {p_value_text(one.p_value)}"
            lines.append(f"  {name} {more} repeats differ ({test})")
        return lines
