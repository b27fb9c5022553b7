"""One model size left out at a time, predicted from the rest; and how large a run is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toydepth.errors import did_you_mean
from toydepth.fit.checks import plain, refuse
from toydepth.fit.law.choice.refit import fit_kept, rms
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.text import align, significant

_DATA = ("D", "tau")  # variables that are no model size
_MOST_SCALES = 30
_BINS = 10
_FOLD_STARTS = 8  # besides the minimum on all rows, which is near


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
            by_scale[name] = {"rows": len(one), "rmse": rms(one), "bias": float(one.mean())}
        rows = self.common if np.isfinite(errors).any() else np.zeros(len(errors), bool)
        known = {name: by_scale[name]["rmse"] for name in np.array(self.scales.names)[np.unique(codes[rows])]}
        values = list(known.values())
        return {
            "rmse": rms(errors[rows]) if values else None,
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


def find_scales(rows: Rows, offsets: Mapping[str, float], scale: Sequence[str] | None = None) -> Scales:
    """Parts rows by model size: distinct values of the variables of `scale`, by default all but D and tau.

    More than 30 sizes are put into 10 bins of about as many rows, in order of N, 12 m^2 ell, or the product of the
    variables.

    Raises:
        InputError: for a variable of `scale` that the rows do not have.

    Example:
        >>> from toydepth.fit.law.table.choose import choose_rows
        >>> table = {"m": [64, 64, 128], "D": [1e6, 1e7, 1e7], "loss": [3.0, 2.0, 1.0]}
        >>> find_scales(choose_rows(table, {"m": "m", "D": "D"}, "loss"), {}).names
        ('m = 64', 'm = 128')
    """
    raw = rows.unshifted(offsets)
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
    logs, what = log_size(dict(zip(names, points, strict=True)))
    order = np.argsort(logs, kind="stable")
    middle = np.cumsum(times[order]) - times[order] / 2
    bins = np.empty(len(times), int)
    bins[order] = np.unique((_BINS * middle / rows.num_rows).astype(int), return_inverse=True)[1]
    edges = [exp_or_inf(logs[bins == i]) for i in range(bins.max() + 1)]
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
            found = fit_kept(rows.take(kept), estimate, min(num_starts, _FOLD_STARTS), seed)
            if isinstance(found, str):
                reasons[law][title] = found
            else:
                predicted = found.problem.model.on(points.variables).log_loss(found.theta)
                errors[law][out] = predicted - np.log(points.loss)
    return ScaleErrors(scales, errors, reasons)


def _with_groups(rows: Rows, chosen: np.ndarray) -> np.ndarray:
    return chosen if rows.groups is None else np.isin(rows.groups, rows.groups[chosen])


def log_size(raw: Mapping[str, np.ndarray]) -> tuple[np.ndarray, str]:
    """Returns the logarithm of what a run's size is, and what that is."""
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


def exp_or_inf(logs: np.ndarray) -> np.ndarray:
    """Returns e^x without a warning: a product of many variables may be more than a float holds."""
    with np.errstate(over="ignore"):
        return np.exp(logs)
