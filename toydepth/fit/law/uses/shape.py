"""The best shape of a network, m / ell at a fixed N = 12 m^2 ell; and how a consequence of a law gets its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toydepth.fit.checks import check_confidence, check_count, plain, refuse
from toydepth.fit.law.law_fit import LawFit, interval_text
from toydepth.fit.law.resample import bootstrap
from toydepth.fit.law.text import align, significant
from toydepth.fit.law.uses.cost import SIZE_FACTOR

_FAR = np.log(1e6)  # a best shape this factor away from the table's shapes is none
_GRID = 161  # shapes at which the loss is looked at first; one valley between two of them is then found exactly
_HALVINGS = 48
_SAME_SIZE = 1.1  # N / (m^2 ell) may vary by this factor, largest over smallest, and N still be that of m and ell
NO_SIZE = (
    f"N, a variable beside m and ell, is not a constant times m^2 ell over the rows (within a factor {_SAME_SIZE})"
)
_CURVED = 1.2  # how far off a parabola the objective may be at normal draws
_RESAMPLES = 600
_RESAMPLED_ROWS = 1e6  # rows times resamples, at most: half a second


@dataclass(frozen=True)
class Quantity:
    """A number that follows from a fit.

    Attributes:
        value: at the fit's minimum; None where there is none, with the reason.
        low, high: percentiles over the draws of `LawFit.draw`; None where that tail has no number.
        median: of the draws. lost: the share of draws in which it does not exist.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    median: float | None = None
    lost: float = 0.0
    reason: str | None = None

    def text(self) -> str:
        """Returns `59.6 [52.1, 68.9]`, or `?`."""
        if self.value is None:
            return "?"
        error = None if self.low is None or self.high is None else (self.high - self.low) / 4
        if error is not None and error <= 1e-5 * abs(self.value):
            return significant(self.value)  # it follows from fixed exponents alone
        return f"{significant(self.value, error)} {interval_text((self.low, self.high), error)}"


def summarise(values: np.ndarray, confidence: float, reason: str) -> Quantity:
    """Returns the quantity of values (1 + draws,), at the minimum and in draws.

    +inf and -inf stand for "beyond any number" on that side, NaN for none at all, which counts in both tails.

    Args:
        values: the first at the fit's minimum.
        confidence: of the interval.
        reason: given where the first is no number.
    """
    draws = values[1:]
    lost = float(np.mean(~np.isfinite(draws))) if draws.size else 0.0
    if not np.isfinite(values[0]):
        return Quantity(None, lost=lost, reason=reason)
    if not draws.size:
        return Quantity(float(values[0]))
    none = np.isnan(draws)
    # Never between a number and infinity: the next draw outwards.
    low = np.quantile(np.where(none, -np.inf, draws), (1 - confidence) / 2, method="lower")
    high = np.quantile(np.where(none, np.inf, draws), (1 + confidence) / 2, method="higher")
    middle = np.quantile(draws[~none], 0.5, method="nearest") if lost < 0.5 else np.nan
    low, high, middle = (float(x) if np.isfinite(x) else None for x in (low, high, middle))
    return Quantity(float(values[0]), low, high, middle, lost)


@dataclass(frozen=True, eq=False)
class Laws:
    """Many laws of one form: log_c (r, K), alpha (r, K), floor (r,), which is L0; origin: where the draws are from."""

    log_c: np.ndarray
    alpha: np.ndarray
    floor: np.ndarray
    origin: str = ""

    def log_terms(self, k: int, shifted: np.ndarray) -> np.ndarray:
        """Returns ln T_k (r, ...) at x_k less its offset, of shape (r, ...)."""
        ahead = (slice(None), *(None,) * (np.ndim(shifted) - 1))
        return self.log_c[:, k][ahead] - self.alpha[:, k][ahead] * np.log(shifted)


def laws_of(fit: LawFit, natural: np.ndarray, origin: str = "") -> Laws:
    """Returns the laws with parameters (ln c, free exponents, ln L0), (r, p)."""
    return Laws(*fit.estimate.problem.model.split(natural), origin)


def draw_laws(fit: LawFit, seed: int, count: int = 1000) -> Laws:
    """Returns the law at the minimum, then draws of it, (1 + draws) in all.

    Those of `LawFit.draw`, as long as the objective is a parabola as far out as they reach. With free exponents it is
    often a bent valley, which normal draws leave: most losses at the draws are then above that of the fit, and
    intervals are wrong; a bootstrap is used instead. Normal draws are stretched by sqrt(degrees / chi^2) to those
    of Student's t, so that a parameter's percentiles are the ends of its covariance interval.
    """
    check_count("seed", seed, 0)
    e = fit.estimate
    origin = "the fit's bootstrap"
    with np.errstate(all="ignore"):
        draws = fit.draw(count, seed)
        if fit.draws is None and _leaves_valley(fit, draws[:200]):
            draws = bootstrap(e, int(np.clip(_RESAMPLED_ROWS / e.num_rows, 200, _RESAMPLES)), seed)
            origin = "a bootstrap, since the objective is no parabola at normal draws"
        elif fit.draws is None:
            chi2 = np.random.default_rng([seed, 1]).chisquare(max(e.interval_degrees, 1), size=len(draws))
            draws = e.natural + (draws - e.natural) * np.sqrt(e.interval_degrees / chi2)[:, None]
            origin = "draws of Student's t with the fit's covariance"
        return laws_of(fit, np.concatenate([e.natural[None], draws]), f"{len(draws)}: {origin}")


def _leaves_valley(fit: LawFit, draws: np.ndarray) -> bool:
    """Whether a fifth of the draws fit worse, or better, by more than a fifth than a parabola would have it."""
    e = fit.estimate
    if fit.unidentified:
        return True  # along what is not identified there is no parabola
    matrix, _ = e.problem.model.to_natural()
    moves = np.linalg.solve(matrix, (draws - e.natural).T).T
    worse = lambda scale: np.asarray(e.delta_chi2(e.problem.value(e.theta + scale * moves, e.weights)))  # noqa: E731
    parabola = (worse(0.02) + worse(-0.02)) / (2 * 0.02**2)
    ratio = worse(1.0) / np.maximum(parabola, 1e-300)
    return bool(np.mean((ratio > _CURVED) | (ratio < 1 / _CURVED)) > 0.2)


def why_unknown(fit: LawFit, names: Sequence[str]) -> str | None:
    """Returns why something that depends on these parameters has no number; None if all are identified."""
    for name in names:
        if reason := fit.parameters[name].reason:
            return f"{name} is not identified: {reason}"
    return None


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
    known = raw_variables(fit)
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
    rows = raw_variables(fit)
    if not {"m", "ell", "N"} <= set(rows):
        return SIZE_FACTOR
    ratio = rows["N"] / (rows["m"] ** 2 * rows["ell"])
    return float(np.median(ratio)) if ratio.max() <= _SAME_SIZE * ratio.min() else None


def raw_variables(fit: LawFit) -> dict[str, np.ndarray]:
    """Returns the variables of the rows, with their offsets put back."""
    return {name: values + fit.offsets.get(name, 0.0) for name, values in fit.rows.variables.items()}


class Valley:
    """The width and depth terms of many laws against s = ln(m / ell), at a fixed N."""

    def __init__(self, fit: LawFit, laws: Laws) -> None:
        self.laws, self.places = laws, [fit.law.variables.index(name) for name in ("m", "ell")]
        self.offsets = [fit.offsets.get(name, 0.0) for name in ("m", "ell")]
        known = raw_variables(fit)
        self.ratios = known["m"] / known["ell"]

    def terms(self, s: np.ndarray, log_size: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns (T, -d ln T / d ln x) of width and of depth, each of the shape of s (r, ...)."""
        n = log_size - np.log(SIZE_FACTOR)
        found = []
        for k, offset, log_x in zip(self.places, self.offsets, ((n + s) / 3, (n - 2 * s) / 3), strict=True):
            x = np.exp(log_x)
            alpha = self.laws.alpha[:, k].reshape(-1, *(1,) * (s.ndim - 1))
            found.append((np.exp(self.laws.log_terms(k, x - offset)), alpha * x / (x - offset)))
        return found

    def total(self, s: np.ndarray, log_size: float) -> np.ndarray:
        """Returns T_m + T_ell."""
        return sum(term for term, _ in self.terms(s, log_size))  # pyright: ignore[reportReturnType]

    def slope_in_size(self, s: np.ndarray, log_size: float) -> np.ndarray:
        """Returns d ln (T_m + T_ell) / d ln N at the best shape s, where moving along s changes nothing."""
        (wide, of_wide), (deep, of_deep) = self.terms(s, log_size)
        return -(wide * of_wide + deep * of_deep) / (3 * (wide + deep))

    def ends(self, log_size: float) -> tuple[float, float]:
        """Returns the ends of s: where m or ell comes down to its offset, or a factor 1e6 beyond the table's shapes."""
        n = log_size - np.log(SIZE_FACTOR)
        low, high = np.log(self.ratios.min()) - _FAR, np.log(self.ratios.max()) + _FAR
        wide, deep = self.offsets
        low = max(low, 3 * np.log(wide) - n + 1e-9) if wide > 0 else low
        high = min(high, (n - 3 * np.log(deep)) / 2 - 1e-9) if deep > 0 else high
        return float(low), float(high)

    def best(self, log_size: float) -> np.ndarray:
        """Returns the best s (r,): -inf where deeper, +inf where wider is always better, NaN where nothing is."""
        low, high = self.ends(log_size)
        if low >= high:
            return np.full(len(self.laws.floor), np.nan)
        grid = np.linspace(low, high, _GRID)
        with np.errstate(all="ignore"):
            everywhere = self.total(np.broadcast_to(grid, (len(self.laws.floor), _GRID)), log_size)
            lowest = np.argmin(np.nan_to_num(everywhere, nan=np.inf), axis=1)
            left, right = grid[np.maximum(lowest - 1, 0)], grid[np.minimum(lowest + 1, _GRID - 1)]
            s = halve(lambda x: self._falls(x, log_size), left, right)
        s = np.where(lowest == 0, -np.inf, np.where(lowest == _GRID - 1, np.inf, s))
        wide, deep = (self.laws.alpha[:, k] > 0 for k in self.places)
        return np.where(wide & deep, s, np.where(wide, np.inf, np.where(deep, -np.inf, np.nan)))

    def _falls(self, s: np.ndarray, log_size: float) -> np.ndarray:
        (wide, of_wide), (deep, of_deep) = self.terms(s, log_size)
        return wide * of_wide > 2 * deep * of_deep

    def tolerable(self, s: np.ndarray, log_size: float, more: np.ndarray) -> list[np.ndarray]:
        """Returns the lowest and highest s (r,) where the terms are at most `more` (r,) above those at the best s."""
        low, high = self.ends(log_size)
        found = []
        with np.errstate(all="ignore"):
            level = self.total(s, log_size) + more
            for sign, end in ((-1, low), (1, high)):
                inside = lambda x: self.total(x, log_size) <= level  # noqa: E731
                edge = np.full_like(s, end)
                crossed = halve(inside, s, edge)
                found.append(np.where(np.isfinite(s), np.where(inside(edge), sign * np.inf, crossed), s))
        return found


def halve(holds: Callable[[np.ndarray], np.ndarray], first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Returns where a condition ceases to hold between first, where it does, and last, where it does not."""
    for _ in range(_HALVINGS):
        middle = (first + last) / 2
        yes = holds(middle)
        first, last = np.where(yes, middle, first), np.where(yes, last, middle)
    return (first + last) / 2


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
