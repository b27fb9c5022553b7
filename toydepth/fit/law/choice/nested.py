"""Whether a table is compatible with a law that fixes what another leaves free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import fdtrc

from toydepth.fit.checks import is_number, plain
from toydepth.fit.law.choice.criteria import is_exact
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.model import make_model
from toydepth.fit.law.terms import Law, exponent_text
from toydepth.fit.law.text import p_value_text, significant

_NEARLY = 0.05  # growth of the residual std up to which a significant misfit is a small one
_MANY_GROUPS = 30  # with 12 groups of 4 rows 11 % of true laws are rejected at 5 %
_MANY_ROWS = 100  # with 48 rows 10 % of true laws are rejected at 5 % by the Huber loss


@dataclass(frozen=True)
class NestedTest:
    """A law with fewer free numbers against one that contains it.

    Attributes:
        small, large: names. constraints: what the small one fixes, such as "alpha_m = 1".
        statistic, degrees, p_value: of F; None without noise to compare with (reason).
        over_groups: whether they are of the covariance over groups, rather than of independent rows.
        growth: of the residual standard deviation, small over large, less 1.
        verdict: compatible, nearly compatible, not compatible, or None.
        subject: "the fixed exponents", "the shared exponents", "L0 = 0". notes: what weakens the verdict.
    """

    small: str
    large: str
    constraints: tuple[str, ...]
    statistic: float | None
    degrees: tuple[int, int]
    p_value: float | None
    over_groups: bool
    growth: float | None
    verdict: str | None
    subject: str
    notes: tuple[str, ...]
    reason: str | None

    def lines(self) -> list[str]:
        """Returns the verdict as text."""
        head = f"{self.small} within {self.large} ({', '.join(self.constraints)}):"
        if self.verdict is None or self.statistic is None or self.growth is None:
            return [head, f"  no verdict: {self.reason}"]
        degrees = ", ".join(map(str, self.degrees))
        test = f"F({degrees}) = {significant(self.statistic)}, p {p_value_text(self.p_value)}"
        if self.over_groups:
            test += ", over groups"
        are, them = ("is", "it") if self.subject.startswith("L0") else ("are", "them")
        change = "smaller" if self.growth < 0 else "larger"
        growth = (
            f"{100 * abs(self.growth):.2g} % {change}" if self.growth < 1 else f"{1 + self.growth:.3g} times as large"
        )
        line = f"{self.subject} {are} {self.verdict} with the table ({test}); residual std {growth} with {them}"
        if self.verdict == "nearly compatible":
            line += ": significant, but small"
        return [head, f"  {line}", *(f"  {note}" for note in self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return plain({**self.__dict__, "text": " ".join(line.strip() for line in self.lines())})


def compare_nested(
    estimates: Mapping[str, Estimate], residual_std: Mapping[str, float], confidence: float = 0.95
) -> tuple[NestedTest, ...]:
    """Tests every law against each one that contains it, as `compare_laws` describes."""
    laws = {name: e.problem.model.law for name, e in estimates.items()}
    found = []
    for a in laws:
        for b in laws:
            if is_nested(laws[a], laws[b]):
                growth = residual_std[a] / residual_std[b] - 1 if residual_std[b] > 0 else None
                found.append(_test(a, b, estimates[a], estimates[b], growth, confidence))
    return tuple(found)


def is_nested(small: Law, large: Law) -> bool:
    """Says whether the large law, of the same variables, can be what the small one is, and more.

    Example:
        >>> from toydepth.fit.law.terms import LAWS
        >>> free, fixed = (LAWS[name]("m", "ell", "D") for name in ("decomposed", "universal"))
        >>> is_nested(fixed, free), is_nested(free, fixed), is_nested(free, free)
        (True, False, False)
    """
    if set(small.variables) != set(large.variables) or len(small.parameters) >= len(large.parameters):
        return False
    if large.irreducible_loss is not None and small.irreducible_loss != large.irreducible_loss:
        return False
    (near, at), (far, origin) = _exponents(small), _exponents(large)
    # The exponents of each law are a flat: the small one's must lie in the large one's.
    outside = np.eye(len(at)) - far @ np.linalg.pinv(far)
    return bool(np.allclose(outside @ near, 0) and np.allclose(outside @ (at - origin), 0))


def _exponents(law: Law) -> tuple[np.ndarray, np.ndarray]:
    """(mixing, fixed), alpha = mixing @ free + fixed, in alphabetical order of the variables."""
    model = make_model(law, {name: np.ones(1) for name in law.variables})
    order = np.argsort(law.variables)
    return model.mixing[order], model.fixed[order]


def _test(a: str, b: str, small: Estimate, large: Estimate, growth: float | None, confidence: float) -> NestedTest:
    one, other = small.problem.model.law, large.problem.model.law
    constraints = _constraints(one, other)
    objective = large.problem.objective
    extra = large.theta.size - small.theta.size
    statistic = p_value = verdict = reason = None
    degrees = (extra, large.degrees)
    notes = []
    if is_exact(large):
        reason = f"{b} fits every row to rounding: there is no noise to compare with"
    elif large.groups is not None:
        degrees = (extra, int(np.unique(large.groups).size) - extra)
        if degrees[1] < 1 or not large.determined:
            reason = f"{degrees[1] + extra} groups are too few" if degrees[1] < 1 else f"the rows do not determine {b}"
        else:
            statistic = _over_groups(one, large, degrees[1])
        if statistic is not None and degrees[1] + extra < _MANY_GROUPS:
            notes.append(f"with {degrees[1] + extra} groups the p value is rather too small")
    else:
        chi2 = max(float(large.delta_chi2(small.value)), 0.0)
        statistic = chi2 / extra
        if objective.kind == "student":
            # The likelihood ratio itself: `delta_chi2` is per degree of freedom, as intervals need it.
            ratio = chi2 / max(large.degrees, 1)
            statistic = float(np.expm1(min(ratio, 500.0))) * large.degrees / extra
        if objective.kind == "huber" and large.degrees < _MANY_ROWS:
            notes.append("of the Huber loss with so few rows the p value is rather too small")
    if statistic is not None:
        p_value = float(fdtrc(*degrees, statistic))
        verdict = "compatible"
        if p_value < 1 - confidence:
            verdict = "nearly compatible" if growth is not None and growth < _NEARLY else "not compatible"
        elif not large.determined:
            # With fewer numbers free than counted the p value is too large: it can speak against, not for.
            verdict, reason = None, f"the rows do not determine {b} (condition number {large.condition:.2g})"
    if verdict in ("compatible", "nearly compatible") and (vague := _vague(one, large)):
        say = "their standard errors, free, are" if len(vague) > 1 else "its standard error, free, is"
        notes.append(f"but the table says little of {', '.join(vague)}: {say} above half the fixed value")
    if one.irreducible_loss == 0 and other.irreducible_loss is None and statistic is not None:
        notes.append("L0 = 0 is the edge of what is allowed, where this p value is too large, up to twice")
    return NestedTest(
        a, b, tuple(constraints), statistic, degrees, p_value, large.groups is not None, growth, verdict,
        _subject(one, other, constraints), tuple(notes), reason,
    )  # fmt: skip


def _constraints(small: Law, large: Law) -> list[str]:
    """What the small law fixes that the large one does not."""
    wider = {term.variable: term.exponent for term in large.terms}
    found = [
        f"{t.alpha} = {exponent_text(t.exponent)}"
        for t in small.terms
        if t.exponent is not None and t.exponent != wider[t.variable]
    ]
    if small.irreducible_loss != large.irreducible_loss:
        found.append(f"L0 = {small.irreducible_loss:g}")
    return found


def _subject(small: Law, large: Law, constraints: Sequence[str]) -> str:
    exponents = [one for one in constraints if not one.startswith("L0")]
    fixed = any(is_number(t.exponent) for t in small.terms if any(one.startswith(f"{t.alpha} ") for one in exponents))
    if not exponents:
        return constraints[0]
    both = " and L0" if len(exponents) < len(constraints) else ""
    return f"the {'fixed' if fixed else 'shared'} exponent{'s' * (len(exponents) > 1 or not fixed)}{both}"


def _over_groups(small: Law, large: Estimate, degrees: int) -> float:
    """Wald's statistic of what the small law fixes, with the covariance over groups, as Hotelling's F."""
    law, model = large.problem.model.law, large.problem.model
    (near, at), (far, origin) = _exponents(small), _exponents(law)
    first, free = model.num_terms, far.shape[1]
    across = np.eye(len(at)) - near @ np.linalg.pinv(near)
    miss = [across @ (far @ large.natural[first : first + free] + origin - at)]
    slopes = [np.zeros((len(at), len(large.natural)))]
    slopes[0][:, first : first + free] = across @ far
    if small.irreducible_loss is not None and law.irreducible_loss is None:
        floor = float(np.exp(large.natural[-1]))
        miss.append(np.array([floor - small.irreducible_loss]))
        slopes.append(floor * np.eye(len(large.natural))[-1:])
    left, sizes, _ = np.linalg.svd(np.concatenate(slopes), full_matrices=False)
    basis = left[:, sizes > 1e-9 * sizes[0]]
    h, slope = basis.T @ np.concatenate(miss), basis.T @ np.concatenate(slopes)
    wald = float(h @ np.linalg.solve(slope @ large.covariance @ slope.T, h))
    extra = len(h)
    return wald * degrees / (extra * (degrees + extra - 1))


def _vague(small: Law, large: Estimate) -> list[str]:
    """Exponents that the small law fixes and of which the large one knows little."""
    names = large.problem.model.law.parameters
    errors = dict(zip(names, np.sqrt(np.maximum(np.diag(large.covariance), 0)), strict=True))
    fixed = {t.alpha: float(t.exponent) for t in small.terms if is_number(t.exponent)}  # pyright: ignore
    return [name for name, value in fixed.items() if name in errors and not errors[name] < abs(value) / 2]
