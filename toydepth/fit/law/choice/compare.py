"""Fits laws to the same rows, and asks which the table speaks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import fdtrc

from toydepth.fit.checks import check_confidence, check_count, is_number, refuse
from toydepth.fit.law.choice.comparison import Comparison
from toydepth.fit.law.choice.criteria import compute_criteria, is_exact
from toydepth.fit.law.choice.holdout import hold_out_largest
from toydepth.fit.law.choice.nested import compare_nested, is_nested
from toydepth.fit.law.choice.refit import start_at
from toydepth.fit.law.choice.replicates import LackOfFit, PureError, find_pure_error, lack_of_fit
from toydepth.fit.law.choice.scales import ScaleErrors, find_scales, leave_scales_out
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.model import make_model
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law, exponent_text
from toydepth.fit.law.text import p_value_text

_TOGETHER = 1e-3  # p value below which residuals of one model size are said to go together


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
        >>> from toydepth.fit.law.table.choose import choose_rows
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
    spread = {name: e.residual_std for name, e in estimates.items()}
    exact = [name for name, e in estimates.items() if is_exact(e)]
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
            what += [f"{t.alpha} = {exponent_text(t.exponent)}" for t in law.terms if t.exponent is not None]
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


def _lack_of_fit(pure: PureError, estimate: Estimate, rows: Rows, objective: Objective) -> LackOfFit:
    law, squares = estimate.problem.model.law, estimate.value
    if pure.rows is not rows and pure.reason is None:
        # Copies would count twice in SSR and not at all in the noise.
        if pure.rows.num_rows <= len(law.parameters):
            return LackOfFit(None, None, None, f"{pure.rows.num_rows} rows are left without copies")
        also = start_at(estimate, make_model(law, pure.rows.variables))
        squares = estimate_rows(pure.rows, law, objective, 2, 0, also).value
    return lack_of_fit(pure, squares, estimate.theta.size, objective)


def _together(estimates: Mapping[str, Estimate], codes: np.ndarray) -> str | None:
    """Whether the residuals of one size go together, which independent rows' do not."""
    law = min(estimates, key=lambda name: estimates[name].value)
    residuals = estimates[law].residuals
    times = np.bincount(codes)
    between, within = len(times) - 1, len(codes) - len(times)
    if between < 1 or within < 1 or is_exact(estimates[law]):
        return None
    means = np.bincount(codes, residuals) / times
    rest = float(np.sum((residuals - means[codes]) ** 2))
    spread = float(np.sum(times * (means - residuals.mean()) ** 2))
    p_value = float(fdtrc(between, within, spread / between / max(rest / within, 1e-300)))
    if p_value >= _TOGETHER:
        return None
    return (
        f"residuals of {law} go together within a model size (p {p_value_text(p_value)}): rows are not independent, or "
        "the law misses sizes; weights and p values are too sure. Name groups (runs), where a run has several rows"
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
