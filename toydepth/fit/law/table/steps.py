"""The steps by which rows of a table go before a fit: each with a reason, in order."""

from __future__ import annotations

import ast
import math
import re
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from toydepth.errors import did_you_mean
from toydepth.fit.checks import is_number, number_name, refuse
from toydepth.fit.law.table.cells import MISSING, NUMBER, TEXT, THOUSANDS, column_of, name_some, read_numbers, show_cell
from toydepth.fit.law.table.formula import is_endless
from toydepth.fit.law.table.rows import LeftOutRows, none_left, reasons, record
from toydepth.fit.law.text import error_text

# What a query may ask of a column besides comparing it: what reads, and writes nothing.
_METHODS = (
    *("str", "isin", "isna", "notna", "isnull", "notnull", "between", "duplicated", "index"),
    *("contains", "startswith", "endswith", "match", "fullmatch", "lower", "upper", "strip", "len"),
    *("abs", "round", "clip", "diff", "shift", "rank", "cumsum", "cummax", "cummin"),
    *("min", "max", "mean", "median", "std", "var", "sum", "quantile", "count", "nunique"),
)
# Those of pandas' own.
_FUNCTIONS = ("sin", "cos", "tan", "exp", "expm1", "log", "log10", "log1p", "sqrt", "abs", "floor", "ceil")


class Choice:
    """The rows still in, and a record of those that went, in the order of the steps."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.numbers = table.index.to_numpy(dtype=np.int64)
        self.kept = np.ones(len(table), dtype=bool)
        self.left_out: tuple[LeftOutRows, ...] = ()
        self.notes: list[str] = []

    def leave_out(self, where: np.ndarray, reason: str) -> None:
        """Leaves out those of the rows that are still in."""
        self.left_out += record(self.numbers[where & self.kept], reason)
        self.kept = self.kept & ~where

    def check_some_left(self) -> None:
        """Raises InputError, with all the reasons, where no row is left."""
        if not self.kept.any():
            raise none_left(len(self.kept), self.left_out)

    def query(self, query: str, table: pd.DataFrame, cells: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> None:
        """Leaves out what does not meet a condition; notes cells that it cannot have compared."""
        where = _evaluate(query, table, cells)
        shown = " ".join(query.split())
        if not where.any():
            advice = "Check the names of its values and their units."
            raise refuse(
                "query", "a condition that some row meets", f"{shown!r}, which none of {len(table)} does", advice
            )
        self.leave_out(~where, f"not in the query '{shown}'")
        # No comparison is true of a cell that is no number, so that its fault would be told nowhere.
        for name, (_, kinds) in cells.items():
            lost = (kinds >= TEXT) & ~where
            if name in query and lost.any():
                cell = show_cell(column_of(table, name).iloc[int(np.flatnonzero(lost)[0])])
                self.notes.append(f"{lost.sum()} of the rows not in the query hold no number in {name} ({cell})")

    def numbers_of(self, name: str, column: pd.Series, values: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """Leaves out what holds no number; returns the values."""
        self.leave_out(kinds == MISSING, f"{name} is missing (NaN)")
        for kind in (THOUSANDS, TEXT):
            bad = (kinds == kind) & self.kept
            if bad.any():
                cell = show_cell(column.iloc[int(np.flatnonzero(bad)[0])])
                self.leave_out(bad, f"{name} is not a number ({cell})")
        return values

    def exclude_highest(self, loss: np.ndarray, count: int, ties: str) -> None:
        """Leaves out the rows of the highest losses, ties as `choose_rows` has it."""
        places = np.flatnonzero(self.kept)
        if count >= len(places):
            because = f" ({reasons(self.left_out)})" if self.left_out else ""
            got = f"{count} of {len(places)} rows{because}"
            raise refuse("exclude_highest", "less than the number of rows that can be used", got, "Lower it.")
        if not count:
            return
        highest = places[np.lexsort((places, -loss[places]))[:count]]
        out = np.zeros(len(loss), dtype=bool)
        out[highest] = True
        self.leave_out(out, f"among the {count} highest losses")
        if ties == "below":
            edge = loss[highest[-1]]
            tied = (loss == edge) & self.kept
            self.leave_out(tied, f"as high as the lowest of the {count} highest losses (ties=rank keeps it)")
            self.check_some_left()

    def duplicates(self, columns: Mapping[str, np.ndarray], action: str) -> None:
        """Leaves out rows that repeat an earlier one, or notes how many there are."""
        places = np.flatnonzero(self.kept)
        repeats = pd.DataFrame({i: column[places] for i, column in enumerate(columns.values())}).duplicated().to_numpy()
        if action == "drop":
            out = np.zeros(len(self.kept), dtype=bool)
            out[places[repeats]] = True
            self.leave_out(out, "repeats an earlier row exactly")
        elif count := int(repeats.sum()):
            verb = "row repeats" if count == 1 else "rows repeat"
            self.notes.append(f"{count} {verb} another row exactly (kept; duplicates=drop leaves them out)")


def _evaluate(query: str, table: pd.DataFrame, cells: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Returns which rows meet the query; its columns of text that hold numbers are numbers to it."""
    advice = "Write such as \"d_model > 256 and split == 'train'\"."
    if not isinstance(query, str) or not query.strip():
        raise refuse("query", "a condition", reprlib.repr(query), advice)
    query = " ".join(query.splitlines())
    shown = repr(" ".join(query.split()))
    _check_harmless(query, shown, advice)
    view = table.loc[:, ~table.columns.duplicated()]
    numbers = {name: values for name, (values, _) in cells.items() if name in query}
    for name in view.columns:
        if name in query and name not in cells and not types.is_numeric_dtype(column_of(view, name).dtype):
            values, kinds = read_numbers(column_of(view, name))
            if (kinds == NUMBER).any() and (kinds <= MISSING).all():
                numbers[name] = values
    view = view.assign(**numbers)
    try:
        with np.errstate(all="ignore"):
            # No names but the columns': a query must not depend on what this function calls its variables.
            result: Any = view.eval(query, engine="python", local_dict={}, global_dict={})
    except Exception as error:  # a query is a small program: it can fail in any way
        reason = error_text(error)
        if isinstance(error, NameError):
            name = str(getattr(error, "name", None) or reason.split("'")[1])
            advice = (
                f"{did_you_mean(name, view.columns).strip()} The table has: {name_some(list(view.columns))}.".strip()
            )
        raise refuse("query", "a condition on the columns", f"{shown}: {reason}", advice) from None
    is_bool = isinstance(result, pd.Series | np.ndarray) and types.is_bool_dtype(result.dtype)
    if not is_bool or result.shape != (len(view),):
        raise refuse("query", "true or false for each row", f"{shown}: {type(result).__name__}", advice)
    return np.asarray(pd.Series(result).fillna(False), dtype=bool)


def _check_harmless(query: str, shown: str, advice: str) -> None:
    """Raises InputError for a query that does more than compare: attributes can write files, powers never end."""
    plain = re.sub(r"`[^`]*`", "quoted_column", query)
    try:
        nodes = list(ast.walk(ast.parse(plain.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # pandas says what is wrong, or has a meaning for it
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr not in _METHODS:
            known = f"Of methods there are: {', '.join(_METHODS)}."
            raise refuse("query", "a condition on the columns", f"{shown} with .{node.attr}", known)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in _FUNCTIONS:
            known = f"Of functions there are: {', '.join(_FUNCTIONS)}."
            raise refuse("query", "a condition on the columns", f"{shown} with {node.func.id}()", known)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and is_endless(node):
            raise refuse(
                "query", "a condition on the columns", f"{shown}, a power of numbers that is too large", advice
            )
        if isinstance(node, ast.Lambda | ast.GeneratorExp | ast.ListComp):
            raise refuse("query", "a condition on the columns", f"{shown} with a loop", advice)
        if isinstance(node, ast.BinOp) and any(
            isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)
        ):
            raise refuse("query", "a condition on the columns", f"{shown}, which computes with text", advice)


def label_groups(column: pd.Series) -> np.ndarray:
    """Returns the groups' names as text, "" where missing; numbers as people write them."""
    try:
        codes, found = pd.factorize(column)
    except TypeError:  # lists and the like, from JSON
        got = f"{column.name!r}, which holds lists or the like"
        raise refuse("the column for groups", "numbers or text", got, "Give another column.") from None
    names = [number_name(one) if is_number(one) and math.isfinite(one) else str(one).strip() for one in found]
    return np.array([*names, ""], dtype=object)[codes]
