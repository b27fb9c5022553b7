"""Null fields, and what the distribution of a field's values and their places on the graph each add to a cascade."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toydepth.errors import InputError
from toydepth.intervals import Interval, t_interval
from toydepth.transport.checks import check_confidence, check_seed, check_word

NULLS = ("N0", "N1", "N2")


def null_field(kind: str, values: np.ndarray, seed: int = 0) -> np.ndarray:
    """Draws a null of a field.

    N0: standard Gaussian. N1: Gaussian of the field's mean and variance. N2: the field's values, signs kept, permuted
    over nodes.

    Args:
        kind: N0, N1 or N2.
        values: (num_nodes,), finite.
        seed: draws of different seeds, kinds or lengths are independent of each other, and of graphs.

    Raises:
        InputError: for another kind, or a seed below 0.

    Example:
        >>> sorted(null_field("N2", np.array([3.0, -1.0, 2.0])).tolist())
        [-1.0, 2.0, 3.0]

    Source: arXiv 2605.02968.
    """
    check_word("kind", kind, NULLS)
    check_seed(seed)
    # The last word keeps these streams apart from those of graphs and of node orders.
    generator = np.random.default_rng([seed, len(values), NULLS.index(kind), 0x6E756C6C])
    if kind == "N2":
        return generator.permutation(np.asarray(values))
    drawn = generator.standard_normal(len(values))
    if kind == "N0":
        return drawn
    wide = np.asarray(values, np.float64)
    # Scaled first: squares of float32's largest values leave even float64's range when they are 1e200.
    scale = float(np.abs(wide).max(initial=0.0)) or 1.0
    return scale * (float(np.mean(wide / scale)) + float(np.std(wide / scale)) * drawn)


@dataclass(frozen=True)
class Effect:
    """A difference of two kinds of field in one quantity, paired by graph seed.

    Attributes:
        mean: over pairs; None without a pair.
        interval: Student, over pairs; None for fewer than two. It holds for these fields: what another training, or
            another sample of parameters, would change is not in it.
        num_pairs, num_left_out: graph seeds in it; those left out because one side has no number.
        by_construction: this difference is 0 in expectation whatever the field; what is seen is noise.
    """

    mean: float | None
    interval: Interval | None
    num_pairs: int
    num_left_out: int
    by_construction: bool = False


def null_effects(
    quantity: Mapping[str, np.ndarray], *, order: str = "permuted", confidence: float = 0.95
) -> dict[str, Effect]:
    """Returns both effects on a quantity: distribution = N2 - N0, assignment = field - N2.

    With nodes in a drawn order a field is itself one of its N2 draws: the assignment effect is then 0 by construction,
    and is marked so. Only `order="as_is"` can show one.

    Args:
        quantity: keys field, N0, N2; (graph seeds,) each, in the same order of seeds: any of D, z, ln s, v_rel ...
            NaN where there is none.
        order: of the nodes, as in `place_nodes`.
        confidence: of the intervals.

    Raises:
        InputError: for a missing kind, for unequal lengths, for a confidence outside (0, 1).

    Example:
        >>> ones = np.ones(3)
        >>> null_effects({"field": 3 * ones, "N2": 2 * ones, "N0": ones}, order="as_is")["assignment"].mean
        1.0

    Source: arXiv 2605.02968; pairs and intervals are ours.
    """
    check_confidence(confidence)
    missing = [kind for kind in ("field", "N0", "N2") if kind not in quantity]
    if missing:
        raise InputError(f"quantity must hold field, N0 and N2, got none for {', '.join(missing)}. Measure these.")
    lengths = {kind: len(quantity[kind]) for kind in ("field", "N0", "N2")}
    if len(set(lengths.values())) > 1:
        raise InputError(f"quantity must hold a number a graph seed for each kind, got {lengths}. Use the same seeds.")
    drawn = order != "as_is"
    return {
        "distribution": _paired(quantity["N2"], quantity["N0"], confidence, False),
        "assignment": _paired(quantity["field"], quantity["N2"], confidence, drawn),
    }


def _paired(first: np.ndarray, second: np.ndarray, confidence: float, by_construction: bool) -> Effect:
    """The mean of first - second over the pairs that have both."""
    all_pairs = np.asarray(first, float) - np.asarray(second, float)
    pairs = all_pairs[np.isfinite(all_pairs)]
    left_out = len(all_pairs) - len(pairs)
    if not len(pairs):
        return Effect(None, None, 0, left_out, by_construction)
    mean = float(pairs.mean())
    error = float(pairs.std(ddof=1)) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.nan
    interval = t_interval(mean, error, len(pairs) - 1, confidence)
    return Effect(mean, interval, len(pairs), left_out, by_construction)
