"""From a table to a fitted law."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toydepth.fit.checks import check_confidence, check_count, refuse
from toydepth.fit.intervals import t_interval
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
from toydepth.fit.law.terms import Law, make_law

METHODS = ("covariance", "profile", "bootstrap")
_ALWAYS_PROFILED = 20_000  # rows; above, only where some standard error is not small
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
    problem = Problem(make_model(law, rows.variables), objective, np.log(rows.loss))
    weights = np.ones(rows.num_rows) if rows.weights is None else rows.weights
    return find_minimum(problem, weights, groups=rows.groups, num_starts=num_starts, seed=seed, also=also)


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
        if count < 10:
            found.append(f"{count} groups only: resampling them gives intervals that are too narrow")
    return found
