"""`toydepth law`: the table, with columns made of others, and which columns are the law's variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toydepth.cli.law_options import ColumnOptions, TauOptions
from toydepth.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def read_variables(table: str, columns: ColumnOptions, tau: TauOptions) -> tuple[pd.DataFrame, dict[str, str]]:
    """Returns the table and its variables, {symbol: column}."""
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
    ways = {"--tau": columns.tau, "--tau-rates": tau.tau_rates, "--tau-schedule": tau.tau_schedule}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"tau must come from one of {', '.join(ways)}, got {' and '.join(given)}. Leave one out.")
    if columns.tau is not None:
        named["tau"] = columns.tau
    elif tau.tau_rates is not None or tau.tau_schedule is not None:
        if "tau" in frame:
            raise InputError("tau must not be a column of the table too, got both. Give --tau tau, or rename it.")
        frame = frame.assign(tau=_tau(frame, tau))
        named["tau"] = "tau"
    for term in columns.terms:
        if term in named:
            raise InputError(f"terms must be other than the symbols in use, got {term}. It is {named[term]} already.")
        named[term] = term
    return frame, named


def _tau(frame: pd.DataFrame, options: TauOptions) -> Any:
    from toydepth.fit.law.table.tau import tau_from_rates, tau_from_schedule

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
    from toydepth.fit.law.table.cells import check_has_column, column_of

    check_has_column(frame, "columns", name)
    return column_of(frame, name)


def _numbers(frame: pd.DataFrame, name: str) -> Any:
    """A column as numbers; what is none becomes NaN, and its row is counted among those left out."""
    from toydepth.fit.law.table.cells import THOUSANDS, read_numbers, show_cell

    column = _column(frame, name)
    values, kinds = read_numbers(column)
    grouped = kinds == THOUSANDS
    if grouped.any():
        raise InputError(f"{name} must be a column of numbers, got {show_cell(column.iloc[int(grouped.argmax())])}.")
    return values
