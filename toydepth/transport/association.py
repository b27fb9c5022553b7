"""Does a channel of the probe go with a curve, such as the loss? Rank correlations over the steps of one training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from toydepth.errors import InputError
from toydepth.intervals import Interval, t_interval, t_p_value
from toydepth.transport.checks import check_confidence, check_count, check_seed
from toydepth.transport.ranks import block_length, draw_blocks, rank_correlation

LEAST_STEPS = 12
# Resamples as good as perfect are taken to be this good: artanh is infinite at 1.
_EDGE = 1 - 1e-9


@dataclass(frozen=True)
class Correlation:
    """A rank correlation over steps.

    Attributes:
        rho: None where it is not defined, and `problem` says why.
        interval, p_value: by a moving-block bootstrap; None where it has none to give: for a perfect correlation, or
            where few resamples have one.
        p_holm: p_value corrected for the number of channels.
        block: steps of a block.
    """

    rho: float | None
    interval: Interval | None = None
    p_value: float | None = None
    p_holm: float | None = None
    block: int = 0
    problem: str = ""

    @property
    def excludes_zero(self) -> bool:
        """The interval lies on one side of 0, or the correlation is perfect, which has no interval."""
        if self.interval is None:
            return self.rho is not None and abs(self.rho) > _EDGE
        return self.interval[0] * self.interval[1] > 0


@dataclass(frozen=True)
class Association:
    """A channel against a curve.

    Attributes:
        raw, partial: without and with the controls; partial is None without controls.
        given_step: partial, the step the only control: what is left when both only rise or fall.
        differences: of changes from one step to the next.
        num_steps, num_left_out: steps with all numbers; steps without.
    """

    channel: str
    raw: Correlation
    partial: Correlation | None
    given_step: Correlation
    differences: Correlation
    num_steps: int
    num_left_out: int

    @property
    def trend(self) -> str:
        """In what a raw correlation is lost; empty where it stands.

        It is lost where the interval holds 0 or the sign turns, and where nothing is left: a loss that falls at every
        step is a function of it, and no data can tell the two apart.
        """
        if not self.raw.excludes_zero:
            return ""
        sign, lost = self.raw.rho or 0.0, []
        for name, found in (("given step", self.given_step), ("in differences", self.differences)):
            if found.rho is None:
                lost.append(f"{name} (nothing is left)")
            elif not (found.excludes_zero and found.rho * sign > 0):
                lost.append(name)
        return " and ".join(lost)

    @property
    def is_trend_driven(self) -> bool:
        """The raw correlation may be no more than two trends: it is lost given step, in differences, or in both."""
        return bool(self.trend)


def associate(
    channels: Mapping[str, np.ndarray],
    curve: np.ndarray,
    controls: Mapping[str, np.ndarray] | None = None,
    *,
    block: int | None = None,
    num_bootstrap: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[Association]:
    """Correlates each channel with a curve by ranks over the steps of one training.

    Intervals: the standard deviation of artanh rho over resamples of blocks of steps, widened by
    sqrt(steps / (steps - block)), for a resample of blocks varies too little, with Student's t of steps / block - 1
    degrees. Two series that drift with a memory as long as the training have no correlation to speak of, and their
    intervals are too narrow (coverage 0.88 at an autocorrelation of 0.97): is_trend_driven is there for them. p values
    are of the same t, corrected over channels by Holm, apart for each kind of correlation.

    Args:
        channels: name -> (steps,), such as v_rel, n / N, D; NaN where a field had no cascade.
        curve: (steps,), such as the loss. Steps in order; their spacing plays no part.
        controls: name -> (steps,), such as the learning rate.
        block: steps of a block; None: by `block_length` of each pair.
        num_bootstrap: resamples, 100 or more.
        confidence: of the intervals.
        seed: of the resamples.

    Returns:
        One association a channel, in order.

    Raises:
        InputError: for unequal lengths; for no channel; for options out of range; for fewer than 12 steps.

    Example:
        >>> noise = np.random.default_rng(0).normal(size=(2, 60))
        >>> found = associate({"v_rel": noise[0] + noise[1]}, noise[0])[0]
        >>> found.raw.excludes_zero, found.is_trend_driven
        (True, False)

    Source: rank and partial rank correlations, arXiv 2605.02968; intervals, correction and checks are ours.
    """
    check_confidence(confidence)
    if not channels:
        raise InputError("channels must be one or more, got none. Name what to correlate.")
    check_count("num_bootstrap", num_bootstrap, 100, "1000 is the default.")
    check_seed(seed)
    controls = controls or {}
    y = np.asarray(curve, float)
    named = {**{f"control {k}": v for k, v in controls.items()}, **{f"channel {k}": v for k, v in channels.items()}}
    for name, values in named.items():
        if np.shape(values) != y.shape or y.ndim != 1:
            raise InputError(
                f"{name} must be {y.shape}, as the curve is, got {np.shape(values)}. Give a number a step."
            )
    if len(y) < LEAST_STEPS:
        raise InputError(f"curve must have {LEAST_STEPS} steps or more, got {len(y)}. Measure more steps.")
    if block is not None and not 1 <= block <= len(y) // 2:
        raise InputError(f"block must be 1 ... half of the {len(y)} steps, got {block}. Leave it out for the default.")
    given = np.array([np.asarray(values, float) for values in controls.values()]).reshape(len(controls), len(y))
    options = (block, num_bootstrap, confidence, seed)
    found = [_channel(name, np.asarray(x, float), y, given, options) for name, x in channels.items()]
    return _corrected(found)


_Options = tuple[int | None, int, float, int]


def _channel(name: str, x: np.ndarray, y: np.ndarray, controls: np.ndarray, options: _Options) -> Association:
    """All correlations of one channel, over the steps at which nothing is missing."""
    step = np.arange(len(y), dtype=float)
    known = np.isfinite(x) & np.isfinite(y) & np.isfinite(controls).all(axis=0)
    x, y, step, controls = x[known], y[known], step[known], controls[:, known]
    num, left_out = len(x), int((~known).sum())
    if num < LEAST_STEPS:
        none = Correlation(None, problem=f"fewer than {LEAST_STEPS} steps")
        return Association(name, none, none if len(controls) else None, none, none, num, left_out)
    return Association(
        channel=name,
        raw=_correlate(x, y, None, options),
        partial=_correlate(x, y, controls, options) if len(controls) else None,
        given_step=_correlate(x, y, step[None], options),
        differences=_correlate(np.diff(x), np.diff(y), None, options),
        num_steps=num,
        num_left_out=left_out,
    )


def _correlate(x: np.ndarray, y: np.ndarray, controls: np.ndarray | None, options: _Options) -> Correlation:
    """One correlation with its interval."""
    block, num_bootstrap, confidence, seed = options
    length = block or block_length(x, y)
    rho = float(rank_correlation(x, y, controls))
    if not math.isfinite(rho):
        constant = np.ptp(x) == 0 or np.ptp(y) == 0
        why = "a constant series" if constant else "nothing is left of a series"
        return Correlation(None, block=length, problem=why)
    generator = np.random.default_rng([seed, len(x)])
    places = draw_blocks(len(x), length, num_bootstrap, generator)
    drawn = rank_correlation(x[places], y[places], None if controls is None else controls[:, places])
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < num_bootstrap / 2:
        return Correlation(rho, block=length, problem="most resamples have no correlation")
    spread = float(np.std(np.arctanh(np.clip(drawn, -_EDGE, _EDGE))))
    if abs(rho) > _EDGE or not spread > 0:
        return Correlation(rho, block=length, problem="resamples do not vary")
    z = math.atanh(rho)
    error, degrees = spread * math.sqrt(len(x) / (len(x) - length)), max(len(x) / length - 1, 1)
    reach = t_interval(z, error, degrees, confidence)
    interval = None if reach is None else (math.tanh(reach[0]), math.tanh(reach[1]))
    return Correlation(rho, interval, t_p_value(z, error, degrees), block=length)


def _corrected(found: list[Association]) -> list[Association]:
    """With p_holm in each kind of correlation."""
    for kind in ("raw", "partial", "given_step", "differences"):
        all_of_kind = [getattr(a, kind) for a in found]
        with_p = [i for i, c in enumerate(all_of_kind) if c is not None and c.p_value is not None]
        for i, p in zip(with_p, holm([all_of_kind[i].p_value for i in with_p]), strict=True):
            found[i] = replace(found[i], **{kind: replace(all_of_kind[i], p_holm=p)})
    return found


def holm(p_values: list[float]) -> list[float]:
    """Returns p values corrected for their number: the k-th least times (n - k + 1), rising, at most 1.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]

    Source: Holm, Scandinavian Journal of Statistics 1979.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, floor = [0.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        floor = max(floor, min(1.0, (len(order) - place) * p_values[i]))
        corrected[i] = floor
    return corrected
