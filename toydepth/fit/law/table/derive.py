"""Columns made of others: expressions, parameters without embeddings, and tau, the sum of learning rates."""

from __future__ import annotations

import ast
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from toydepth.errors import InputError, did_you_mean
from toydepth.fit.checks import number_name, refuse
from toydepth.fit.law.table.reading import (
    NUMBER,
    TEXT,
    THOUSANDS,
    as_table,
    check_has_column,
    column_of,
    name_some,
    read_numbers,
    show_cell,
)

SCHEDULES = ("constant", "linear", "cosine", "wsd")
_FUNCTIONS = ("log", "exp", "sqrt")
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd)
_HARMLESS = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Load, *_OPERATORS)
_EXAMPLE = "Write such as N = 12 * d_model**2 * n_layers."


def add_columns(table: pd.DataFrame | Mapping[str, Any], expressions: Sequence[str]) -> pd.DataFrame:
    """Returns the table with new columns, each from "name = expression" over those before it.

    An expression has columns (`in backticks` where the name is no plain word), numbers, + - * / ** and log (natural),
    exp, sqrt. It is worked out in float64. A cell that holds no number gives NaN, which `choose_rows` counts.

    Raises: InputError for an expression that is anything else, a column that is not there or holds no numbers, or a
        name that is taken.

    >>> add_columns({"d_model": [64, 128], "n_layers": [2, 4]}, ["N = 12 * d_model**2 * n_layers"])["N"].tolist()
    [98304.0, 786432.0]
    """
    table = as_table(table)
    if not isinstance(expressions, list | tuple) or not all(isinstance(one, str) for one in expressions):
        raise refuse("expressions", "a list of texts", reprlib.repr(expressions), _EXAMPLE)
    for expression in expressions:
        shown = repr(" ".join(expression.split()))
        match = re.fullmatch(r"\s*(\w+)\s*=(?!=)\s*(.+?)\s*", expression, flags=re.DOTALL)
        if not match or not match[1].isidentifier():
            raise refuse("a derived column", "name = expression", shown, _EXAMPLE)
        name, formula = match[1], " ".join(match[2].split())
        if name in table.columns:
            raise refuse("a derived column", "a new column", f"{name!r}, which the table has", "Choose another name.")
        numbers = {column: _column(table, column, shown) for column in _columns_in(formula, shown, table)}
        try:
            with np.errstate(all="ignore"):
                frame = pd.DataFrame(numbers, index=table.index)
                result: Any = frame.eval(formula, engine="python", local_dict={}, global_dict={})
            values = np.broadcast_to(np.asarray(result, dtype=np.float64), (len(table),))
        except Exception as error:  # such as a number that Python cannot hold
            reason = " ".join(str(error).split()) or type(error).__name__
            raise refuse("a derived column", "one that can be computed", f"{shown}: {reason}", _EXAMPLE) from None
        table = table.assign(**{name: values})
    return table


def non_embedding_parameters(width: ArrayLike, depth: ArrayLike) -> np.ndarray:
    """Returns N = 12 m^2 ell, the parameters of a transformer of width m and ell layers, without its embeddings.

    4 m^2 of a layer are its attention's, 8 m^2 its feed-forward part's, 4 m wide; biases and norms are not counted.

    Raises: InputError for a width or depth that is not greater than 0 (NaN stays NaN), or for shapes that differ.

    >>> non_embedding_parameters([64, 128], 2)
    array([ 98304., 393216.])
    """
    given = _broadcast(width=width, depth=depth)
    for name, values in given.items():
        _check_all(name, values, (values > 0) | np.isnan(values), "greater than 0", "Leave such rows out.")
    with np.errstate(over="ignore"):
        return 12.0 * given["width"] ** 2 * given["depth"]


def tau_from_rates(steps: ArrayLike, rates: ArrayLike, runs: ArrayLike | None = None) -> np.ndarray:
    """Returns tau = sum over s = 1 ... step of eta_s, from learning rates logged at some steps of each run.

    The rate logged at step s is that of update s. Between two logged steps a < b it lies on a line: the updates
    a + 1 ... b add (b - a) (eta_a + eta_b) / 2 + (eta_b - eta_a) / 2, the trapezoid and what a sum has more than an
    integral. With every step logged, tau is the plain sum. Our choice: before the first logged step the rate is that
    of the first logged one, which is too high in a warmup; log the first steps, or use `tau_from_schedule`.

    Args:
        steps: (n,) whole numbers, 0 or more, in any order.
        rates: (n,) learning rates, 0 or more.
        runs: (n,) names of the runs, numbers or text; None: one run.

    Returns: (n,) tau, in the order given.

    Raises: InputError for a step or rate that is missing or out of range, or a step that a run has twice.

    >>> tau_from_rates([2, 4, 1, 2], [0.2, 0.4, 0.1, 0.1], ["a", "a", "b", "b"])
    array([0.4, 1.1, 0.1, 0.2])
    """
    given = _broadcast(steps=steps, rates=rates)
    step, rate = np.atleast_1d(given["steps"]), np.atleast_1d(given["rates"])
    if step.ndim != 1:
        raise refuse("steps", "a list of numbers", f"shape {step.shape}", "Give one step and one rate for each row.")
    if not step.size:
        return np.empty(0)
    _check_steps(step)
    _check_all("rates", rate, np.isfinite(rate) & (rate >= 0), "finite and 0 or more", "Leave such rows out.")
    codes, names = _runs(runs, len(step))
    order = np.lexsort((step, codes))
    codes, step, rate = codes[order], step[order], rate[order]
    first = np.r_[True, codes[1:] != codes[:-1]]
    ahead = np.r_[0.0, np.diff(step)]
    twice = np.flatnonzero(~first & (ahead == 0))
    if twice.size:
        run = "" if runs is None else f"run {names[codes[twice[0]]]!r}, "
        got = f"{run}step {number_name(float(step[twice[0]]))} twice"
        raise refuse("steps", "distinct in each run", got, "Leave one of them out, or name the runs apart.")
    before = np.r_[0.0, rate[:-1]]
    added = np.where(first, step * rate, ahead * (before + rate) / 2 + (rate - before) / 2)
    tau = np.empty_like(step)
    # A sum for each run: a difference of sums over all of them would lose digits.
    starts = np.flatnonzero(first)
    for start, end in zip(starts, [*starts[1:], len(step)], strict=True):
        tau[order[start:end]] = np.cumsum(added[start:end])
    return tau


def tau_from_schedule(
    steps: ArrayLike,
    *,
    peak: ArrayLike,
    total_steps: ArrayLike,
    kind: str = "cosine",
    warmup_steps: ArrayLike = 0,
    final_fraction: ArrayLike = 0.0,
    decay_fraction: ArrayLike | None = None,
) -> np.ndarray:
    """Returns tau = sum over s = 1 ... step of eta_s, exactly, for a schedule of the learning rate over T updates.

    With W of warmup: eta_s = peak s / W for s <= W; then eta_s = peak (f + (1 - f) g(x)), f the final fraction, which
    the last update has, and

        constant    g = 1, whatever f
        linear      g = 1 - x,                x = (s - W) / (T - W)
        cosine      g = (1 + cos(pi x)) / 2,  x = (s - W) / (T - W)
        wsd         g = 1 - x,                x = (s - T + C) / C, or 0 before; C = decay_fraction T

    Args:
        steps: whole numbers in 0 ... T.
        peak: the highest learning rate, 0 or more; with peak 1, tau is in units of the peak.
        total_steps: T. warmup_steps: W, at most T (wsd: T - C). Whole numbers.
        kind: "constant", "linear", "cosine" or "wsd".
        final_fraction: f, in [0, 1].
        decay_fraction: in (0, 1], for wsd only.
        All but kind may be arrays that broadcast with steps, such as (n,): each row its own run.

    Returns: tau, of the shape that the arguments broadcast to.

    Raises: InputError for an unknown kind, or a number out of range.

    >>> tau_from_schedule([0, 1, 2, 4], peak=1.0, total_steps=4, kind="linear")
    array([0.  , 0.75, 1.25, 1.5 ])
    """
    if not isinstance(kind, str) or kind not in SCHEDULES:
        raise refuse(
            "kind", f"one of {', '.join(SCHEDULES)}", repr(kind), f"Choose one.{did_you_mean(str(kind), SCHEDULES)}"
        )
    if (kind == "wsd") != (decay_fraction is not None):
        got = "None with wsd" if kind == "wsd" else f"{reprlib.repr(decay_fraction)} with {kind}"
        raise refuse("decay_fraction", "given for wsd, and for no other kind", got, "Give such as 0.2 with wsd.")
    given = _broadcast(
        steps=steps,
        peak=peak,
        total_steps=total_steps,
        warmup_steps=warmup_steps,
        final_fraction=final_fraction,
        decay_fraction=1.0 if decay_fraction is None else decay_fraction,
    )
    step, peaks, total, warmup, final, decay = given.values()
    _check_steps(step)
    _check_steps(total, "total_steps")
    _check_steps(warmup, "warmup_steps")
    _check_all("steps", step, step <= total, "at most total_steps", "The schedule says nothing of later updates.")
    _check_all("peak", peaks, np.isfinite(peaks) & (peaks >= 0), "finite and 0 or more", "Give the highest rate.")
    _check_all("final_fraction", final, (final >= 0) & (final <= 1), "between 0 and 1", "Give 0.1 for a tenth.")
    _check_all("decay_fraction", decay, (decay > 0) & (decay <= 1), "in (0, 1]", "Give 0.2 for the last fifth.")
    length = total * decay if kind == "wsd" else total - warmup
    room = warmup <= total - length if kind == "wsd" else warmup <= total
    limit = "at most total_steps" + (" (1 - decay_fraction)" if kind == "wsd" else "")
    _check_all("warmup_steps", warmup, room, limit, "Shorten it.")

    risen = np.minimum(step, warmup)
    rising = np.divide(risen * (risen + 1), 2 * warmup, out=np.zeros_like(step), where=warmup > 0)
    later = step - risen  # updates after the warmup
    if kind == "constant":
        return peaks * (rising + later)
    if kind == "cosine":
        shape = (later + _cosines(later, length)) / 2
    else:
        start = total - length  # a whole number but for wsd
        falling = np.maximum(step - np.floor(start), 0.0)
        # 1 - (s - start) / length, summed over s = floor(start) + 1 ... step.
        sum_ahead = falling * (falling + 1) / 2 - falling * (start - np.floor(start))
        shape = later - np.divide(sum_ahead, length, out=np.zeros_like(step), where=length > 0)
    return peaks * (rising + final * later + (1 - final) * shape)


def _cosines(count: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Returns the sum over j = 1 ... count of cos(pi j / length), in closed form."""
    half = np.pi / (2 * np.maximum(length, 1.0))
    return np.sin(count * half) * np.cos((count + 1) * half) / np.sin(half)


def _columns_in(formula: str, shown: str, table: pd.DataFrame) -> list[str]:
    """Returns the columns of a formula; raises InputError where it has anything but columns, numbers and arithmetic."""
    quoted: dict[str, str] = {}

    def plain_word(match: re.Match[str]) -> str:
        return quoted.setdefault(match[1], f"quoted_column_{len(quoted)}")

    plain = re.sub(r"`([^`]*)`", plain_word, formula)
    names = {word: name for name, word in quoted.items()}
    for mark in ("@", "__"):
        if mark in plain:
            raise _no_formula(shown, f"{mark!r}")
    try:
        nodes = list(ast.walk(ast.parse(plain, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        advice = f"{_EXAMPLE} Put `backticks` around a name that is no plain word."
        raise refuse("a derived column", "name = expression", f"{shown}, which is no expression", advice) from None
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    columns = []
    for node in nodes:
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
                raise _no_formula(shown, f"a call of {ast.unparse(node.func)}")
            if len(node.args) != 1 or node.keywords:
                raise _no_formula(shown, f"{node.func.id} of other than one number")
        elif isinstance(node, ast.Name):
            if id(node) not in called:
                columns.append(names.get(node.id, node.id))
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                raise _no_formula(shown, repr(node.value))
        elif isinstance(node, ast.BitXor):
            raise refuse("a derived column", "name = expression", f"^ in {shown}", "Write ** for a power.")
        elif not isinstance(node, _HARMLESS):
            raise _no_formula(shown, type(node).__name__.lower())
    for name in columns:
        check_has_column(table, f"each name in {shown}", name)
    return list(dict.fromkeys(columns))


def _no_formula(shown: str, got: str) -> InputError:
    condition = f"columns, numbers, + - * / ** and {', '.join(_FUNCTIONS)}"
    return refuse("a derived column", condition, f"{got} in {shown}", _EXAMPLE)


def _column(table: pd.DataFrame, name: str, shown: str) -> np.ndarray:
    """Returns a column's numbers; raises InputError where it has none, or some that only separators spoil."""
    values, kinds = read_numbers(column_of(table, name))
    spoilt = np.flatnonzero(kinds == THOUSANDS)
    if not spoilt.size and (kinds == NUMBER).any():
        return values
    bad = spoilt if spoilt.size else np.flatnonzero(kinds == TEXT)
    got = (
        f"{name} with {show_cell(column_of(table, name).iloc[int(bad[0])])}"
        if bad.size
        else f"{name}, which is all missing"
    )
    raise refuse(f"each column in {shown}", "numbers", got, "Correct it first.")


def _broadcast(**arguments: ArrayLike) -> dict[str, np.ndarray]:
    """Returns the arguments as float64 arrays of one shape; raises InputError."""
    arrays = {}
    for name, given in arguments.items():
        column = pd.Series(np.ravel(np.asarray(given, dtype=object)), dtype=object)
        values, kinds = read_numbers(column)
        bad = np.flatnonzero(kinds >= TEXT)
        if bad.size:
            raise refuse(name, "numbers", show_cell(column.iloc[int(bad[0])]), "Use NaN where one is missing.")
        arrays[name] = values.reshape(np.shape(given))
    try:
        return dict(zip(arrays, (array.copy() for array in np.broadcast_arrays(*arrays.values())), strict=True))
    except ValueError:
        shapes = name_some([f"{name} {array.shape}" for name, array in arrays.items() if array.ndim])
        raise refuse("the arguments", "of one length", shapes, "Give one number for each row.") from None


def _check_all(name: str, values: np.ndarray, good: np.ndarray, condition: str, advice: str) -> None:
    bad = np.flatnonzero(~good)
    if bad.size:
        place = f" (number {bad[0] + 1})" if values.size > 1 else ""
        raise refuse(name, condition, f"{values.ravel()[bad[0]]:g}{place}", advice)


def _check_steps(steps: np.ndarray, name: str = "steps") -> None:
    good = np.isfinite(steps) & (steps >= 0) & (steps == np.floor(steps))
    _check_all(name, steps, good, "whole numbers, 0 or more", "Correct or remove it.")


def _runs(runs: ArrayLike | None, count: int) -> tuple[np.ndarray, list[Any]]:
    """Returns the run of each row as a place in a list of names; raises InputError."""
    if runs is None:
        return np.zeros(count, dtype=np.int64), [None]
    labels = (
        runs if isinstance(runs, pd.Series | pd.Index) else pd.Series(list(np.atleast_1d(np.asarray(runs, object))))
    )
    if len(labels) != count:
        raise refuse("runs", "one name for each step", f"{len(labels)} for {count} steps", "Give one for each row.")
    try:
        codes, names = pd.factorize(labels)
    except TypeError:
        raise refuse("runs", "numbers or text", "lists or the like", "Give one name for each row.") from None
    missing = np.flatnonzero(codes < 0)
    if missing.size:
        raise refuse("runs", "a name for each step", f"none (number {missing[0] + 1})", "Name it, or remove the row.")
    return codes, [name.item() if isinstance(name, np.generic) else name for name in names]
