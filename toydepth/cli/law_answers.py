"""`toydepth law`: what is asked of a fit besides its numbers, and the files that are left."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toydepth.cli.law_options import (
    ColumnOptions,
    IntervalOptions,
    LawOptions,
    QuestionOptions,
    RowOptions,
)
from toydepth.cli.output import changed

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
) -> Iterator[tuple[str, Any]]:
    """Yields whatever else was asked, one after another: name and answer, each with report() and to_dict()."""
    kind = fit.estimate.problem.objective
    if questions.compare:
        from toydepth.fit.law.choice.compare import compare_laws
        from toydepth.fit.law.choice.rivals import usual_rivals

        yield "comparison", compare_laws(
            fit.rows, usual_rivals(fit.law), fit.labels, fit.offsets, kind, seed=intervals.seed,
            confidence=intervals.confidence,
        )  # fmt: skip
    if questions.follow:
        from toydepth.fit.law.uses.consequences import consequences

        yield (
            "consequences",
            consequences(fit, cost=questions.cost, budgets=questions.budgets or None, seed=intervals.seed),
        )
    if questions.predict is not None:
        from toydepth.fit.law.uses.planned import predict_runs

        yield "predictions", predict_runs(fit, questions.predict)
    if questions.plan is not None:
        from toydepth.fit.law.uses.planned import plan_runs

        yield "plan", plan_runs(fit, questions.plan)
    if questions.multiverse:
        from toydepth.fit.law.choice.multiverse import multiverse
        from toydepth.fit.law.choice.options import EXCLUSIONS
        from toydepth.fit.law.objective import OBJECTIVES, Objective

        # The base is what was asked for; the other options are those of `multiverse`.
        yield (
            "multiverse",
            multiverse(
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
            ),
        )


def _first(base: Any, options: list[Any]) -> list[Any]:
    return [base, *(option for option in options if option != base)]


def write(fit: LawFit, answers: dict[str, Any], made_by: dict[str, Any], path: Path, show_all: bool) -> None:
    """Writes fit.json, with what it was made by and the answers in it."""
    from toydepth.fit.law.saved import write_law

    extra = {"made_by": made_by} | {name: answer.to_dict() for name, answer in answers.items()}
    write_law(fit, path, show_all=show_all, extra=extra)


def draw(fit: LawFit, answers: dict[str, Any], folder: Path, figures: bool) -> list[Path]:
    """Writes the fit's figures, where they are wanted, and the multiverse's table and figure; returns the files."""
    from toydepth.report.law_figures import write_law_figures
    from toydepth.report.law_multiverse_figure import write_multiverse_figure

    written: list[Path] = []
    drawn = [write_law_figures(fit, folder)] if figures else []
    if "multiverse" in answers:
        answers["multiverse"].frame.to_csv(folder / "multiverse.csv", index=False)
        written.append(folder / "multiverse.csv")
        drawn.append(write_multiverse_figure(answers["multiverse"], folder))
    for done in drawn:
        written += done.paths
        for name, reason in done.skipped:
            print(f"toydepth law: not drawn: {name}: {reason}", file=sys.stderr)
    return written


def provenance(table: str, options: Sequence[Any]) -> dict[str, Any]:
    """Returns what a fit can be repeated from: version, time, the table and its hash, every option that was changed."""
    from toydepth import __version__
    from toydepth.runs import utc_now

    given = {name: value for group in options for name, value in changed(group).items()}
    with open(table, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"toydepth": __version__, "time": utc_now(), "table": table, "sha256": digest, "options": given}
