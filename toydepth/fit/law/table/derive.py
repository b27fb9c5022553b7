"""Columns made of others: expressions, and parameters without embeddings."""

from __future__ import annotations

import ast
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from toydepth.errors import InputError
from toydepth.fit.checks import refuse
from toydepth.fit.law.table.arguments import broadcast, check_all
from toydepth.fit.law.table.cells import NUMBER, TEXT, THOUSANDS, check_has_column, column_of, read_numbers, show_cell
from toydepth.fit.law.table.formula import is_endless
from toydepth.fit.law.table.reading import as_table
from toydepth.fit.law.text import error_text

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
            reason = error_text(error)
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
    given = broadcast(width=width, depth=depth)
    for name, values in given.items():
        check_all(name, values, (values > 0) | np.isnan(values), "greater than 0", "Leave such rows out.")
    with np.errstate(over="ignore"):
        return 12.0 * given["width"] ** 2 * given["depth"]


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
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and is_endless(node):
            raise _no_formula(shown, "a power of numbers that is too large")
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
