"""Adam as training loops have it, for repeating published fits made with it; no fit of ours goes through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False)
class Descent:
    """Where Adam went.

    Attributes:
        theta: {step: (p,)}, the parameters after that many steps, for each step that was asked for.
        values (steps,): the objective before each step, as a training loop records it.
    """

    theta: dict[int, np.ndarray]
    values: np.ndarray


def adam(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    rates: np.ndarray,
    marks: Sequence[int],
    single: np.ndarray | None = None,
) -> Descent:
    """Takes max(marks) steps of Adam (0.9, 0.999, 1e-8) at constant rates.

    m <- m + 0.1 (g - m), v <- 0.999 v + 0.001 g^2, theta <- theta - rate m^ / (sqrt(v^) + 1e-8), where ^ divides by
    1 - 0.9^k and 1 - 0.999^k. Parameters in single precision keep their m and v in it too, with products and sums fused
    (rounded once), as processors do: a descent that has not converged ends elsewhere when it is rounded otherwise.

    Args:
        function: theta (p,) -> (objective, gradient (p,)), in double precision.
        start: (p,).
        rates: (p,).
        marks: steps after which theta is kept.
        single: (p,) bools, the parameters in single precision; None for none.

    Returns:
        The descent. It ends early, with the values it has, where the objective is no longer finite.

    Example:
        >>> bowl = lambda x: (float(x @ x), 2 * x)
        >>> done = adam(bowl, np.array([1.0, -2.0]), np.full(2, 0.01), [1, 2000])
        >>> done.theta[1].round(6).tolist(), bool(np.abs(done.theta[2000]).max() < 1e-6)
        ([0.99, -1.99], True)

    Source: Kingma, Ba, arXiv 1412.6980.
    """
    steps = max(marks)
    kinds = np.zeros(len(start), bool) if single is None else single
    blocks = [
        _Block(np.flatnonzero(where), kind, start, rates)
        for where, kind in ((~kinds, np.float64), (kinds, np.float32))
        if where.any()
    ]
    theta = np.array(start, float)
    for block in blocks:
        theta[block.places] = block.theta
    values, kept = np.full(steps, np.nan), {}
    for k in range(1, steps + 1):
        values[k - 1], gradient = function(theta)
        if not np.isfinite(values[k - 1]):
            return Descent(kept, values[:k])
        for block in blocks:
            theta[block.places] = block.step(gradient, k)
        if k in marks:
            kept[k] = theta.copy()
    return Descent(kept, values)


class _Block:
    """Parameters of one precision, with their moments."""

    def __init__(self, places: np.ndarray, kind: type[np.floating], start: np.ndarray, rates: np.ndarray) -> None:
        self.places, self.kind, self.rates = places, kind, rates[places]
        self.theta = start[places].astype(kind)
        self.mean, self.square = np.zeros_like(self.theta), np.zeros_like(self.theta)
        # The same constants, as this precision has them.
        self.share = float(kind(1 - _FIRST))

    def step(self, gradient: np.ndarray, k: int) -> np.ndarray:
        slope = gradient[self.places].astype(self.kind)
        # In double precision, then rounded once into the array: a fused product and sum.
        self.mean[:] = self.share * (slope - self.mean).astype(float) + self.mean
        self.square *= _SECOND
        self.square[:] = ((1 - _SECOND) * slope).astype(float) * slope + self.square
        size = np.sqrt(self.square) / float((1 - _SECOND**k) ** 0.5) + _EPSILON
        self.theta += (-self.rates / (1 - _FIRST**k)).astype(self.kind) * self.mean / size
        return self.theta
