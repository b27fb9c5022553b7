"""From a table to a fitted law."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toydepth.fit.checks import check_confidence, check_count, is_number, refuse
from toydepth.fit.law.estimate import Estimate, find_minimum
from toydepth.fit.law.identify import find_unidentified
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.model import make_model
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.profile import Profile, profile_all
from toydepth.fit.law.resample import bootstrap, percentile_intervals
from toydepth.fit.law.solve import Problem
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.reading import read_table
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import LAWS, Law, make_law
from toydepth.intervals import t_interval

METHODS = ("covariance", "profile", "bootstrap")
_ALWAYS_PROFILED = 20_000  # rows; above, only where some standard error is not small
_FAR = np.log(1e100)  # of a loss from 1
_NO_NOISE = 1e-12  # of ln L: rounding
_SMALL_ERROR = 0.05  # of ln c, an exponent, ln L0: there the objective is a parabola


def fit_law(
    table: str | Path | pd.DataFrame | Mapping[str, Any] | Rows,
    law: Law | str = "decomposed",
    columns: Mapping[str, str] | None = None,
    *,
    loss: str = "loss",
    fixed: Mapping[str, float | str | None] | None = None,
    objective: Objective | str = "log",
    exclude_highest: int = 0,
    ties: str = "below",
    query: str | None = None,
    offsets: Mapping[str, float] | None = None,
    weights: str | None = None,
    groups: str | None = None,
    duplicates: str = "keep",
    intervals: str = "auto",
    num_bootstrap: int = 1000,
    num_starts: int = 64,
    confidence: float = 0.95,
    seed: int = 0,
) -> LawFit:
    """Fits L = sum_k c_k / (x_k - offset_k)^alpha_k + L0 to the rows of a table.

    Args:
        table: a file (csv, tsv, jsonl, parquet), a table, or rows chosen before.
        law: a Law, or the name of one over the variables of `columns`: decomposed (free exponents), universal (1 for m
            and ell, 1/3 for D or tau), chinchilla (N and D).
        columns: symbol to column, e.g. {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}; default: columns named
            as the symbols of a Law.
        loss: its column, of positive numbers.
        fixed: exponents (or L0) to fix to a number or share by name, e.g. {"alpha_ell": 1, "alpha_m": "alpha_D"}.
        objective: log, linear, huber, student, or an Objective with delta or degrees.
        exclude_highest, ties, query, offsets, weights, groups, duplicates: as in `choose_rows`.
        intervals: covariance, profile, bootstrap, all, or auto: bootstrap with groups or huber, else profile; of more
            than 20,000 rows the covariance where all errors are so small that a profile repeats it.
        num_bootstrap: resamples.
        num_starts: of the search for the minimum.
        confidence: of the intervals.
        seed: of starts and resamples.

    Returns:
        LawFit: values, intervals, covariance, predict, report, to_json.

    Raises:
        InputError: for an option or table that cannot be used; one line each.

    Example:
        >>> m, D = np.meshgrid([64, 128, 256, 512, 1024], [1e8, 1e9, 1e10, 1e11])
        >>> runs = pd.DataFrame({"m": m.ravel(), "D": D.ravel()})
        >>> runs["loss"] = 40 / runs.m + 400 / runs.D**0.3 + 1.7
        >>> fit = fit_law(runs, "decomposed", {"m": "m", "D": "D"})
        >>> {name: round(value, 3) for name, value in fit.values.items()}
        {'c_m': 40.0, 'c_D': 400.0, 'alpha_m': 1.0, 'alpha_D': 0.3, 'L0': 1.7}

    Source: docs/notation.md, "Scaling laws".
    """
    _check_kinds(table, law, columns, fixed, offsets)
    if isinstance(table, Rows):
        given = {"query": query, "exclude_highest": exclude_highest, "weights": weights, "groups": groups}
        given["offsets"] = offsets  # the rows have theirs taken off already
        for name, value in given.items():
            if value:
                advice = "Give it to choose_rows."
                raise refuse(name, "left out where rows were chosen before", reprlib.repr(value), advice)
    check_confidence(confidence)
    check_count("num_starts", num_starts, 2)
    check_count("num_bootstrap", num_bootstrap, 20)
    check_count("seed", seed, 0)
    if intervals not in ("auto", "all", *METHODS):
        raise refuse("intervals", f"one of auto, all, {', '.join(METHODS)}", intervals, "Give one of them.")
    if isinstance(law, str):
        names = tuple(columns) if columns is not None else tuple(table.variables) if isinstance(table, Rows) else ()
        law = make_law(law, names, fixed)
    elif fixed:
        law = law.with_exponents(fixed)
    columns = {name: (columns or {}).get(name, name) for name in law.variables}
    offsets = dict(offsets or {})
    if isinstance(table, Rows):
        rows = table
    else:
        frame = read_table(table) if isinstance(table, str | Path) else table
        rows = choose_rows(
            frame,  # pyright: ignore[reportArgumentType]
            columns,
            loss,
            offsets=offsets,
            exclude_highest=exclude_highest,
            ties=ties,
            query=query,
            weights=weights,
            groups=groups,
            duplicates=duplicates,
        )
    kind = objective if isinstance(objective, Objective) else Objective(objective)
    offsets = {name: float(value) for name, value in offsets.items()}
    return fit_rows(rows, law, columns, offsets, kind, intervals, num_bootstrap, num_starts, confidence, seed)


def _check_kinds(table: Any, law: Any, columns: Any, fixed: Any, offsets: Any) -> None:
    """Raises InputError for arguments of another kind: what follows would fail with something less clear."""
    for name, value in (("columns", columns), ("fixed", fixed), ("offsets", offsets)):
        if value is not None and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
            advice = 'For example {"m": "d_model"}.' if name == "columns" else 'For example {"ell": 1}.'
            raise refuse(name, "a mapping from names", reprlib.repr(value), advice)
    for name, value in (fixed or {}).items():
        if value is not None and not isinstance(value, str) and not is_number(value):
            raise refuse(name, "a number, the name of an exponent, or None", reprlib.repr(value), "Give one of them.")
    for name, value in (offsets or {}).items():
        if not is_number(value):
            raise refuse(f"the offset of {name}", "a number", reprlib.repr(value), "Give 0 for none.")
    if not isinstance(law, Law | str):
        raise refuse("law", f"a Law or one of {', '.join(LAWS)}", reprlib.repr(law), "Give one of them.")
    if isinstance(table, Rows):
        known = law.variables if isinstance(law, Law) else tuple(columns or table.variables)
        if missing := [name for name in known if name not in table.variables]:
            have = f"They have: {', '.join(table.variables)}."
            raise refuse("rows", f"with {', '.join(missing)}", "rows without", have)


def fit_rows(
    rows: Rows,
    law: Law,
    labels: Mapping[str, str],
    offsets: Mapping[str, float],
    objective: Objective,
    intervals: str = "auto",
    num_bootstrap: int = 1000,
    num_starts: int = 64,
    confidence: float = 0.95,
    seed: int = 0,
) -> LawFit:
    """Fits a law to chosen rows; arguments as in `fit_law`."""
    _check_groups(rows, law)
    estimate = estimate_rows(rows, law, objective, num_starts, seed)
    headline = intervals
    if intervals in ("auto", "all"):
        resampled = rows.groups is not None or objective.kind == "huber"
        headline = "bootstrap" if resampled else "covariance" if _is_plain(estimate) else "profile"
    methods = METHODS if intervals == "all" else (headline,)
    profiles = None
    if "profile" in methods or not _is_plain(estimate):
        profiles = profile_all(estimate, confidence)
    draws = bootstrap(estimate, num_bootstrap, seed) if "bootstrap" in methods else None
    reasons = find_unidentified(estimate, rows.variables, labels, profiles, confidence)
    found = {method: _intervals(method, estimate, profiles, draws, confidence) for method in methods}
    return LawFit(
        law, dict(labels), dict(offsets), rows, estimate, reasons, headline, confidence, found, draws, seed,
        tuple(_caveats(estimate, rows)),
    )  # fmt: skip


def estimate_rows(
    rows: Rows,
    law: Law,
    objective: Objective,
    num_starts: int = 64,
    seed: int = 0,
    also: np.ndarray | None = None,
) -> Estimate:
    """Finds the minimum of an objective on chosen rows; what every fit here goes through.

    Raises:
        InputError: for no more rows than parameters.
    """
    needed = len(law.parameters) + 1
    if rows.num_rows < needed:
        lost = "; ".join(f"{left.count} left out: {left.reason}" for left in rows.left_out)
        advice = f"Fix exponents, or add rows.{f' ({lost})' if lost else ''}"
        count = len(law.parameters)
        raise refuse("the table", f"of {needed} rows or more for {count} parameters", rows.num_rows, advice)
    _check_losses(rows)
    problem = Problem(make_model(law, rows.variables), objective, np.log(rows.loss))
    weights = np.ones(rows.num_rows) if rows.weights is None else rows.weights
    found = find_minimum(problem, weights, groups=rows.groups, num_starts=num_starts, seed=seed, also=also)
    if objective.kind == "student" and found.log_residual_std < _NO_NOISE:
        advice = "The law fits them to rounding, where the likelihood has no maximum. Take log."
        raise refuse("objective", "other than student for losses without noise", "student", advice)
    return found


def _check_losses(rows: Rows) -> None:
    """Raises InputError for losses that cannot say anything: equal ones, or beyond what logs of terms can hold."""
    if np.abs(np.log(rows.loss)).max() > _FAR:
        got = f"{rows.loss[np.abs(np.log(rows.loss)).argmax()]:g}"
        raise refuse("the losses", "between 1e-100 and 1e100", got, "Change their unit.")
    if np.ptp(np.log(rows.loss)) < _NO_NOISE:
        advice = "Nothing can be fitted to a constant."
        raise refuse("the losses", "of more than one value", f"{rows.loss[0]:g} in every row", advice)


def _check_groups(rows: Rows, law: Law) -> None:
    """Raises InputError for fewer groups than intervals need: their spread would be that of nothing."""
    if rows.groups is not None:
        count, least = int(np.unique(rows.groups).size), len(law.parameters) + 1
        if count < least:
            condition = f"{least} or more for {len(law.parameters)} parameters"
            advice = (
                "A group counts as one measurement: fix exponents, or leave groups out and take rows as independent."
            )
            raise refuse("the number of groups", condition, count, advice)


def _is_plain(estimate: Estimate) -> bool:
    """Whether the table is so large, and so telling, that profiles would only repeat the covariance."""
    errors = np.sqrt(np.maximum(np.diag(estimate.own_covariance), 0))
    return estimate.num_rows > _ALWAYS_PROFILED and bool(np.all(errors < _SMALL_ERROR))


def _intervals(
    method: str, estimate: Estimate, profiles: list[Profile] | None, draws: np.ndarray | None, confidence: float
) -> dict[str, tuple[float | None, float | None] | None]:
    names = estimate.problem.model.law.parameters
    spans: list[tuple[float | None, float | None] | None]
    if method == "covariance":
        errors = np.sqrt(np.maximum(np.diag(estimate.covariance), 0))
        pairs = zip(estimate.natural, errors, strict=True)
        spans = [t_interval(float(x), float(e), estimate.interval_degrees, confidence) for x, e in pairs]
    elif method == "profile":
        spans = [(p.low, p.high) for p in profiles or []]
    else:
        assert draws is not None
        spans = list(percentile_intervals(estimate, draws, confidence))
    return {name: _out_of_log(name, span) for name, span in zip(names, spans, strict=True)}


def _out_of_log(name: str, span: tuple[float | None, float | None] | None):
    if span is None or not (name == "L0" or name.startswith("c_")):
        return span
    with np.errstate(over="ignore"):
        low, high = (None if end is None else float(np.exp(end)) for end in span)
    return low, high


def _caveats(estimate: Estimate, rows: Rows) -> list[str]:
    found = []
    if not estimate.converged:
        found.append("the search had not ended: the numbers may be off in their last digits")
    if estimate.log_residual_std < 1e-9:
        found.append("the law fits the table to rounding: there is no noise that intervals could be made of")
    if estimate.problem.objective.kind == "student" and estimate.num_rows < 4 * estimate.theta.size:
        found.append("Student's t on so few rows: intervals are too narrow (its scale is that of the residuals)")
    if estimate.share_agreeing < 0.1:
        share = 100 * estimate.share_agreeing
        found.append(f"only {share:.0f} % of the starts reached this minimum: with more, there may be a lower one")
    theta = estimate.problem.model.split(estimate.theta)[1]
    for term, alpha in zip(estimate.problem.model.law.terms, theta, strict=True):
        if alpha < 0:
            found.append(f"{term.alpha} is negative: over these rows the loss grows with {term.variable}")
    if estimate.num_rows < 2 * estimate.theta.size:
        found.append(f"{estimate.num_rows} rows for {estimate.theta.size} parameters: intervals lean on few residuals")
    if rows.groups is not None:
        count = len(rows.group_names)
        if count < 3 * estimate.theta.size:
            found.append(f"{count} groups only: intervals from so few lean on each of them")
    return found
