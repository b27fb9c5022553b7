"""The largest runs, predicted from fits to the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toydepth.fit.checks import plain
from toydepth.fit.law.choice.refit import as_fit, fit_kept, rms
from toydepth.fit.law.choice.scales import exp_or_inf, log_size
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.text import align, significant

_SAME = 1e-9  # two sizes whose logarithms differ by less are one


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
    raw = rows.unshifted(offsets)
    logs, words = log_size(raw)
    held = _largest(rows, logs, fraction)
    if held.all() or np.ptp(logs) <= _SAME:
        why = "every row is as large" if np.ptp(logs) <= _SAME else "ties or groups leave no row to fit"
        return HoldOut(words, np.zeros(rows.num_rows, bool), None, {}, {}, confidence, None, f"{why}: {words}")
    kept = rows.take(~held)
    points = {name: values[held] for name, values in raw.items()}
    observed = np.log(rows.loss[held])
    laws: dict[str, dict[str, Any]] = {}
    for name, estimate in estimates.items():
        found = fit_kept(kept, estimate, num_starts, seed)
        if isinstance(found, str):
            laws[name] = {"bias": None, "rms": None, "within": None, "half_width": None, "reason": found}
            continue
        table = as_fit(found, kept, labels, offsets, confidence).predict(points, new_run=True)
        errors = np.log(table["loss"].to_numpy()) - observed
        low, high = np.log(table["low"].to_numpy()), np.log(table["high"].to_numpy())
        laws[name] = {
            "bias": float(errors.mean()),
            "rms": rms(errors),
            "within": int(np.sum((low <= observed) & (observed <= high))),
            "half_width": float(np.median((high - low) / 2)),
            "reason": None,
        }
    ratios = {"size": float(exp_or_inf(logs[held].max() - logs[~held].max()))}
    ratios |= {name: float(values[held].max() / values[~held].max()) for name, values in raw.items()}
    note = None
    if rows.groups is not None:
        count = len(np.unique(rows.groups[held]))
        note = f"held out as {count} whole group{'s' * (count > 1)}, by the largest row of each"
    largest = float(exp_or_inf(logs[held].max())), float(exp_or_inf(logs[~held].max()))
    return HoldOut(words, held, largest, ratios, laws, confidence, note, None)


def _largest(rows: Rows, logs: np.ndarray, fraction: float) -> np.ndarray:
    """Which rows (n,) are the largest: whole groups where there are, ties included."""
    if rows.groups is not None:
        top = np.full(rows.groups.max() + 1, -np.inf)
        np.maximum.at(top, rows.groups, logs)
        logs = top[rows.groups]
    count = max(round(fraction * rows.num_rows), 1)
    return logs >= np.sort(logs)[-count] - _SAME
