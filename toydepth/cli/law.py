"""`toydepth law`: a scaling law of anybody's table, and what is asked of it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from toydepth.cli.output import check_given, print_json
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
    if simulate.simulate is not None:
        return _simulate(simulate, columns.loss, intervals.seed, output)
    if table is None:
        raise InputError("table must be a file (csv, tsv, jsonl, parquet), got none. Name one after the command.")
    check_given("table", table)
    check_given("folder", output.folder)
    if questions.reference is not None:
        return _reference(questions.reference, table, columns, output)
    frame, named = _variables(table, columns, tau)
    wanted = _law(law, named, table)
    named = {name: named[name] for name in wanted.variables}
    fit = _fit(frame, wanted, named, columns, law, rows, intervals)
    answers = _ask(fit, frame, named, columns, law, rows, intervals, questions)
    folder = Path(output.folder) if output.folder else Path("laws") / Path(table).name.split(".")[0]
    written = _write(fit, answers, folder, intervals.show_all, output.figures == "yes")
    if output.json:
        extra = {name: answer.to_dict() for name, answer in answers.items()}
        print_json(fit.to_dict(intervals.show_all) | extra | {"written": [str(path) for path in written]})
        return 0
    print("\n\n".join([fit.report(intervals.show_all), *(answer.report() for answer in answers.values())]))
    print(f"\nwritten: {folder}: {', '.join(path.name for path in written)}")
    return 0


def _variables(table: str, columns: ColumnOptions, tau: TauOptions) -> tuple[pd.DataFrame, dict[str, str]]:
    """Reads the table and names the variables: {symbol: column}."""
    from toydepth.fit.law.table.derive import add_columns, non_embedding_parameters
    from toydepth.fit.law.table.reading import read_table

    frame = read_table(table, thousands=columns.thousands)
    if columns.derive:
        frame = add_columns(frame, columns.derive)
    named = {
        symbol: column
        for symbol, column in (("m", columns.width), ("ell", columns.depth), ("N", columns.parameters))
        if column is not None
    }
    if columns.parameters == "derived":
        if columns.width is None or columns.depth is None:
            raise InputError("parameters must be a column, got derived. Name width and depth too: N = 12 m^2 ell.")
        width, depth = (_numbers(frame, column) for column in (columns.width, columns.depth))
        frame = frame.assign(**{"12 m^2 ell": non_embedding_parameters(width, depth)})
        named["N"] = "12 m^2 ell"
    if columns.data is not None:
        named["D"] = columns.data
    if columns.tau is not None:
        named["tau"] = columns.tau
    elif tau.tau_rates is not None or tau.tau_schedule is not None:
        frame = frame.assign(tau=_tau(frame, tau))
        named["tau"] = "tau"
    return frame, named | {term: term for term in columns.terms}


def _tau(frame: pd.DataFrame, options: TauOptions) -> Any:
    from toydepth.fit.law.table.derive import tau_from_rates, tau_from_schedule

    if options.step is None:
        raise InputError("step must be the column of the step, got none. tau is summed over steps.")
    steps = _numbers(frame, options.step)
    if options.tau_rates is not None:
        runs = None if options.run is None else _column(frame, options.run)
        return tau_from_rates(steps, _numbers(frame, options.tau_rates), runs)
    if options.peak is None or options.total_steps is None:
        raise InputError("peak and total_steps must be columns or numbers, got none. A schedule needs both.")
    return tau_from_schedule(
        steps,
        peak=_number_or_column(frame, "peak", options.peak),
        total_steps=_number_or_column(frame, "total_steps", options.total_steps),
        kind=options.tau_schedule or "constant",
        warmup_steps=_number_or_column(frame, "warmup_steps", options.warmup_steps),
        final_fraction=options.final_fraction,
        decay_fraction=options.decay_fraction,
    )


def _number_or_column(frame: pd.DataFrame, option: str, text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return _numbers(frame, text)


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    from toydepth.fit.law.table.reading import check_has_column, column_of

    check_has_column(frame, "columns", name)
    return column_of(frame, name)


def _numbers(frame: pd.DataFrame, name: str) -> Any:
    import pandas as pd

    return pd.to_numeric(_column(frame, name), errors="coerce").to_numpy(float)


def _law(options: LawOptions, named: dict[str, str], table: str) -> Law:
    from toydepth.fit.law import make_law

    fixed = dict(_fixed(text) for text in options.fix)
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

    posterior = sample_law(fit, seed=intervals.seed)
    headline = "nuts" if intervals.intervals == "nuts" else fit.headline
    found = fit.natural_intervals | {"nuts": posterior.intervals}
    return replace(fit, headline=headline, natural_intervals=found, caveats=(*fit.caveats, *posterior.caveats))


def _ask(
    fit: LawFit,
    frame: pd.DataFrame,
    named: dict[str, str],
    columns: ColumnOptions,
    law: LawOptions,
    rows: RowOptions,
    intervals: IntervalOptions,
    questions: QuestionOptions,
) -> dict[str, Any]:
    """Whatever else was asked: {name: answer}, each with report() and to_dict()."""
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

        answers["multiverse"] = multiverse(
            frame, fit.law, named, loss=columns.loss, query=rows.query, weights=columns.weights,
            groups=columns.groups, confidence=intervals.confidence, seed=intervals.seed,
        )  # fmt: skip
    return answers


def _write(fit: LawFit, answers: dict[str, Any], folder: Path, show_all: bool, draw: bool) -> list[Path]:
    from toydepth.fit.law.saved import write_law
    from toydepth.report.law_figures import write_law_figures

    folder.mkdir(parents=True, exist_ok=True)
    extra = {name: answer.to_dict() for name, answer in answers.items()}
    written = [write_law(fit, folder / "fit.json", show_all=show_all, extra=extra)]
    if draw:
        done = write_law_figures(fit, folder)
        written += done.paths
        for name, reason in done.skipped:
            print(f"toydepth law: not drawn: {name}: {reason}", file=sys.stderr)
        if "multiverse" in answers:
            from toydepth.report.law_multiverse_figure import write_multiverse_figure

            written += write_multiverse_figure(answers["multiverse"], folder).paths
    return written


def _reference(name: str, table: str, columns: ColumnOptions, output: OutputOptions) -> int:
    from toydepth.fit.law.table.reading import read_table
    from toydepth.fit.law.published.reference import run_reference

    given = {"m": columns.width, "ell": columns.depth, "D": columns.data, "N": columns.parameters}
    named = {symbol: column for symbol, column in given.items() if column is not None}
    done = run_reference(name, read_table(table, thousands=columns.thousands), named or None, loss=columns.loss)
    if output.json:
        print_json(done.to_dict())
    else:
        print(done.report())
    return 0


def _simulate(options: SimulateOptions, loss: str, seed: int, output: OutputOptions) -> int:
    from toydepth.fit.law.table.reading import read_table
    from toydepth.fit.law.saved import load_law
    from toydepth.fit.law.simulate import simulate_law

    check_given("simulate", options.simulate)
    check_given("output", output.output)
    if not options.design:
        raise InputError("design must be a table of the points, got none. Its rows are simulated.")
    saved = load_law(str(options.simulate))
    made = simulate_law(saved, read_table(options.design), noise=options.noise, seed=seed, loss=loss)
    path = Path(output.output or "simulated.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    made.to_csv(path, index=False)
    if output.json:
        print_json({"path": str(path), "rows": len(made), "noise": options.noise, "seed": seed})
    else:
        print(f"{path}: {len(made)} rows")
    return 0
