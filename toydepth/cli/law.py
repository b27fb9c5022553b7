"""`toydepth law`: a scaling law of anybody's table, and what is asked of it."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toydepth.cli.law_answers import ask, draw, provenance, write
from toydepth.cli.law_options import (
    ColumnOptions,
    IntervalOptions,
    LawOptions,
    OutputOptions,
    QuestionOptions,
    RowOptions,
    SimulateOptions,
    TauOptions,
)
from toydepth.cli.law_table import read_variables
from toydepth.cli.output import check_given, check_unused, make_folder, print_json
from toydepth.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from toydepth.fit.law import Law, LawFit


def law(
    table: str | None = None,
    /,
    columns: ColumnOptions = ColumnOptions(),  # noqa: B008
    tau: TauOptions = TauOptions(),  # noqa: B008
    law: LawOptions = LawOptions(),  # noqa: B008
    rows: RowOptions = RowOptions(),  # noqa: B008
    intervals: IntervalOptions = IntervalOptions(),  # noqa: B008
    questions: QuestionOptions = QuestionOptions(),  # noqa: B008
    simulate: SimulateOptions = SimulateOptions(),  # noqa: B008
    output: OutputOptions = OutputOptions(),  # noqa: B008
) -> int:
    """Fits a scaling law, loss = sum of c / x^alpha + L0, to a table of losses; says what the table cannot tell.

    For example: toydepth law losses.csv --width d_model --depth n_layers --data tokens --exclude-highest 40. Every
    number and verdict: docs/notation.md, "Scaling laws".

    Args:
        table: csv, tsv, jsonl or parquet, a row a run or checkpoint.
        columns: Which columns are what.
        tau: The training time from a learning rate.
        law: What is fitted, and how.
        rows: Which rows.
        intervals: Intervals and search.
        questions: What else to ask.
        simulate: A table from a law.
        output: What is written.
    """
    import numpy as np

    if simulate.simulate is not None:
        return _simulate(simulate, columns.loss, intervals.seed, output)
    if table is None:
        raise InputError("table must be a file (csv, tsv, jsonl, parquet), got none. Name one after the command.")
    check_given("table", table)
    check_given("folder", output.folder)
    _check_used(tau, law, rows, intervals, questions)
    if questions.reference is not None:
        return _reference(questions.reference, table, columns, output)
    options = (columns, tau, law, rows, intervals, questions)
    # What overflows belongs to laws far from the rows, and ends as no number: no news for a person.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        frame, named = read_variables(table, columns, tau)
        wanted = _law(law, named, table)
        named = {name: named[name] for name in wanted.variables}
        folder = _folder(table, output)
        fit = _fit(frame, wanted, named, columns, law, rows, intervals)
        path, made_by = folder / "fit.json", provenance(table, options)
        answers: dict[str, Any] = {}
        write(fit, answers, made_by, path, intervals.show_all)
        # Said and kept before anything else is asked: a wrong question must not cost the fit.
        if not output.json:
            print(fit.report(intervals.show_all), flush=True)
        for name, answer in ask(fit, frame, named, columns, law, rows, intervals, questions):
            answers[name] = answer
            write(fit, answers, made_by, path, intervals.show_all)
            if not output.json:
                print(f"\n{answer.report()}", flush=True)
        written = [path, *draw(fit, answers, folder, output.figures == "yes")]
    if output.json:
        extra = {name: answer.to_dict() for name, answer in answers.items()}
        print_json(fit.to_dict(intervals.show_all) | extra | {"written": [str(path) for path in written]})
        return 0
    print(f"\nwritten: {folder}: {', '.join(path.name for path in written)}")
    return 0


def _folder(table: str, output: OutputOptions) -> Path:
    """Makes the folder of the results, before the fit; of the table's name, without its ending."""
    stem = re.sub(r"(?i)\.(csv|tsv|jsonl|ndjson|parquet)(\.(gz|bz2|xz))?$", "", Path(table).name)
    return make_folder(output.folder or Path("laws") / stem)


def _check_used(
    tau: TauOptions, law: LawOptions, rows: RowOptions, intervals: IntervalOptions, questions: QuestionOptions
) -> None:
    """Raises InputError for an option that nothing would read."""
    if questions.reference is not None:
        for group in (tau, law, rows, intervals):
            advice = "A published procedure brings its own rows, law and objective."
            check_unused(group, "be left out with --reference", advice)
    if not questions.follow:
        check_unused(questions, "come with --follow", "Add --follow.", ("cost", "budgets"))
    if tau.tau_schedule is None:
        schedule = ("peak", "total_steps", "warmup_steps", "final_fraction", "decay_fraction")
        check_unused(tau, "come with --tau-schedule", "Name a schedule.", schedule)


def _law(options: LawOptions, named: dict[str, str], table: str) -> Law:
    from toydepth.fit.law import make_law

    fixed: dict[str, float | str | None] = {}
    for text in options.fix:
        key, value = _fixed(text)
        if key in fixed:
            raise InputError(f"fix must name each number once, got {key} twice. Leave one out.")
        fixed[key] = value
    symbols = [name for name in named if options.law != "chinchilla" or name in ("N", "D")]
    if not symbols:
        advice = "Give --width, --depth, --data, --parameters, --tau or --terms."
        raise InputError(f"{table} must have a column for one term or more, got none named. {advice}")
    return make_law(options.law, symbols, fixed)


def _fixed(text: str) -> tuple[str, float | str | None]:
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise InputError(f"fix must be <name>=<number, other exponent, or free>, got {text}. For example alpha_ell=1.")
    if value == "free":
        return name, None
    if "/" in value:
        above, _, below = value.partition("/")
        try:
            return name, float(above) / float(below)
        except (ValueError, ZeroDivisionError):
            raise InputError(f"fix must be a number, got {text}. For example alpha_D=1/3.") from None
    try:
        return name, float(value)
    except ValueError:
        return name, value


def _fit(
    frame: pd.DataFrame,
    wanted: Law,
    named: dict[str, str],
    columns: ColumnOptions,
    law: LawOptions,
    rows: RowOptions,
    intervals: IntervalOptions,
) -> LawFit:
    from toydepth.fit.law import Objective, fit_law

    if intervals.intervals == "nuts":
        _need_numpyro()
    fit = fit_law(
        frame,
        wanted,
        named,
        loss=columns.loss,
        objective=Objective(law.objective, law.delta, law.degrees),
        exclude_highest=rows.exclude_highest,
        ties=rows.ties,
        query=rows.query,
        offsets=_offsets(law, wanted),
        weights=columns.weights,
        groups=columns.groups,
        duplicates=rows.duplicates,
        intervals="auto" if intervals.intervals == "nuts" else intervals.intervals,
        num_bootstrap=intervals.num_bootstrap,
        num_starts=intervals.num_starts,
        confidence=intervals.confidence,
        seed=intervals.seed,
    )
    if intervals.intervals == "nuts" or (intervals.intervals == "all" and _has_numpyro()):
        return _with_posterior(fit, intervals)
    if intervals.intervals == "all":
        return replace(fit, caveats=(*fit.caveats, "no posterior: numpyro is not installed (extra `bayes`)"))
    return fit


def _offsets(law: LawOptions, wanted: Law) -> dict[str, float]:
    if law.offset and "ell" not in wanted.variables:
        raise InputError(f"offset must be 0 for a law without depth, got {law.offset:g}. Name --depth.")
    return {"ell": law.offset} if law.offset else {}


def _has_numpyro() -> bool:
    return importlib.util.find_spec("numpyro") is not None


def _need_numpyro() -> None:
    if not _has_numpyro():
        advice = "Install the extra: pip install 'toydepth[bayes]'."
        raise InputError(f"intervals must be other than nuts without numpyro, got nuts. {advice}")


def _with_posterior(fit: LawFit, intervals: IntervalOptions) -> LawFit:
    from toydepth.bayes import sample_law

    try:
        posterior = sample_law(fit, seed=intervals.seed)
    except InputError as error:
        if intervals.intervals == "nuts":
            raise
        return replace(fit, caveats=(*fit.caveats, f"no posterior: {error}"))
    headline = "nuts" if intervals.intervals == "nuts" else fit.headline
    found = fit.natural_intervals | {"nuts": posterior.intervals}
    return replace(fit, headline=headline, natural_intervals=found, caveats=(*fit.caveats, *posterior.caveats))


def _reference(name: str, table: str, columns: ColumnOptions, output: OutputOptions) -> int:
    from toydepth.fit.law.published.reference import run_reference
    from toydepth.fit.law.table.reading import read_table

    given = {"m": columns.width, "ell": columns.depth, "D": columns.data, "N": columns.parameters}
    named = {symbol: column for symbol, column in given.items() if column is not None}
    done = run_reference(name, read_table(table, thousands=columns.thousands), named or None, loss=columns.loss)
    if output.json:
        print_json(done.to_dict())
    else:
        print(done.report())
    return 0


def _simulate(options: SimulateOptions, loss: str, seed: int, output: OutputOptions) -> int:
    from toydepth.fit.law.saved import load_law
    from toydepth.fit.law.simulate import simulate_law
    from toydepth.fit.law.table.reading import read_table

    check_given("simulate", options.simulate)
    check_given("output", output.output)
    if not options.design:
        raise InputError("design must be a table of the points, got none. Its rows are simulated.")
    saved = load_law(str(options.simulate))
    made = simulate_law(saved, read_table(options.design), noise=options.noise, seed=seed, loss=loss)
    path = Path(output.output or "simulated.csv")
    if path.suffix != ".csv":
        raise InputError(f"output must be a name that ends in .csv, got {path}. Add .csv to it.")
    if path.exists():
        raise InputError(f"output must be a new file, got {path}, which is there already. Give another name.")
    path.parent.mkdir(parents=True, exist_ok=True)
    made.to_csv(path, index=False)
    if output.json:
        print_json({"path": str(path), "rows": len(made), "noise": options.noise, "seed": seed})
    else:
        print(f"{path}: {len(made)} rows")
    return 0
