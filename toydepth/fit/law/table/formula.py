"""What a formula that a person types may hold."""

from __future__ import annotations

import ast


def is_endless(power: ast.BinOp) -> bool:
    """Says whether a power of whole numbers alone would be computed to its last digit: 10**10**10 has 1e10 of them.

    Example:
        >>> [is_endless(ast.parse(text, mode="eval").body) for text in ("10**10**10", "10**6", "m**10**10")]
        [True, False, False]
    """
    exponent = power.right
    if any(isinstance(node, ast.Name) for node in ast.walk(power.left)):
        return False  # of a column: in floats
    if isinstance(exponent, ast.UnaryOp):
        exponent = exponent.operand
    value = exponent.value if isinstance(exponent, ast.Constant) else None
    return not isinstance(value, int | float) or abs(value) > 300
