"""Which law: criteria, predictions of rows left out, lack of fit, and whether fixed exponents are compatible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erf, fdtrc, gammaln

from toydepth.fit.checks import check_confidence, check_count, is_number, plain, refuse
from toydepth.fit.law.choice.holdout import (
    HoldOut,
    ScaleErrors,
    as_fit,
    find_scales,
    hold_out_largest,
    leave_scales_out,
    start_at,
)
from toydepth.fit.law.choice.replicates import LackOfFit, PureError, find_pure_error, lack_of_fit
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.model import make_model
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law
from toydepth.fit.law.text import align, significant

_NEARLY = 0.05  # growth of the residual std up to which a significant misfit is a small one
_ROUNDING = 1e-9  # residual std over the loss: no table of trained models is that exact
_CONDITION = 1e8  # of the derivatives: beyond it there is no covariance to test with
_MANY_GROUPS = 30  # with 12 groups of 4 rows 11 % of true laws are rejected at 5 %
_MANY_ROWS = 100  # with 48 rows 10 % of true laws are rejected at 5 % by the Huber loss
_TOGETHER = 1e-3  # p value below which residuals of one model size are said to go together


@dataclass(frozen=True)
class Criteria:
    """Of one law: -2 ln likelihood, and AIC, AICc, BIC less those of the best law; weight, of AICc, over the laws.

    The noise's scale is counted as a parameter. AICc, and so the weight, is None with two rows more than parameters or
    fewer.
    """

    deviance: float
    aic: float
    aicc: float | None
    bic: float
    weight: float | None


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
        test = f"F({degrees}) = {significant(self.statistic)}, p {_equals(self.p_value)}"
        if self.over_groups:
            test += ", over groups"
        are, them = ("is", "it") if self.subject.startswith("L0") else ("are", "them")
        growth = f"{100 * self.growth:.2g} % larger" if self.growth < 1 else f"{1 + self.growth:.3g} times as large"
        line = f"{self.subject} {are} {self.verdict} with the table ({test}); residual std {growth} with {them}"
        if self.verdict == "nearly compatible":
            line += ": significant, but small"
        return [head, f"  {line}", *(f"  {note}" for note in self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return plain({**self.__dict__, "text": " ".join(line.strip() for line in self.lines())})


@dataclass(frozen=True, eq=False)
class Comparison:
    """Laws side by side on the same rows, by one objective.

    Attributes:
        rows, objective, confidence: as given. laws, estimates (minima), residual_std: by name.
        criteria: by name; empty where there are none (no_criteria says why).
        scales: predictions of model sizes left out. holdout: of the largest runs.
        pure_error: of repeated rows; misfit: {law: F test against it}. nested: the tests of pairs.
        skipped: {law: why it was not fitted}. notes: sentences.
    """

    rows: Rows
    objective: Objective
    confidence: float
    laws: dict[str, Law]
    estimates: dict[str, Estimate]
    residual_std: dict[str, float]
    criteria: dict[str, Criteria]
    no_criteria: str | None
    scales: ScaleErrors
    holdout: HoldOut
    pure_error: PureError
    misfit: dict[str, LackOfFit]
    nested: tuple[NestedTest, ...]
    skipped: dict[str, str]
    notes: tuple[str, ...]

    def report(self) -> str:
        """Returns the comparison as text."""
        of = "ln L" if self.objective.of_log else "L"
        count = len(self.laws)
        lines = [f"{count} law{'s' * (count > 1)} on {self.rows.num_rows} rows; objective: {self.objective.in_words}"]
        lines += [f"  {name}: {law.formula()}" for name, law in self.laws.items()]
        lines += [f"  {name}: not fitted, {why}" for name, why in self.skipped.items()]
        table = [["", "parameters", "objective", f"residual std of {of}", "AIC", "AICc", "BIC", "weight"]]
        for name, e in self.estimates.items():
            one = self.criteria.get(name)
            numbers = [one.aic, one.aicc, one.bic] if one else [None] * 3
            cells = ["-" if x is None else f"+{x:.1f}" for x in numbers]
            weight = "-" if one is None or one.weight is None else f"{one.weight:.3f}"
            table.append(
                [name, str(e.theta.size), f"{e.value:.6g}", significant(self.residual_std[name]), *cells, weight]
            )
        lines += ["", *align(table)]
        lines.append(
            f"  no criteria: {self.no_criteria}"
            if self.no_criteria
            else f"  AIC, AICc, BIC less the best law's; weights of AICc; likelihood: {_likelihood(self.objective)}"
        )
        if self.nested:
            lines += ["", *(line for test in self.nested for line in test.lines())]
        lines += ["", *self.scales.lines(), "", *self.holdout.lines(), "", *self._misfit_lines()]
        if self.notes:
            lines += ["", *(f"note: {note}" for note in self.notes)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison for JSON."""
        laws = {}
        for name, law in self.laws.items():
            e, one = self.estimates[name], self.criteria.get(name)
            laws[name] = {
                "formula": law.formula(),
                "num_parameters": e.theta.size,
                "objective": e.value,
                "residual_std": self.residual_std[name],
                "criteria": None if one is None else dict(one.__dict__),
                "lack_of_fit": self.misfit[name].to_dict(),
                "share_agreeing": e.share_agreeing,
                "converged": e.converged,
            }
        return plain(
            {
                "schema": 1,
                "rows_used": self.rows.num_rows,
                "objective": {"kind": self.objective.kind, "in_words": self.objective.in_words},
                "likelihood": _likelihood(self.objective),
                "confidence": self.confidence,
                "laws": laws,
                "skipped": self.skipped,
                "no_criteria": self.no_criteria,
                "nested": [test.to_dict() for test in self.nested],
                "leave_one_scale_out": self.scales.to_dict(),
                "hold_out_largest": self.holdout.to_dict(),
                "pure_error": self.pure_error.to_dict(),
                "notes": self.notes,
            }
        )

    def _misfit_lines(self) -> list[str]:
        lines = [f"lack of fit: {sentence}" for sentence in self.pure_error.lines()]
        if self.pure_error.reason:
            return lines
        for name, one in self.misfit.items():
            if one.reason or one.degrees is None or one.p_value is None:
                lines.append(f"  {name}: no test, {one.reason}")
                continue
            more = "misses by more than" if one.p_value < 1 - self.confidence else "misses by no more than"
            degrees = ", ".join(map(str, one.degrees))
            test = f"F({degrees}) = {significant(one.statistic)}, p {_equals(one.p_value)}"
            lines.append(f"  {name} {more} repeats differ ({test})")
        return lines


def compare_laws(
    rows: Rows,
    laws: Sequence[Law],
    labels: Mapping[str, str],
    offsets: Mapping[str, float],
    objective: Objective,
    *,
    scale: Sequence[str] | None = None,
    holdout_fraction: float = 0.1,
    num_starts: int = 32,
    seed: int = 0,
    confidence: float = 0.95,
) -> Comparison:
    """Fits laws to the same rows by the same objective, and says which the table speaks for.

    Criteria come from -2 ln likelihood (`deviance`). One objective for all: a likelihood of ln L and one of L are of
    different quantities, and so never stand side by side. Laws with the same variables of which one is the other with
    exponents (or L0) fixed or shared are tested. With n rows, p parameters of the larger law, q fewer of the smaller,

        F(q, n - p) = delta chi2 / q,  of log and linear ((SSR_small - SSR_large) / q) / (SSR_large / (n - p)),

    of huber with the delta chi2 of M estimators; of student, whose delta chi2 is the likelihood ratio's,
    F = (exp(delta chi2 / n) - 1) (n - p) / q, which is that of least squares for a large nu. With groups the test is
    Wald's of the larger law, with the covariance over the G groups, W (G - q) / (q (G - 1)) as F(q, G - q). The verdict
    is *compatible* for p values of 1 - confidence or more; below, *nearly compatible* where the residual standard
    deviation grows by less than 5 %; else *not compatible*.

    Args:
        rows: with all variables of the laws.
        laws: one or more. One whose variables the rows lack, or with as many parameters as rows, is skipped.
        labels: symbol to the name of its column. offsets: symbol to what was subtracted.
        objective: of every fit.
        scale: variables of model size, for leaving sizes out; default: all but D and tau.
        holdout_fraction: of rows, the largest, that are held out.
        num_starts: of each search. seed: of starts.
        confidence: of verdicts and prediction intervals.

    Raises:
        InputError: for no law, equal laws, none that can be fitted, or an option out of range.

    Example:
        >>> from toydepth.fit.law.table.rows import choose_rows
        >>> from toydepth.fit.law.terms import make_law
        >>> N, D = (x.ravel() for x in np.meshgrid([1e7, 1e8, 1e9, 1e10], [1e9, 1e10, 1e11, 1e12]))
        >>> noise = 0.005 * np.random.default_rng(0).normal(size=16)
        >>> loss = (400 / N**0.34 + 400 / D**0.28 + 1.7) * np.exp(noise)
        >>> rows = choose_rows({"N": N, "D": D, "loss": loss}, {"N": "N", "D": "D"}, "loss")
        >>> free = make_law("chinchilla", ("N", "D"))
        >>> fixed = Law("square roots", free.terms).with_exponents({"alpha_N": 0.5, "alpha_D": 0.5})
        >>> compare_laws(rows, [free, fixed], {}, {}, Objective()).nested[0].verdict
        'not compatible'

    Source: Burnham and Anderson, Model Selection and Multimodel Inference, 2nd edition (AICc, weights); Schrader and
        Hettmansperger, Biometrika 1980 (huber).
    """
    check_confidence(confidence)
    check_count("num_starts", num_starts, 2)
    check_count("seed", seed, 0)
    if not is_number(holdout_fraction) or not 0 < holdout_fraction < 1:
        raise refuse("holdout_fraction", "a number between 0 and 1", holdout_fraction, "Give 0.1 for a tenth.")
    named = _name(laws)
    scales = find_scales(rows, offsets, scale)
    labels = {name: labels.get(name, name) for name in rows.variables}
    estimates, skipped = _fit_all(rows, named, objective, num_starts, seed)
    named = {name: law for name, law in named.items() if name in estimates}
    spread = {name: as_fit(e, rows, labels, offsets, confidence).residual_std for name, e in estimates.items()}
    exact = [name for name, e in estimates.items() if _is_exact(e)]
    no_criteria = None
    if exact:
        no_criteria = f"{', '.join(exact)} fits every row to rounding: there is no noise to weigh laws by"
    pure = find_pure_error(rows, objective)
    left_out = leave_scales_out(rows, estimates, scales, num_starts, seed)
    return Comparison(
        rows,
        objective,
        confidence,
        named,
        estimates,
        spread,
        {} if exact else compute_criteria(estimates),
        no_criteria,
        left_out,
        hold_out_largest(rows, estimates, labels, offsets, holdout_fraction, num_starts, seed, confidence),
        pure,
        {name: _lack_of_fit(pure, e, rows, objective) for name, e in estimates.items()},
        compare_nested(estimates, spread, confidence),
        skipped,
        tuple(_notes(rows, estimates, left_out)),
    )


def deviance(estimate: Estimate) -> float:
    """Returns -2 ln likelihood of the rows, of ln L or L as the objective has it, the noise's scale at its best too.

    log, linear: normal noise of variance s^2 / w_i: n (ln(2 pi SSR / n) + 1) - sum ln w_i.
    student: its own, with its constant.
    huber: the density exp(-lambda rho(r)) / Z, Z = sqrt(2 pi / lambda) erf(delta sqrt(lambda / 2)) + 2 / (lambda delta)
    exp(-lambda delta^2 / 2), lambda at its best. It is the one likelihood whose maximum is the minimum of the objective
    whatever lambda is, so that criteria and fit speak of the same thing; it is normal for a large delta, Laplace's for
    a small one (residuals far above delta). Of student and huber, weights count as numbers of rows.

    Example:
        A residual of +-1 with a normal law: n (ln 2 pi + 1) = 11.35 for n = 4.

        >>> from toydepth.fit.law.table.rows import choose_rows
        >>> rows = choose_rows({"x": [1, 1, 2, 2], "loss": [9.0, 11.0, 9.0, 11.0]}, {"x": "x"}, "loss")
        >>> from toydepth.fit.law.terms import Term
        >>> law = Law("one term", (Term("x", 1.0),))
        >>> round(deviance(estimate_rows(rows, law, Objective("linear"))), 2)
        11.35
    """
    objective, weights, value = estimate.problem.objective, estimate.weights, estimate.value
    count = estimate.num_rows
    if objective.kind in ("log", "linear"):
        return float(count * (np.log(2 * np.pi * value / count) + 1) - np.sum(np.log(weights)))
    if objective.kind == "student":
        nu = objective.degrees
        return float(2 * value - 2 * count * (gammaln((nu + 1) / 2) - gammaln(nu / 2) - np.log(nu * np.pi) / 2))
    delta, mean = objective.delta, value / count

    def half(log_rate: float) -> float:
        rate = np.exp(log_rate)
        inside = np.sqrt(2 * np.pi / rate) * erf(delta * np.sqrt(rate / 2))
        outside = 2 / (rate * delta) * np.exp(-rate * delta**2 / 2)
        return rate * mean + np.log(inside + outside)

    # lambda times the mean of rho is 1/2 for a normal law and 1 for Laplace's; between them for this one.
    middle = -np.log(mean)
    best: Any = minimize_scalar(
        half, bounds=(middle - np.log(2) - 0.1, middle + 0.1), method="bounded", options={"xatol": 1e-10}
    )
    return float(2 * count * best.fun)


def compute_criteria(estimates: Mapping[str, Estimate]) -> dict[str, Criteria]:
    """Returns AIC, AICc, BIC of laws fitted to the same rows by the same objective, as differences from the best.

    AIC = deviance + 2 k, AICc = AIC + 2 k (k + 1) / (n - k - 1), BIC = deviance + k ln n; k = p + 1, the scale of the
    noise too; weights exp(-AICc / 2), of sum 1.
    """
    worth = {name: deviance(e) for name, e in estimates.items()}
    aic, aicc, bic = {}, {}, {}
    for name, e in estimates.items():
        k, n = e.theta.size + 1, e.num_rows
        aic[name] = worth[name] + 2 * k
        bic[name] = worth[name] + k * np.log(n)
        if n - k - 1 > 0:
            aicc[name] = aic[name] + 2 * k * (k + 1) / (n - k - 1)
    best, lowest, least = min(aic.values()), min(bic.values()), min(aicc.values(), default=0.0)
    shares = {name: float(np.exp(-(value - least) / 2)) for name, value in aicc.items()}
    total = sum(shares.values())
    return {
        name: Criteria(
            worth[name],
            float(aic[name] - best),
            float(aicc[name] - least) if name in aicc else None,
            float(bic[name] - lowest),
            shares[name] / total if name in shares else None,
        )
        for name in estimates
    }


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


def _name(laws: Sequence[Law]) -> dict[str, Law]:
    """Laws by name, those of one name told apart by what they fix."""
    if not laws:
        raise refuse("laws", "one law or more", "none", "Give such as decomposed and universal.")
    names = [law.name for law in laws]
    named: dict[str, Law] = {}
    for law in laws:
        name = law.name
        if names.count(name) > 1:
            sets = {one.variables for one in laws if one.name == name}
            what = [f"of {' '.join(law.variables)}"] if len(sets) > 1 else []
            what += [f"{t.alpha} = {_number(t.exponent)}" for t in law.terms if t.exponent is not None]
            what += [] if law.irreducible_loss is None else [f"L0 = {law.irreducible_loss:g}"]
            name = ", ".join([name, *what])
        if name in named:
            raise refuse("laws", "different", f"{name} twice", "Leave one out.")
        named[name] = law
    return named


def _fit_all(
    rows: Rows, laws: Mapping[str, Law], objective: Objective, num_starts: int, seed: int
) -> tuple[dict[str, Estimate], dict[str, str]]:
    """Minima by name, and why others were not fitted. A law starts from the minima of those it contains, too."""
    found: dict[str, Estimate] = {}
    skipped: dict[str, str] = {}
    for name in sorted(laws, key=lambda one: len(laws[one].parameters)):
        law = laws[name]
        lacking = [v for v in law.variables if v not in rows.variables]
        if lacking:
            skipped[name] = f"the rows have no {', '.join(lacking)}"
        elif rows.num_rows <= len(law.parameters):
            skipped[name] = f"{len(law.parameters)} parameters need more than {rows.num_rows} rows"
        else:
            model = make_model(law, rows.variables)
            inner = [start_at(e, model) for other, e in found.items() if is_nested(laws[other], law)]
            also = np.concatenate(inner) if inner else None
            found[name] = estimate_rows(rows, law, objective, num_starts, seed, also)
    if not found:
        reasons = "; ".join(f"{name}: {why}" for name, why in skipped.items())
        raise refuse("laws", "such that one can be fitted", f"none ({reasons})", "Add rows, or fix exponents.")
    return {name: found[name] for name in laws if name in found}, {n: skipped[n] for n in laws if n in skipped}


def _test(a: str, b: str, small: Estimate, large: Estimate, growth: float | None, confidence: float) -> NestedTest:
    one, other = small.problem.model.law, large.problem.model.law
    constraints = _constraints(one, other)
    objective = large.problem.objective
    extra = large.theta.size - small.theta.size
    statistic = p_value = verdict = reason = None
    degrees = (extra, large.degrees)
    notes = []
    if _is_exact(large):
        reason = f"{b} fits every row to rounding: there is no noise to compare with"
    elif large.groups is not None:
        degrees = (extra, int(np.unique(large.groups).size) - extra)
        if degrees[1] < 1 or not large.condition < _CONDITION:
            reason = f"{degrees[1] + extra} groups are too few" if degrees[1] < 1 else f"the rows do not determine {b}"
        else:
            statistic = _over_groups(one, large, degrees[1])
        if statistic is not None and degrees[1] + extra < _MANY_GROUPS:
            notes.append(f"with {degrees[1] + extra} groups the p value is rather too small")
    else:
        chi2 = max(float(large.delta_chi2(small.value)), 0.0)
        statistic = chi2 / extra
        if objective.kind == "student":
            rows = large.num_rows
            statistic = float(np.expm1(min(chi2 / rows, 500.0))) * large.degrees / extra
        if objective.kind == "huber" and large.degrees < _MANY_ROWS:
            notes.append("of the Huber loss with so few rows the p value is rather too small")
    if statistic is not None:
        p_value = float(fdtrc(*degrees, statistic))
        verdict = "compatible"
        if p_value < 1 - confidence:
            verdict = "nearly compatible" if growth is not None and growth < _NEARLY else "not compatible"
        elif not large.condition < _CONDITION:
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
        f"{t.alpha} = {_number(t.exponent)}"
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


def _lack_of_fit(pure: PureError, estimate: Estimate, rows: Rows, objective: Objective) -> LackOfFit:
    law, squares = estimate.problem.model.law, estimate.value
    if pure.rows is not rows and pure.reason is None:
        # Copies would count twice in SSR and not at all in the noise.
        if pure.rows.num_rows <= len(law.parameters):
            return LackOfFit(None, None, None, f"{pure.rows.num_rows} rows are left without copies")
        also = start_at(estimate, make_model(law, pure.rows.variables))
        squares = estimate_rows(pure.rows, law, objective, 2, 0, also).value
    return lack_of_fit(pure, squares, estimate.theta.size, objective)


def _is_exact(estimate: Estimate) -> bool:
    size = float(np.sqrt(np.mean(estimate.residuals**2)))
    typical = 1.0 if estimate.problem.objective.of_log else float(np.exp(np.mean(estimate.problem.log_loss)))
    return size < _ROUNDING * typical


def _together(estimates: Mapping[str, Estimate], codes: np.ndarray) -> str | None:
    """Whether the residuals of one size go together, which independent rows' do not."""
    law = min(estimates, key=lambda name: estimates[name].value)
    residuals = estimates[law].residuals
    times = np.bincount(codes)
    between, within = len(times) - 1, len(codes) - len(times)
    if between < 1 or within < 1 or _is_exact(estimates[law]):
        return None
    means = np.bincount(codes, residuals) / times
    rest = float(np.sum((residuals - means[codes]) ** 2))
    spread = float(np.sum(times * (means - residuals.mean()) ** 2))
    p_value = float(fdtrc(between, within, spread / between / max(rest / within, 1e-300)))
    if p_value >= _TOGETHER:
        return None
    return (
        f"residuals of {law} go together within a model size (p {_equals(p_value)}): rows are not independent, or the "
        "law misses sizes; weights and p values are too sure. Name groups (runs), where a run has several rows"
    )


def _notes(rows: Rows, estimates: Mapping[str, Estimate], scales: ScaleErrors) -> list[str]:
    found = list(rows.notes)
    if rows.groups is not None:
        found.append(
            "rows of one group are not independent: AIC, AICc, BIC, weights and the F of lack of fit take them as if "
            "they were; tests of fixed exponents are over groups, and groups stay whole where rows are left out"
        )
    elif scales.scales.reason is None and (together := _together(estimates, scales.scales.codes)):
        found.append(together)
    if rows.weights is not None:
        found.append(
            "errors of rows left out count each row once, whatever its weight; intervals are of a run of mean weight"
        )
    for name, e in estimates.items():
        if not e.converged:
            found.append(f"{name}: the last steps of the search still changed the minimum")
        if e.share_agreeing < 0.1:
            found.append(f"{name}: only {100 * e.share_agreeing:.0f} % of the starts reached this minimum: give more")
    return found


def _likelihood(objective: Objective) -> str:
    return {
        "log": "normal noise of ln L",
        "linear": "normal noise of L",
        "huber": "density exp(-lambda Huber) of ln L, normalised, lambda fitted",
        "student": f"Student's t of ln L, {objective.degrees:g} degrees of freedom",
    }[objective.kind]


def _equals(p_value: float | None) -> str:
    """Far out in a tail the digits of a p value mean nothing."""
    return "= -" if p_value is None else f"= {p_value:.2g}" if p_value >= 1e-4 else "< 0.0001"


def _number(value: float | str | None) -> str:
    return f"{value:.4g}" if is_number(value) else str(value)
