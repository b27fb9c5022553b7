"""How well laws predict rows they have not seen: one model size left out at a time, and the largest runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toydepth.errors import InputError, did_you_mean
from toydepth.fit.checks import plain, refuse
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.model import Model, make_model
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import Law
from toydepth.fit.law.text import align, significant

_DATA = ("D", "tau")  # variables that are no model size
_MOST_SCALES = 30
_BINS = 10
_FOLD_STARTS = 8  # besides the minimum on all rows, which is near
_CONDITION = 1e8  # of the derivatives: beyond it the kept rows do not determine the law
_SAME = 1e-9  # two sizes whose logarithms differ by less are one


@dataclass(frozen=True, eq=False)
class Scales:
    """Model sizes. words: what one is. names; codes (n,) places in names; reason: why rows cannot be parted so."""

    words: str
    names: tuple[str, ...]
    codes: np.ndarray
    reason: str | None


@dataclass(frozen=True, eq=False)
class ScaleErrors:
    """Rows predicted by fits without their model size.

    Attributes:
        scales: the sizes.
        errors: {law: (n,)}, ln L_predicted - ln L; NaN where a size could not be predicted.
        reasons: {law: {size: why not}}.
    """

    scales: Scales
    errors: dict[str, np.ndarray]
    reasons: dict[str, dict[str, str]]

    @property
    def common(self) -> np.ndarray:
        """Rows (n,) that every law predicts, of those that predict any: the laws are compared on these."""
        seen = [np.isfinite(e) for e in self.errors.values() if np.isfinite(e).any()]
        return np.all(seen, axis=0) if seen else np.zeros(len(self.scales.codes), bool)

    def summary(self, law: str) -> dict[str, Any]:
        """Returns rmse over the common rows, and over each size: {rmse, median, low, high, worst, by_scale, ...}."""
        errors, codes = self.errors[law], self.scales.codes
        by_scale = {}
        for i, name in enumerate(self.scales.names):
            one = errors[codes == i]
            by_scale[name] = {"rows": len(one), "rmse": _rms(one), "bias": float(one.mean())}
        rows = self.common if np.isfinite(errors).any() else np.zeros(len(errors), bool)
        known = {name: by_scale[name]["rmse"] for name in np.array(self.scales.names)[np.unique(codes[rows])]}
        values = list(known.values())
        return {
            "rmse": _rms(errors[rows]) if values else None,
            "median": float(np.median(values)) if values else None,
            "low": min(values, default=None),
            "high": max(values, default=None),
            "worst": max(known, key=lambda name: known[name]) if known else None,
            "scales_compared": len(values),
            "scales_predicted": len(by_scale) - len(self.reasons[law]),
            "by_scale": by_scale,
            "not_predicted": self.reasons[law],
        }

    def lines(self) -> list[str]:
        """Returns it as text."""
        count = len(self.scales.names)
        if self.scales.reason:
            return [f"one model size left out at a time: none, {self.scales.reason}"]
        found = [f"one model size left out at a time, predicted from the rest ({count}: {self.scales.words})"]
        table = [["", "rms error of ln L", "sizes: median", "lowest", "highest", "of"]]
        notes = []
        for law in self.errors:
            one = self.summary(law)
            numbers = [significant(one[name]) for name in ("rmse", "median", "low", "high")]
            table.append([law, *numbers, one["worst"] or "-"])
            if missed := self.reasons[law]:
                first, why = next(iter(missed.items()))
                notes.append(f"  {law}: {len(missed)} of {count} not predicted, such as {first}: {why}")
        compared = len(np.unique(self.scales.codes[self.common]))
        if notes:
            notes.append(f"  compared on the {compared} sizes that every law with a number predicts")
        return [*found, *align(table), *notes]

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        laws = {} if self.scales.reason else {law: self.summary(law) for law in self.errors}
        return plain({"scale": self.scales.words, "reason": self.scales.reason, "laws": laws})


@dataclass(frozen=True, eq=False)
class HoldOut:
    """The largest rows, predicted by fits to the others.

    Attributes:
        words: what size is. held (n,): which rows. largest: (of held, of kept), sizes.
        ratios: {"size" or symbol: largest held-out over largest kept}: how far the laws are carried.
        laws: {law: {bias, rms, within, half_width, reason}}: errors are ln L_predicted - ln L; `within` counts losses
            inside the prediction interval for a new run, half_width is the median half of it in ln L.
        confidence: of the intervals. note: what the reader must know of the choice of rows. reason: why there is none.
    """

    words: str
    held: np.ndarray
    largest: tuple[float, float] | None
    ratios: dict[str, float]
    laws: dict[str, dict[str, Any]]
    confidence: float
    note: str | None
    reason: str | None

    def lines(self) -> list[str]:
        """Returns it as text."""
        if self.reason or self.largest is None:
            return [f"the largest runs held out: none, {self.reason}"]
        count = int(self.held.sum())
        further = ", ".join(f"{name} {ratio:.3g}" for name, ratio in self.ratios.items() if name != "size")
        found = [
            f"the {count} largest of {len(self.held)} rows held out; size is {self.words}",
            f"  largest held out {self.largest[0]:.4g}, largest kept {self.largest[1]:.4g}: {self.ratios['size']:.3g} "
            f"times as large ({further} times)",
        ]
        table = [["", "bias of ln L", "rms error", f"within {100 * self.confidence:g} %", "half width"]]
        notes = [] if self.note is None else [f"  {self.note}"]
        for law, one in self.laws.items():
            if one["reason"]:
                notes.append(f"  {law}: {one['reason']}")
                continue
            bias = ("+" if one["bias"] >= 0 else "") + significant(one["bias"])
            within = f"{one['within']} of {count}"
            table.append([law, bias, significant(one["rms"]), within, significant(one["half_width"])])
        notes.append(
            "  bias +: predicted losses are too high; within: of the intervals for a new run, each row its own"
        )
        return [*found, *(align(table) if len(table) > 1 else []), *notes]

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return plain(
            {
                "size": self.words,
                "rows": int(self.held.sum()),
                "largest_held_out": self.largest and self.largest[0],
                "largest_kept": self.largest and self.largest[1],
                "ratios": self.ratios,
                "confidence": self.confidence,
                "note": self.note,
                "reason": self.reason,
                "laws": self.laws,
            }
        )


def find_scales(rows: Rows, offsets: Mapping[str, float], scale: Sequence[str] | None = None) -> Scales:
    """Parts rows by model size: distinct values of the variables of `scale`, by default all but D and tau.

    More than 30 sizes are put into 10 bins of about as many rows, in order of N, 12 m^2 ell, or the product of the
    variables.

    Raises:
        InputError: for a variable of `scale` that the rows do not have.

    Example:
        >>> from toydepth.fit.law.table.rows import choose_rows
        >>> table = {"m": [64, 64, 128], "D": [1e6, 1e7, 1e7], "loss": [3.0, 2.0, 1.0]}
        >>> find_scales(choose_rows(table, {"m": "m", "D": "D"}, "loss"), {}).names
        ('m = 64', 'm = 128')
    """
    raw = _raw(rows, offsets)
    for name in scale or ():
        if name not in raw:
            advice = f"{did_you_mean(name, raw)} Name variables of model size.".strip()
            raise refuse("scale", f"of {', '.join(raw)}", name, advice)
    names = list(scale) if scale else [name for name in raw if name not in _DATA]
    nothing = np.zeros(rows.num_rows, int)
    if not names:
        return Scales("", (), nothing, f"no variable of model size among {', '.join(raw)}")
    points, codes, times = np.unique(
        np.array([raw[name] for name in names]), axis=1, return_inverse=True, return_counts=True
    )
    words = f"each {'(' * (len(names) > 1)}{', '.join(names)}{')' * (len(names) > 1)} a size"
    titles = tuple(", ".join(f"{n} = {x:g}" for n, x in zip(names, point, strict=True)) for point in points.T)
    if len(times) == 1:
        return Scales(words, titles, nothing, f"every row has {titles[0]}")
    if len(times) <= _MOST_SCALES:
        return Scales(words, titles, codes.ravel(), None)
    logs, what = _log_size(dict(zip(names, points, strict=True)))
    order = np.argsort(logs, kind="stable")
    middle = np.cumsum(times[order]) - times[order] / 2
    bins = np.empty(len(times), int)
    bins[order] = np.unique((_BINS * middle / rows.num_rows).astype(int), return_inverse=True)[1]
    edges = [_exp(logs[bins == i]) for i in range(bins.max() + 1)]
    titles = tuple(f"{what} {e.min():.3g} ... {e.max():.3g}" for e in edges)
    words = f"bins of {what}, of about as many rows, since there are {len(times)} distinct ({', '.join(names)})"
    return Scales(words, titles, bins[codes.ravel()], None)


def leave_scales_out(
    rows: Rows, estimates: Mapping[str, Estimate], scales: Scales, num_starts: int = 32, seed: int = 0
) -> ScaleErrors:
    """Predicts each model size from a fit to the others, for each law.

    With groups no row of a group is kept while another is predicted. Each fit starts from the minimum on all rows, and
    from 8 others.

    Args:
        rows: as fitted.
        estimates: {law: minimum on all rows}.
        scales: the sizes.
        num_starts: at most.
        seed: of the starts.
    """
    errors = {law: np.full(rows.num_rows, np.nan) for law in estimates}
    reasons: dict[str, dict[str, str]] = {law: {} for law in estimates}
    for i, title in enumerate(scales.names if scales.reason is None else ()):
        out = scales.codes == i
        kept = ~_with_groups(rows, out)
        points = rows.take(out)
        for law, estimate in estimates.items():
            found = _fit_kept(rows.take(kept), estimate, min(num_starts, _FOLD_STARTS), seed)
            if isinstance(found, str):
                reasons[law][title] = found
            else:
                predicted = found.problem.model.on(points.variables).log_loss(found.theta)
                errors[law][out] = predicted - np.log(points.loss)
    return ScaleErrors(scales, errors, reasons)


def hold_out_largest(
    rows: Rows,
    estimates: Mapping[str, Estimate],
    labels: Mapping[str, str],
    offsets: Mapping[str, float],
    fraction: float = 0.1,
    num_starts: int = 32,
    seed: int = 0,
    confidence: float = 0.95,
) -> HoldOut:
    """Predicts the largest rows from fits to the others, for each law.

    Size is 6 N D, N = 12 m^2 ell where N itself is not there; N tau with tau; N where there are no data; otherwise the
    product of all variables. What ties with the smallest held-out row is held out too; with groups, whole groups, in
    order of their largest row.

    Args:
        rows: as fitted.
        estimates: {law: minimum on all rows}.
        labels, offsets: of the variables.
        fraction: of the rows, at least one.
        num_starts: of each fit, besides the minimum on all rows.
        seed: of the starts.
        confidence: of the prediction intervals, which are those of `LawFit.predict` for a new run.
    """
    raw = _raw(rows, offsets)
    logs, words = _log_size(raw)
    held = _largest(rows, logs, fraction)
    if held.all() or np.ptp(logs) <= _SAME:
        why = "every row is as large" if np.ptp(logs) <= _SAME else "ties or groups leave no row to fit"
        return HoldOut(words, np.zeros(rows.num_rows, bool), None, {}, {}, confidence, None, f"{why}: {words}")
    kept = rows.take(~held)
    points = {name: values[held] for name, values in raw.items()}
    observed = np.log(rows.loss[held])
    laws: dict[str, dict[str, Any]] = {}
    for name, estimate in estimates.items():
        found = _fit_kept(kept, estimate, num_starts, seed)
        if isinstance(found, str):
            laws[name] = {"bias": None, "rms": None, "within": None, "half_width": None, "reason": found}
            continue
        table = as_fit(found, kept, labels, offsets, confidence).predict(points, new_run=True)
        errors = np.log(table["loss"].to_numpy()) - observed
        low, high = np.log(table["low"].to_numpy()), np.log(table["high"].to_numpy())
        laws[name] = {
            "bias": float(errors.mean()),
            "rms": _rms(errors),
            "within": int(np.sum((low <= observed) & (observed <= high))),
            "half_width": float(np.median((high - low) / 2)),
            "reason": None,
        }
    ratios = {"size": float(_exp(logs[held].max() - logs[~held].max()))}
    ratios |= {name: float(values[held].max() / values[~held].max()) for name, values in raw.items()}
    note = None
    if rows.groups is not None:
        count = len(np.unique(rows.groups[held]))
        note = f"held out as {count} whole group{'s' * (count > 1)}, by the largest row of each"
    largest = float(_exp(logs[held].max())), float(_exp(logs[~held].max()))
    return HoldOut(words, held, largest, ratios, laws, confidence, note, None)


def as_fit(
    estimate: Estimate, rows: Rows, labels: Mapping[str, str], offsets: Mapping[str, float], confidence: float
) -> LawFit:
    """Wraps a minimum as a LawFit for its predictions: without intervals or verdicts on parameters."""
    law = estimate.problem.model.law
    return LawFit(
        law, dict(labels), dict(offsets), rows, estimate, {}, "covariance", confidence, {}, None, 0, ()
    )  # fmt: skip


def start_at(estimate: Estimate, model: Model) -> np.ndarray:
    """Returns the minimum of one law as a start (1, p) of another, or of the same on other rows.

    The law of `model` must have the variables of the other; exponents that it cannot take it takes nearest.
    """
    old = estimate.problem.model
    a, alpha, floor = old.split(estimate.theta)
    order = [old.law.variables.index(name) for name in model.law.variables]
    alpha, log_c = alpha[order], (a + alpha * old.log_means)[order]
    free = np.linalg.pinv(model.mixing) @ (alpha - model.fixed)
    alpha = model.mixing @ free + model.fixed
    last = [np.log(max(float(floor), 1e-300))] if model.law.irreducible_loss is None else []
    return model.lift(np.concatenate([log_c - alpha * model.log_means, free, last])[None])


def _fit_kept(rows: Rows, full: Estimate, num_starts: int, seed: int) -> Estimate | str:
    """The minimum on what is left of the rows, or why they do not determine the law."""
    law, objective = full.problem.model.law, full.problem.objective
    if rows.num_rows <= len(law.parameters):
        return f"{rows.num_rows} rows are left for {len(law.parameters)} parameters"
    if why := _too_few_values(rows, law):
        return why
    also = start_at(full, make_model(law, rows.variables))
    try:
        found = estimate_rows(rows, law, objective, num_starts, seed, also)
    except InputError as error:
        return str(error)
    if not found.condition < _CONDITION:
        return f"the rows left do not determine the law (condition number {found.condition:.2g})"
    return found


def _too_few_values(rows: Rows, law: Law) -> str | None:
    for term in law.terms:
        needed = 3 if term.exponent is None and law.irreducible_loss is None else 2
        count = len(np.unique(rows.variables[term.variable]))
        if count < needed:
            return f"the rows left have {count} value{'s' * (count > 1)} of {term.variable}, and {needed} are needed"
    return None


def _raw(rows: Rows, offsets: Mapping[str, float]) -> dict[str, np.ndarray]:
    """The variables as they stand in the table."""
    return {name: values + offsets.get(name, 0.0) for name, values in rows.variables.items()}


def _log_size(raw: Mapping[str, np.ndarray]) -> tuple[np.ndarray, str]:
    """The logarithm of what a run's size is, and what that is."""
    logs = {name: np.log(values) for name, values in raw.items()}
    n, name = (logs.get("N"), "N")
    if n is None and "m" in logs and "ell" in logs:
        n, name = np.log(12) + 2 * logs["m"] + logs["ell"], "12 m^2 ell"
    if n is not None and "D" in logs:
        return np.log(6) + n + logs["D"], "6 N D" + (", N = 12 m^2 ell" if name != "N" else "")
    if n is not None and "tau" in logs:
        return n + logs["tau"], "N tau" + (", N = 12 m^2 ell" if name != "N" else "")
    if n is not None:
        return n, name
    return sum(logs.values(), np.zeros(len(next(iter(logs.values()))))), " x ".join(logs)


def _largest(rows: Rows, logs: np.ndarray, fraction: float) -> np.ndarray:
    """Which rows (n,) are the largest: whole groups where there are, ties included."""
    if rows.groups is not None:
        top = np.full(rows.groups.max() + 1, -np.inf)
        np.maximum.at(top, rows.groups, logs)
        logs = top[rows.groups]
    count = max(round(fraction * rows.num_rows), 1)
    return logs >= np.sort(logs)[-count] - _SAME


def _with_groups(rows: Rows, chosen: np.ndarray) -> np.ndarray:
    return chosen if rows.groups is None else np.isin(rows.groups, rows.groups[chosen])


def _exp(logs: np.ndarray) -> np.ndarray:
    """A product of many variables may be more than a float holds."""
    with np.errstate(over="ignore"):
        return np.exp(logs)


def _rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))
