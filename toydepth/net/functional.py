"""From a module to a pure function of its parameters: split once, then plain jit, vmap and grad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from flax import nnx

Params = dict[str, Any]


@dataclass(frozen=True)
class Functional:
    """A network as pure functions of its parameters, a nested dict of arrays.

    module(params): the module with these parameters. apply(params, x): its final hidden state (width, batch).
    hidden(params, x): its residual stream (depth + 1, width, batch).
    """

    module: Callable[[Params], Any]

    def apply(self, params: Params, x: jax.Array, kernel: str = "xla") -> jax.Array:
        """Returns the final hidden state (width, batch), run by one of `residual.KERNELS`."""
        return self.module(params)(x, kernel)

    def hidden(self, params: Params, x: jax.Array) -> jax.Array:
        """Returns the residual stream (depth + 1, width, batch)."""
        return self.module(params).hidden(x)


def functional(make: Callable[[], nnx.Module]) -> Functional:
    """Splits the network that `make` builds into pure functions; nothing is computed, only shapes are traced.

    Example:
        >>> import jax
        >>> from toydepth.net import make_student, parameters
        >>> key = jax.random.key(0)
        >>> make = lambda: make_student(3, width=4, key=key)
        >>> functional(make).apply(parameters(make()), jax.numpy.ones((4, 2))).shape
        (4, 2)
    """
    graph, abstract = nnx.split(nnx.eval_shape(make))

    def module(params: Params) -> Any:
        state = jax.tree.map(lambda leaf: leaf, abstract)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(graph, state)

    return Functional(module)


def parameters(module: nnx.Module) -> Params:
    """Returns the parameters of a module as a nested dict of arrays; an absent head has no entry."""
    return nnx.to_pure_dict(nnx.state(module, nnx.Param))
