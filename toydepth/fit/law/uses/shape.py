"""The best shape of a network, m / ell at a fixed N = 12 m^2 ell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toydepth.fit.checks import check_confidence, plain, refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.text import align, significant
from toydepth.fit.law.uses.cost import SIZE_FACTOR
from toydepth.fit.law.uses.draws import Laws, Quantity, draw_laws, summarise, why_unknown
from toydepth.fit.law.uses.valley import Valley

_SAME_SIZE = 1.1  # N / (m^2 ell) may vary by this factor, largest over smallest, and N still be that of m and ell
NO_SIZE = (
    f"N, a variable beside m and ell, is not a constant times m^2 ell over the rows (within a factor {_SAME_SIZE})"
)


@dataclass(frozen=True)
class ShapeAt:
    """The best shape at one N: ratio m / ell, m, ell, terms (width over depth term), and the tolerable m / ell.

    within_terms: (low, high) where the width and depth terms add up to less than 5 % more than at best; within_loss:
    where the loss is less than 1 % more, with the other variables at their medians. beyond: by what factor the ratio
    lies outside the table's (1 inside).
    """

    N: float
    ratio: Quantity
    m: Quantity
    ell: Quantity
    terms: Quantity
    within_terms: tuple[Quantity, Quantity]
    within_loss: tuple[Quantity, Quantity]
    beyond: float


@dataclass(frozen=True)
class Shape:
    """The best shape, at the table's median N and, where it depends on N, a decade above; or the reason for none.

    slope: d ln (T_m + T_ell) / d ln N along the best shapes, at the first N.
    """

    at: tuple[ShapeAt, ...]
    slope: Quantity | None
    depends_on_size: bool
    reason: str | None
    confidence: float

    def report(self) -> str:
        """Returns the shape as text."""
        title = "best shape, at fixed N = 12 m^2 ell"
        if self.reason or self.slope is None:
            return f"{title}: none: {self.reason}"
        rows = [["", *(f"N = {significant(one.N)}" for one in self.at)]]
        parts: list[tuple[str, Callable[[ShapeAt], Quantity]]] = [
            ("m / ell", lambda one: one.ratio),
            ("m", lambda one: one.m),
            ("ell", lambda one: one.ell),
            ("width term / depth term", lambda one: one.terms),
            ("both terms within 5 %: m / ell from", lambda one: one.within_terms[0]),
            ("  to", lambda one: one.within_terms[1]),
            ("loss within 1 %: m / ell from", lambda one: one.within_loss[0]),
            ("  to", lambda one: one.within_loss[1]),
        ]
        rows += [[name, *(part(one).text() for one in self.at)] for name, part in parts]
        if any(one.beyond > 1 for one in self.at):
            rows.append(["beyond the table's m / ell by", *(f"x {one.beyond:.3g}" for one in self.at)])
        lines = [f"{title} ({100 * self.confidence:g} % intervals)", *align(rows)]
        lines.append(f"  width and depth terms at best ~ N^{self.slope.text()}")
        lines += sorted({f"  no loss: {one.within_loss[0].reason}" for one in self.at if one.within_loss[0].reason})
        lost = max(one.ratio.lost for one in self.at)
        if lost:
            lines.append(f"  {100 * lost:.2g} % of the draws have no best shape")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Returns the shape for JSON."""
        return plain(asdict(self))


def best_shape(
    fit: LawFit,
    *,
    num_parameters: float | None = None,
    confidence: float | None = None,
    seed: int = 0,
    laws: Laws | None = None,
) -> Shape:
    """Returns the m / ell that makes the width and depth terms smallest at a fixed N = 12 m^2 ell.

    With s = ln(m / ell) and n = ln(N / 12), ln m = (n + s) / 3 and ln ell = (n - 2 s) / 3, so that the sum
    T_m + T_ell = c_m / m^a_m + c_ell / ell^a_ell has the derivative (2 a_ell T_ell - a_m T_m) / 3 in s. Hence at best
    a_m T_m = 2 a_ell T_ell: where a_m = a_ell the terms stand 2 : 1. Solved,

        ln(m / ell) = (3 ln(a_m c_m / (2 a_ell c_ell)) + (a_ell - a_m) n) / (a_m + 2 a_ell),

    c_m / (2 c_ell) for exponents 1, 1. The sum then falls as N^-(a_m a_ell / (a_m + 2 a_ell)), N^-1/3 for 1, 1. None of
    this is put in: the minimum is found numerically, since offsets change it. An exponent that is not positive in
    a draw leaves no optimum there: wider (or deeper) is always better.

    Args:
        fit: of a law with m and ell.
        num_parameters: the first N; default: the median of 12 m^2 ell over the rows.
        confidence: of the intervals; default: the fit's.
        seed: of the draws. laws: draws made before, of `draw_laws`.

    Raises:
        InputError: for a number out of range.

    Example:
        >>> import pandas as pd
        >>> from toydepth.fit.law.fitting import fit_law
        >>> m, ell = (x.ravel() for x in np.meshgrid([128, 256, 512, 1024], [4, 8, 16, 32]))
        >>> runs = pd.DataFrame({"m": m, "ell": ell, "loss": 400 / m + 4 / ell + 1.7})
        >>> best_shape(fit_law(runs, "universal", {"m": "m", "ell": "ell"})).at[0].ratio.text()
        '50.00'

    Source: arXiv 2606.25008, for exponents 1, 1; the rest follows as above.
    """
    confidence = check_confidence(fit.confidence if confidence is None else confidence)
    names = fit.law.variables
    if "m" not in names or "ell" not in names:
        return Shape((), None, False, f"the law is of {', '.join(names)}, not of m and ell", confidence)
    if reason := why_unknown(fit, ["c_m", "alpha_m", "c_ell", "alpha_ell"]):
        return Shape((), None, False, reason, confidence)
    if size_ratio(fit) is None:
        return Shape((), None, False, NO_SIZE, confidence)
    known = fit.rows.unshifted(fit.offsets)
    size = float(np.median(SIZE_FACTOR * known["m"] ** 2 * known["ell"])) if num_parameters is None else num_parameters
    if not (np.isfinite(size) and size > 0):
        raise refuse("num_parameters", "a positive number", size, "Leave it out for the table's median.")
    laws = laws or draw_laws(fit, seed)
    depends = not bool(np.all(laws.alpha[:, names.index("m")] == laws.alpha[:, names.index("ell")]))
    depends = depends or any(fit.offsets.get(name, 0.0) for name in ("m", "ell"))
    valley = Valley(fit, laws)
    sizes = (size, 10 * size) if depends else (size,)
    at = tuple(_shape_at(fit, valley, one, confidence) for one in sizes)
    if at[0].ratio.value is None:
        return Shape((), None, depends, at[0].ratio.reason, confidence)
    s = valley.best(np.log(size))
    with np.errstate(all="ignore"):
        slope = np.where(np.isfinite(s), valley.slope_in_size(s, np.log(size)), np.nan)
    return Shape(at, summarise(slope, confidence, "no best shape"), depends, None, confidence)


def size_ratio(fit: LawFit) -> float | None:
    """Returns N / (m^2 ell): 12, or where the law has N beside m and ell that of the rows; None where it varies."""
    rows = fit.rows.unshifted(fit.offsets)
    if not {"m", "ell", "N"} <= set(rows):
        return SIZE_FACTOR
    ratio = rows["N"] / (rows["m"] ** 2 * rows["ell"])
    return float(np.median(ratio)) if ratio.max() <= _SAME_SIZE * ratio.min() else None


def _shape_at(fit: LawFit, valley: Valley, size: float, confidence: float) -> ShapeAt:
    log_size = float(np.log(size))
    s = valley.best(log_size)
    exponents = fit.values
    falling = [name for name in ("alpha_m", "alpha_ell") if exponents[name] <= 0]
    why = f"no m / ell within a factor 1e6 of the table's is best at N = {significant(size)}"
    if falling:
        why = f"{falling[0]} = {significant(exponents[falling[0]])} is not positive, so there is no best shape"
    of = lambda values: summarise(values, confidence, why)  # noqa: E731
    ratio_of = lambda x: np.where(np.isfinite(x), np.exp(np.where(np.isfinite(x), x, 0)), x)  # noqa: E731
    log_m, log_ell = (log_size - np.log(SIZE_FACTOR) + s) / 3, (log_size - np.log(SIZE_FACTOR) - 2 * s) / 3
    with np.errstate(all="ignore"):
        (wide, _), (deep, _) = valley.terms(s, log_size)
        balance = np.where(np.isfinite(s), wide / deep, np.nan)
        terms = [of(ratio_of(x)) for x in valley.tolerable(s, log_size, 0.05 * (wide + deep))]
        every = [*(t.coefficient for t in fit.law.terms), *(t.alpha for t in fit.law.terms), "L0"]
        unknown = why_unknown(fit, every)
        if unknown:
            loss = [Quantity(None, reason=unknown)] * 2
        else:
            rest = valley.laws.floor.copy()
            for k, name in enumerate(fit.law.variables):
                if name not in ("m", "ell"):
                    rest += np.exp(valley.laws.log_terms(k, np.full(len(rest), np.median(fit.rows.variables[name]))))
            loss = [of(ratio_of(x)) for x in valley.tolerable(s, log_size, 0.01 * (wide + deep + rest))]
    ratio = of(ratio_of(s))
    known = valley.ratios
    beyond = 1.0 if ratio.value is None else max(1.0, ratio.value / known.max(), known.min() / ratio.value)
    quantities = of(ratio_of(log_m)), of(ratio_of(log_ell)), of(balance)
    return ShapeAt(size, ratio, *quantities, (terms[0], terms[1]), (loss[0], loss[1]), float(beyond))
