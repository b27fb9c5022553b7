"""The best uses of budgets, as found: numbers with intervals, as text and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toydepth.fit.checks import plain
from toydepth.fit.law.text import align
from toydepth.fit.law.uses.draws import Quantity

ORDER = ("N", "D", "tau", "D/N", "m", "ell", "m/ell")


@dataclass(frozen=True)
class Allocation:
    """The optimum at one budget.

    Attributes:
        budget: in the units of the cost.
        beyond: by what factor the budget lies outside those of the table's rows (1 inside).
        optimum: symbol of each variable, and N, D/N and m/ell where they follow, to its best value.
        loss: that of the law there, L*. new_run: (low, high) of one more run there, with its noise, or None.
        distance: by what factor some variable of the optimum lies outside the rows (1 inside).
        exponents: d ln x* / d ln C of each variable and of "L - L0".
    """

    budget: float
    beyond: float
    optimum: dict[str, Quantity]
    loss: Quantity
    new_run: tuple[float, float] | None
    distance: float
    exponents: dict[str, Quantity]


@dataclass(frozen=True)
class Compute:
    """The optimum at each budget, or the reason for none.

    Attributes:
        cost: as text. confidence: of the intervals.
        table: (lowest, highest) cost of the rows.
        at: one a budget. notes: what was taken for granted.
    """

    cost: str
    confidence: float
    table: tuple[float, float] | None
    at: tuple[Allocation, ...]
    reason: str | None
    notes: tuple[str, ...] = ()

    def report(self) -> str:
        """Returns the allocations as text."""
        title = f"best use of a budget, cost {self.cost}"
        if self.reason or self.table is None:
            return f"{title}: none: {self.reason}"
        low, high = self.table
        lines = [f"{title} ({100 * self.confidence:g} % intervals; the rows cost {low:.3g} ... {high:.3g})"]
        names = list(dict.fromkeys(name for one in self.at for name in one.optimum))
        for some in (["N", "D", "tau", "D/N"], ["m", "ell", "m/ell"], [name for name in names if name not in ORDER]):
            if any(name in names for name in some):
                lines += self._table([name for name in some if name in names], with_loss=some[0] == "N")
        if "N" not in names and "D" not in names:
            lines += self._table([], with_loss=True)
        lines += self._exponents()
        far = [one for one in self.at if max(one.beyond, one.distance) > 1.0005]
        said = (f"{one.budget:.3g} (cost x {one.beyond:.3g}, a variable x {one.distance:.3g})" for one in far)
        lines += [f"  outside the rows: {', '.join(said)}"] if far else []
        lines += sorted({f"  no loss: {one.loss.reason}" for one in self.at if one.loss.reason})
        lines += sorted({f"  no optimum: {q.reason}" for one in self.at for q in one.optimum.values() if q.reason})
        lost = max((q.lost for one in self.at for q in one.optimum.values()), default=0.0)
        if lost:
            lines.append(f"  {100 * lost:.2g} % of the draws have no optimum")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _table(self, names: list[str], with_loss: bool) -> list[str]:
        """Two lines a budget: numbers, and their intervals below."""
        rows = [["cost", *(f"{name} *" for name in names), *(["L *", "one more run there"] if with_loss else [])]]
        for one in self.at:
            found = [one.optimum[name] for name in names] + ([one.loss] if with_loss else [])
            run = "?" if one.new_run is None else f"[{one.new_run[0]:.4g}, {one.new_run[1]:.4g}]"
            pairs = [q.text().partition(" ") for q in found]
            rows.append([f"{one.budget:.3g}", *(number for number, _, _ in pairs)])
            rows.append(["", *(interval for _, _, interval in pairs), *([run] if with_loss else [])])
        return align([row for row in rows if any(row)])

    def _exponents(self) -> list[str]:
        """One line where they are the same at all budgets, else one for the lowest and one for the highest."""
        chosen = [one for one in self.at if all(q.value is not None for q in one.exponents.values())]
        if not chosen:
            return []
        first, last = chosen[0], chosen[-1]
        ends = [[q.value or 0.0 for q in one.exponents.values()] for one in (first, last)]
        same = bool(np.allclose(*ends, rtol=0, atol=5e-4))
        rows = [["growth", *(f"{name} ~ C^" for name in first.exponents)]]
        for one in [last] if same else [first, last]:
            rows.append(["" if same else f"at {one.budget:.3g}", *(q.text() for q in one.exponents.values())])
        return align(rows)

    def to_dict(self) -> dict[str, Any]:
        """Returns the allocations for JSON."""
        return plain(asdict(self))
