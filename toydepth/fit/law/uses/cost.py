"""What a run costs: an expression or a function of named variables, checked before anything is asked of it."""

from __future__ import annotations

import ast
import inspect
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toydepth.errors import InputError, did_you_mean
from toydepth.fit.checks import refuse
from toydepth.fit.law.text import error_text

DEFAULT_COST = "6*N*D"
SIZE_FACTOR = 12.0  # N = 12 m^2 ell, as derive.non_embedding_parameters has it
_EXAMPLE = "Write such as 6*N*D, or 6*N*D + 2*N*1e12 with what will be served."
_DEEPEST = 60  # nested operations of an expression; more is no formula that anyone wrote
_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "log": (1, np.log),
    "exp": (1, np.exp),
    "sqrt": (1, np.sqrt),
    "minimum": (2, np.minimum),
    "maximum": (2, np.maximum),
}
_OPERATIONS: dict[type, Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}


@dataclass(frozen=True, eq=False)
class Cost:
    """A cost in the units of the table: of 6*N*D FLOP where N counts parameters and D tokens.

    Attributes:
        text: for reports: the expression, or the name of the function.
        names: of the variables that it needs.
        function: of a dict of arrays of one shape by name.
    """

    text: str
    names: tuple[str, ...]
    function: Callable[[Mapping[str, np.ndarray]], Any]

    def __call__(self, variables: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the cost, of the shape of the variables.

        Raises:
            InputError: where a function of the person's fails, or gives another shape.
        """
        shape = np.broadcast_shapes(*(np.shape(one) for one in variables.values()))
        with np.errstate(all="ignore"):
            try:
                found = np.asarray(self.function(variables), dtype=float)
                return np.broadcast_to(found, shape)
            except InputError:
                raise
            except Exception as error:  # of a function that is not ours
                reason = error_text(error)
                advice = "It is called with arrays by name, and must return one of their shape."
                raise refuse("cost", "a function that can be called", f"{self.text}: {reason}", advice) from None

    def missing(self, variables: Iterable[str]) -> tuple[str, ...]:
        """Returns the names that the cost needs, and that neither are among the variables nor follow from them."""
        known = set(with_size({name: np.ones(1) for name in variables}))
        return tuple(name for name in self.names if name not in known)


def with_size(variables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the variables with N = 12 m^2 ell where m and ell are among them, and N is not.

    Example:
        >>> with_size({"m": np.array([64.0]), "ell": np.array([2.0])})["N"]
        array([98304.])
    """
    found = dict(variables)
    if "N" not in found and "m" in found and "ell" in found:
        found["N"] = SIZE_FACTOR * found["m"] * found["m"] * found["ell"]
    return found


def make_cost(cost: str | Callable[..., Any]) -> Cost:
    """Reads a cost.

    Args:
        cost: an expression of names, numbers, + - * / **, log (natural), exp, sqrt, minimum(a, b), maximum(a, b); or a
            function whose arguments are named as the variables, and get arrays.

    Raises:
        InputError: for an expression that holds anything else or no name, or a function without named arguments.

    Example:
        >>> cost = make_cost("6*N*D")
        >>> cost.names, cost({"N": np.array([1e9]), "D": np.array([2e10])})
        (('N', 'D'), array([1.2e+20]))
        >>> make_cost(lambda N, D: 6 * N * D + 2 * N * 1e12).names
        ('N', 'D')

    Source: 6 N D, arXiv 2001.08361.
    """
    if isinstance(cost, Cost):
        return cost
    if isinstance(cost, str):
        return _from_text(cost)
    if not callable(cost):
        raise refuse("cost", "an expression or a function", reprlib.repr(cost), _EXAMPLE)
    text = getattr(cost, "__name__", "cost")
    try:
        parameters = inspect.signature(cost).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.default is p.empty]
    if not named or any(p.kind is p.POSITIONAL_ONLY and p.default is p.empty for p in parameters):
        advice = "Write such as lambda N, D: 6 * N * D."
        raise refuse("cost", "a function of arguments named as variables", text, advice)
    return Cost(text, tuple(named), lambda variables: cost(**{name: variables[name] for name in named}))


def _from_text(text: str) -> Cost:
    shown = " ".join(text.split())
    try:
        tree = ast.parse(shown, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refuse("cost", "an expression", f"{shown!r}, which is none", _EXAMPLE) from None
    names: list[str] = []
    _check(tree, shown, names, 0)
    if not names:
        raise refuse("cost", "an expression of m, ell, N, D or tau", f"{shown!r}, which has no variable", _EXAMPLE)
    return Cost(shown, tuple(dict.fromkeys(names)), lambda variables: _evaluate(tree, variables))


def _check(node: ast.AST, shown: str, names: list[str], depth: int) -> None:
    """Raises InputError for anything but arithmetic; adds the names to the list."""
    if depth > _DEEPEST:
        raise refuse("cost", f"at most {_DEEPEST} operations deep", reprlib.repr(shown), "Give a function instead.")
    inner: list[ast.AST] = []
    if isinstance(node, ast.Name):
        if node.id in _FUNCTIONS:
            raise _no_cost(shown, f"{node.id} without its argument")
        names.append(node.id)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise _no_cost(shown, reprlib.repr(node.value))
        _number(node.value, shown)
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in _FUNCTIONS:
            called = ast.unparse(node.func)
            raise _no_cost(shown, f"a call of {reprlib.repr(called)}", did_you_mean(called, _FUNCTIONS))
        if len(node.args) != _FUNCTIONS[name][0] or node.keywords:
            raise _no_cost(shown, f"{name} of other than {_FUNCTIONS[name][0]} argument(s)")
        inner = list(node.args)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        raise refuse("cost", "an expression", f"^ in {shown!r}", "Write ** for a power.")
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        inner = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        inner = [node.operand]
    else:
        raise _no_cost(shown, type(node).__name__.lower())
    for one in inner:
        _check(one, shown, names, depth + 1)


def _evaluate(node: ast.AST, variables: Mapping[str, np.ndarray]) -> Any:
    """The value of a checked expression."""
    if isinstance(node, ast.Name):
        return variables[node.id]
    if isinstance(node, ast.Constant):
        return np.float64(node.value)  # pyright: ignore[reportArgumentType]
    if isinstance(node, ast.Call):
        return _FUNCTIONS[node.func.id][1](*(_evaluate(one, variables) for one in node.args))  # pyright: ignore
    if isinstance(node, ast.UnaryOp):
        return _OPERATIONS[type(node.op)](_evaluate(node.operand, variables))
    assert isinstance(node, ast.BinOp)
    return _OPERATIONS[type(node.op)](_evaluate(node.left, variables), _evaluate(node.right, variables))


def _number(value: float, shown: str) -> None:
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise _no_cost(shown, "a number too large")


def _no_cost(shown: str, got: str, hint: str = "") -> InputError:
    condition = f"of names, numbers, + - * / ** and {', '.join(_FUNCTIONS)}"
    return refuse("cost", condition, f"{got} in {reprlib.repr(shown)}", f"{_EXAMPLE}{hint}")
