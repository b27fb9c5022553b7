"""`hidden.measure_states` on the device of the states, in float32: the same numbers at a fraction of the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toydepth.hidden import QUANTITIES, Trajectory, measure_states

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

# Norms between which squares of float32 neither vanish nor overflow; a batch with others goes the exact way.
_LEAST, _LARGEST = 1e-15, 1e15
_BYTES_AT_ONCE = {"cpu": 2**19}  # of one layer: the few arrays of this size that are in use stay in the cache
_BYTES_ELSEWHERE = 2**26


def measure_stream(states: Sequence[torch.Tensor]) -> Trajectory:
    """Measures a residual stream, as `measure_states` does.

    Arithmetic is float32 or wider, and angles have the form that keeps small ones; where a state or an update is zero,
    not finite, tiny or huge, it and its neighbours are measured by `measure_states` itself, in float64.

    Args:
        states: h_0 ... h_L, (tokens, width) each, one token or more, of any float type, on any devices.
    """
    import torch  # pyright: ignore[reportMissingImports]

    device, (tokens, width) = states[-1].device, states[-1].shape
    step = max(1, _BYTES_AT_ONCE.get(device.type, _BYTES_ELSEWHERE) // (4 * width))
    parts = []
    with torch.inference_mode():
        for first in range(0, tokens, step):
            some = [state[first : first + step] for state in states]
            parts.extend(_fast(some, device) or _exact(some))
    found: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts], axis=1) for name in QUANTITIES}
    counts: dict[str, Any] = {name: sum(getattr(p, name) for p in parts) for name in ("num_zero", "num_not_finite")}
    return Trajectory(**found, **counts)


def select(part: Trajectory, chosen: np.ndarray) -> Trajectory:
    """Returns the trajectory of some tokens; chosen (tokens,) is bool."""
    found: dict[str, Any] = {name: getattr(part, name)[:, chosen] for name in QUANTITIES}
    # Where a state is zero its norm is, and where it is not finite its norm is NaN, and nowhere else.
    norm = found["norm"]
    return Trajectory(**found, num_zero=(norm == 0).sum(axis=1), num_not_finite=np.isnan(norm).sum(axis=1))


def _exact(states: list[torch.Tensor]) -> list[Trajectory]:
    """A few tokens at a time: float64 of all layers is held."""
    tokens, width = states[-1].shape
    step = max(1, _BYTES_AT_ONCE["cpu"] // (4 * width))
    return [
        measure_states(np.stack([state[first : first + step].double().cpu().numpy() for state in states]))
        for first in range(0, tokens, step)
    ]


def _fast(states: list[torch.Tensor], device: torch.device) -> list[Trajectory] | None:
    """All of the tokens at once; None where float32 will not do."""
    import torch  # pyright: ignore[reportMissingImports]

    def length(a: torch.Tensor) -> torch.Tensor:
        return torch.linalg.vector_norm(a, dim=-1)

    def turn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """The angle between unit vectors, as `hidden.angle`: 2 atan2(|a - b|, |a + b|)."""
        apart = length(a - b).double()
        # |a - b|^2 + |a + b|^2 = 4 spares a pass, and loses nothing but near pi. Off the CPU, asking whether it
        # may be used would cost more.
        if device.type == "cpu" and bool((apart < 1.9).all()):
            return 2 * torch.atan2(apart, (4 - apart**2).sqrt())
        return 2 * torch.atan2(apart, length(a + b).double())

    wide = torch.promote_types(states[-1].dtype, torch.float32)
    first, last = (states[place].to(device, wide) for place in (0, -1))
    whole = last - first
    last_norm, whole_norm = length(last), length(whole)
    last_unit, along = last / last_norm[:, None], whole / whole_norm[:, None]
    before, before_unit, step_unit = first, last_unit, last_unit
    gone = torch.zeros_like(last_norm, dtype=torch.float64)
    rows: dict[str, list[torch.Tensor]] = {name: [] for name in QUANTITIES}
    for place, raw in enumerate(states):
        state = raw.to(device, wide)
        rows["norm"].append(length(state))
        unit = state / rows["norm"][-1][:, None]
        if place > 0:
            step = state - before
            rows["update_norm"].append(length(step))
            # h_k - h_0 is the sum of the updates: no second difference of large vectors.
            gone = gone + (step * along).sum(dim=-1)
            step = step / rows["update_norm"][-1][:, None]
            rows["theta_states"].append(turn(before_unit, unit))
            if place > 1:
                rows["theta_updates"].append(turn(step_unit, step))
            step_unit = step
        rows["theta_final"].append(turn(unit, last_unit))
        rows["progress"].append(gone / whole_norm)
        before, before_unit = state, unit
    lengths = torch.stack([whole_norm, *rows["norm"], *rows["update_norm"]])
    if not bool(((lengths > _LEAST) & (lengths < _LARGEST)).all()):  # NaN is neither
        return None
    empty, none = np.zeros((0, len(last_norm))), np.zeros(len(states), np.int64)
    found = {name: torch.stack(row).double().cpu().numpy() if row else empty for name, row in rows.items()}
    return [Trajectory(**found, num_zero=none, num_not_finite=none)]
