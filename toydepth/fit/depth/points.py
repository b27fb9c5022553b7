"""Which points enter a depth fit, and why the others do not."""

from __future__ import annotations

import numbers
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toydepth.fit.checks import number_name, plain, refuse, whole

MIN_DEPTHS = 3  # two points always lie on a power law: they say nothing about whether there is one
MIN_SPREAD = 1e-6  # of depth - offset, relative: float64 holds 16 digits, and a slope needs some of them
_USED, _ZERO, _WINDOW, _MISSING, _NOISE, _LONE = range(6)


@dataclass(frozen=True)
class LeftOut:
    """One point kept out of a fit: replicate (row of the losses), depth, loss (nats; NaN if missing) and the reason."""

    replicate: int
    depth: float
    loss: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Returns {replicate, depth, loss, reason} for JSON; a missing loss is None."""
        return plain({"replicate": self.replicate, "depth": self.depth, "loss": self.loss, "reason": self.reason})


@dataclass(frozen=True, eq=False)
class Points:
    """The points of a fit: log_losses (replicates, depths), NaN where left out; depths ascending; what was left out."""

    log_losses: np.ndarray
    depths: np.ndarray
    replicates: tuple[int, ...]
    left_out: tuple[LeftOut, ...]


def choose_points(
    losses: ArrayLike,
    depths: ArrayLike,
    *,
    floor: bool = False,
    offset: float = 0.0,
    window: tuple[float, float] | None = None,
    noise_floor: ArrayLike | None = None,
    noise_factor: float = 10.0,
) -> Points:
    """Checks the losses and keeps the points a power law in depth can be fitted to.

    Args: as in `fit_depth_exponent`; losses (depths,) or (replicates, depths).
    Returns: the points, depths ascending, with a record for each point left out.
    Raises: InputError for input of the wrong shape or sign, or where too little is left.

    >>> points = choose_points([4.0, 2.0, float("nan"), 1.0], [3, 6, 9, 12])
    >>> points.depths, points.left_out[0].reason
    (array([ 3.,  6., 12.]), 'missing or diverged')
    """
    depth, table, noise = _checked(losses, depths, noise_floor)
    order = np.argsort(depth)
    depth, table, noise = depth[order], table[:, order], noise[:, order]

    why = np.zeros(table.shape, dtype=np.int8)
    why[:, depth == 0] = _ZERO
    if window is not None:
        why[:, ((depth < window[0]) | (depth > window[1])) & (depth != 0)] = _WINDOW
    why[(why == _USED) & np.isnan(table)] = _MISSING
    # NaN noise compares as false: a noise floor nobody measured leaves nothing out.
    with np.errstate(over="ignore"):
        why[(why == _USED) & (table <= noise_factor * noise)] = _NOISE
    bad = (why == _USED) & (table <= 0)
    if bad.any():
        raise refuse(
            "losses",
            "greater than 0",
            f"{table[bad][0]:g} at depth {number_name(float(depth[np.nonzero(bad)[1][0]]))}",
            "Give a noise_floor (0 will do) to leave such points out, or NaN for a point that is missing.",
        )
    reason = {
        _ZERO: "depth 0 has no power law",
        _WINDOW: "outside the window",
        _MISSING: "missing or diverged",
        _NOISE: f"within {noise_factor:g}x of the noise floor",
        _LONE: f"replicate has fewer than {MIN_DEPTHS} depths left",
    }
    found = depth[(why == _USED).any(axis=0)]
    lone = (why == _USED).sum(axis=1) < MIN_DEPTHS
    used_before = why == _USED
    why[lone[:, None] & used_before] = _LONE
    left_out = tuple(
        LeftOut(r, whole(float(depth[d])), float(table[r, d]), reason[int(why[r, d])])
        for r, d in np.argwhere(why != _USED).tolist()
    )
    keep = (why == _USED).any(axis=0)
    needed = MIN_DEPTHS + bool(floor)
    if keep.sum() < needed:
        raise _too_few(found, int(keep.sum()), needed, tuple(p for p in left_out if p.reason != reason[_LONE]))
    _check_offset(offset, depth[keep])
    log_losses = np.full(table.shape, np.nan)
    log_losses[why == _USED] = np.log(table[why == _USED])
    rows = np.nonzero(~lone)[0]
    return Points(log_losses[rows][:, keep], depth[keep], tuple(int(r) for r in rows), left_out)


def count_reasons(left_out: tuple[LeftOut, ...]) -> str:
    """Sums up what was left out.

    >>> count_reasons((LeftOut(0, 0, 1.0, "depth 0 has no power law"),))
    '1 point left out: 1 depth 0 has no power law'
    """
    counts = Counter(point.reason for point in left_out)
    parts = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    return f"{len(left_out)} point{'s' * (len(left_out) != 1)} left out: {parts}"


def _checked(
    losses: ArrayLike, depths: ArrayLike, noise_floor: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns depths (depths,), losses and noise floor (replicates, depths) in float64; raises InputError."""
    depth, table = _floats("depths", depths), _floats("losses", losses)
    if depth.ndim != 1 or not depth.size:
        raise refuse("depths", "a list of numbers", f"shape {depth.shape}", "Give one depth for each column of losses.")
    bad = ~np.isfinite(depth) | (depth < 0)
    if bad.any():
        raise refuse("depths", "finite and 0 or more", f"{depth[bad][0]:g}", "Correct or remove it.")
    values, counts = np.unique(depth, return_counts=True)
    if (counts > 1).any():
        twice = number_name(values[counts > 1][0])
        raise refuse("depths", "distinct", f"{twice} twice", "Give repeats of a depth as replicates: rows of losses.")
    if table.ndim not in (1, 2) or table.shape[-1] != depth.size or not table.size:
        shape = f"(depths,) or (replicates, depths) with {depth.size} depths"
        raise refuse("losses", f"of shape {shape}", f"shape {table.shape}", "Give one loss for each depth.")
    if np.isinf(table).any():
        raise refuse("losses", "finite, or NaN where missing", "inf", "Put NaN for an arm that diverged.")
    noise = _floats("noise_floor", np.nan if noise_floor is None else noise_floor)
    if (noise < 0).any() or np.isinf(noise).any():
        wrong = noise[(noise < 0) | np.isinf(noise)][0]
        raise refuse("noise_floor", "finite and 0 or more", f"{wrong:g}", "Give the mean |noise| of the loss, or NaN.")
    try:
        noise = np.broadcast_to(noise, table.shape)
    except ValueError:
        advice = "Give one number, or one a depth, or one a loss."
        shape = f"broadcastable to the losses' shape {table.shape}"
        raise refuse("noise_floor", shape, f"shape {noise.shape}", advice) from None
    return depth, np.atleast_2d(table), np.atleast_2d(noise)


def _check_offset(offset: float, depths: np.ndarray) -> None:
    """Raises InputError where depths - offset, for ascending depths, is not positive or hardly differs."""
    if offset >= depths[0]:
        raise refuse(
            "offset",
            f"less than every depth used (lowest {number_name(depths[0])})",
            f"{offset:g}",
            "Lower it, or leave shallow depths out with window.",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        left = depths - offset
        spread = (left[-1] - left[0]) / left[-1]
    # Not "spread < ...": where the subtraction overflows, the spread is NaN.
    if not spread >= MIN_SPREAD or not (np.diff(left) > 0).all():
        condition = f"such that depths - offset still tells the depths apart (relative spread {MIN_SPREAD:g} or more)"
        raise refuse("offset", condition, f"{offset:g}", "Give one nearer to the depths.")


def _floats(name: str, values: ArrayLike) -> np.ndarray:
    """Returns the values in float64, NaN where masked or None; raises InputError for what is no real number."""
    got = type(values).__name__
    try:
        given = _unmasked(values)
        # As objects: among numbers, numpy makes a number of a bool, and of all of them strings where one is.
        array = np.asarray(given, dtype=object if isinstance(given, list) else None)
        strange = [one for one in array.ravel() if not _is_real(one)] if array.dtype.kind == "O" else []
        if not strange and (array.dtype.kind == "O" or _holds_reals(array.dtype)):
            with np.errstate(over="ignore"):
                return array.astype(np.float64)
        got = f"{got} of {type(strange[0]).__name__ if strange else array.dtype}"
    except OverflowError:
        got = f"{got} with one beyond float64"
    except (TypeError, ValueError):
        pass  # ragged, or no array at all
    raise refuse(name, "a rectangular array of numbers", got, "Use NaN where one is missing.")


def _unmasked(values: Any, levels: int = 3) -> Any:
    """Puts NaN for what is masked, in lists of masked arrays too: numpy drops a mask where it makes an array."""
    if isinstance(values, list | tuple) and levels:
        return [_unmasked(one, levels - 1) for one in values]
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return list(values)  # as objects, spans of nanoseconds would be integers
    if isinstance(values, np.ma.MaskedArray) and (values.dtype.kind == "O" or _holds_reals(values.dtype)):
        return np.ma.filled(values.astype(object if values.dtype.kind == "O" else np.float64), np.nan)
    return values


def _is_real(value: Any) -> bool:
    dtype = np.asarray(value).dtype
    return value is None or _holds_reals(dtype) or (dtype.kind == "O" and isinstance(value, numbers.Number))


def _holds_reals(dtype: np.dtype) -> bool:
    # V: bfloat16 and its like, which are not numpy's own.
    return dtype.kind in "iuf" or (dtype.kind == "V" and np.can_cast(dtype, np.float64))


def _too_few(found: np.ndarray, num_used: int, needed: int, left_out: tuple[LeftOut, ...]) -> Exception:
    names = ", ".join(number_name(d) for d in found) or "none"
    because = f" ({count_reasons(left_out)})" if left_out else ""
    advice = f"Fewer than {needed} distinct depths cannot show this law: add depths, or relax window or noise_factor."
    if found.size >= needed and num_used == 0:
        condition = f"at least {MIN_DEPTHS} distinct depths within one replicate after exclusions"
        return refuse("depths", condition, f"fewer in each, of {names}{because}", advice)
    return refuse("depths", f"at least {needed} distinct depths after exclusions", f"{names}{because}", advice)
