"""`toydepth law`: what is asked of a fit besides its numbers, and the files that are left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toydepth.cli.law_options import ColumnOptions, IntervalOptions, LawOptions, QuestionOptions, RowOptions

if TYPE_CHECKING:
    import pandas as pd

    from toydepth.fit.law import LawFit


def ask(
    fit: LawFit,
    frame: pd.DataFrame,
    named: dict[str, str],
    columns: ColumnOptions,
    law: LawOptions,
    rows: RowOptions,
    intervals: IntervalOptions,
    questions: QuestionOptions,
) -> dict[str, Any]:
    """Returns whatever else was asked: {name: answer}, each with report() and to_dict()."""
    answers: dict[str, Any] = {}
    kind = fit.estimate.problem.objective
    if questions.compare:
        from toydepth.fit.law.choice.compare import compare_laws
        from toydepth.fit.law.choice.rivals import usual_rivals

        answers["comparison"] = compare_laws(
            fit.rows, usual_rivals(fit.law), fit.labels, fit.offsets, kind, seed=intervals.seed,
            confidence=intervals.confidence,
        )  # fmt: skip
    if questions.follow:
        from toydepth.fit.law.uses.consequences import consequences

        answers["consequences"] = consequences(
            fit, cost=questions.cost, budgets=questions.budgets or None, seed=intervals.seed
        )
    if questions.predict is not None:
        from toydepth.fit.law.uses.planned import predict_runs

        answers["predictions"] = predict_runs(fit, questions.predict)
    if questions.plan is not None:
        from toydepth.fit.law.uses.planned import plan_runs

        answers["plan"] = plan_runs(fit, questions.plan)
    if questions.multiverse:
        from toydepth.fit.law.choice.multiverse import multiverse
        from toydepth.fit.law.choice.options import EXCLUSIONS
        from toydepth.fit.law.objective import OBJECTIVES, Objective

        # The base is what was asked for; the other options are those of `multiverse`.
        answers["multiverse"] = multiverse(
            frame,
            fit.law,
            named,
            loss=columns.loss,
            exclusions=_first(rows.exclude_highest, [k for k in EXCLUSIONS if k < fit.rows.total / 2]),
            ties=_first(rows.ties, ["below", "rank"]),
            offsets=[{"ell": law.offset}, {}] if law.offset else None,
            objectives=_first(kind, [Objective(name) for name in OBJECTIVES if name != kind.kind]),
            query=rows.query,
            weights=columns.weights,
            groups=columns.groups,
            confidence=intervals.confidence,
            seed=intervals.seed,
        )
    return answers


def _first(base: Any, options: list[Any]) -> list[Any]:
    return [base, *(option for option in options if option != base)]


def write(fit: LawFit, answers: dict[str, Any], folder: Path, show_all: bool, draw: bool) -> list[Path]:
    """Writes fit.json, with the answers in it, and the figures; returns the files."""
    from toydepth.fit.law.saved import write_law
    from toydepth.report.law_figures import write_law_figures

    folder.mkdir(parents=True, exist_ok=True)
    extra = {name: answer.to_dict() for name, answer in answers.items()}
    written = [write_law(fit, folder / "fit.json", show_all=show_all, extra=extra)]
    if draw:
        drawn = [write_law_figures(fit, folder)]
        if "multiverse" in answers:
            from toydepth.report.law_multiverse_figure import write_multiverse_figure

            drawn.append(write_multiverse_figure(answers["multiverse"], folder))
        for done in drawn:
            written += done.paths
            for name, reason in done.skipped:
                print(f"toydepth law: not drawn: {name}: {reason}", file=sys.stderr)
    return written
