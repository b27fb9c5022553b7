"""What choices do to the numbers of a law: the range of each over all combinations, and under each choice alone."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from toydepth.fit.checks import plain
from toydepth.fit.law.choice.combinations import Combination
from toydepth.fit.law.choice.options import CHOICES, EITHER
from toydepth.fit.law.text import align, significant

_WIDTH = 110


class Effect(NamedTuple):
    """The range, low ... high, of a parameter under one choice.

    choice: "all", over every combination; else one choice alone, the others as in the base (the tie rule at each number
    of excluded rows where it matters: "ties at 40"). fitted: the combinations that fit the parameter; determined: those
    of them whose rows determine it, which low and high are over.
    """

    parameter: str
    choice: str
    low: float
    high: float
    determined: int
    fitted: int


@dataclass(frozen=True, eq=False)
class Multiverse:
    """Every combination of choices.

    Attributes:
        combinations: in the order exclusion, ties, offset, objective, law; failures too, with their reason.
        base: the first option of every choice. options: {choice: options as text, in order}.
        columns (symbol to column), loss, confidence, seed: as given. notes: sentences for the reader.
    """

    combinations: tuple[Combination, ...]
    base: Combination
    options: dict[str, tuple[str, ...]]
    columns: dict[str, str]
    loss: str
    confidence: float
    seed: int
    notes: tuple[str, ...]

    @cached_property
    def exponents(self) -> tuple[str, ...]:
        """Those that are free in one of the laws, or more."""
        return tuple(dict.fromkeys(name for one in self.combinations for name in one.law.free_exponents))

    @property
    def parameters(self) -> tuple[str, ...]:
        """What is compared: free exponents and L0; coefficients where no exponent is free and there is one law."""
        floor = ("L0",) if any("L0" in one.law.parameters for one in self.combinations) else ()
        coefficients = tuple(term.coefficient for term in self.base.law.terms) * (len(self.options["law"]) == 1)
        return (*(self.exponents or coefficients), *floor)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row a combination: choices, rows, each number with its standard error; NaN where there is none.

        That is where a number is fixed by the law, or not identified (then not_identified names it), or where nothing
        could be fitted (then reason says why).
        """
        symbols = list(
            dict.fromkeys(["ell"] * ("ell" in self.columns) + [s for c in self.combinations for s in c.offsets])
        )
        coefficients = [term.coefficient for one in self.combinations for term in one.law.terms]
        numbers = list(dict.fromkeys([*self.exponents, "L0", *coefficients]))
        records = []
        for one in self.combinations:
            record: dict[str, Any] = {"exclude_highest": one.exclude_highest, "ties": one.ties}
            record |= {f"offset_{symbol}": one.offsets.get(symbol, 0.0) for symbol in symbols}
            record |= {"objective": one.options["objective"], "law": one.options["law"], "rows": one.rows}
            for name in numbers:
                record[name] = one.values.get(name, np.nan)
                record[f"{name}_error"] = one.errors.get(name, np.nan)
            record |= {"residual_std": one.residual_std, "converged": one.converged}
            record |= {"share_agreeing": one.share_agreeing, "not_identified": ", ".join(one.unidentified)}
            records.append(record | {"reason": one.reason or ""})
        return pd.DataFrame(records)

    @property
    def effects(self) -> pd.DataFrame:
        """How far each choice moves each number, a row a parameter and choice, with the columns of `Effect`."""
        return pd.DataFrame(self._effects, columns=list(Effect._fields))

    @cached_property
    def _effects(self) -> list[Effect]:
        found = []
        for name in self.parameters:
            for choice, among in self._one_at_a_time().items():
                fitted = [one for one in among if name in one.law.parameters and one.reason is None]
                known = [one.values[name] for one in fitted if name in one.values]
                low, high = (min(known), max(known)) if known else (np.nan, np.nan)
                found.append(Effect(name, choice, low, high, len(known), len(fitted)))
        return found

    def report(self) -> str:
        """Returns the multiverse as text, at most 110 columns wide: what each choice does to each number."""
        failed = [one for one in self.combinations if one.reason is not None]
        chosen = ", ".join(f"{name} {option}" for name, option in self.base.options.items())
        lines = _wrap(self.base.law.formula())
        lines += _wrap(f"{len(self.combinations)} combinations of choices, {len(failed)} without a fit; base: {chosen}")
        lines += ["", *self._table(), ""]
        for name in self.parameters:
            lines += _wrap(self._sentence(name), "  ")
        for name in dict.fromkeys(name for one in self.combinations for name in one.unidentified):
            why = [one.unidentified[name] for one in self.combinations if name in one.unidentified]
            fitted = sum(name in one.law.parameters and one.reason is None for one in self.combinations)
            lines += _wrap(f"{name} is not identified in {len(why)} of {fitted} fits, for example: {why[0]}", "  ")
        for reason in dict.fromkeys(one.reason for one in failed):
            lines += _wrap(f"{sum(one.reason == reason for one in failed)} without a fit: {reason}", "  ")
        for note in self.notes:
            lines += _wrap(f"note: {note}", "  ")
        return "\n".join([*lines, "", *self._all()])

    def _all(self) -> list[str]:
        """Every combination, a line each; numbers that do not fit beside the others stand in blocks of their own."""
        lines: list[str] = []
        left = list(self.parameters)
        while left:
            taken = next((n for n in range(len(left), 1, -1) if max(map(len, self._block(left[:n]))) <= _WIDTH), 1)
            lines += [*self._block(left[:taken]), ""]
            left = left[taken:]
        return lines[:-1]

    def _block(self, names: list[str]) -> list[str]:
        rows = [["excluded", "ties", "offset", "objective", "law", "rows", *names]]
        for one in self.combinations:
            told = []
            for name in names:
                value, error = one.values.get(name), one.errors.get(name)
                told.append("-" if value is None else f"{significant(value, error)} +- {significant(error, error)}")
            rows.append([*one.options.values(), str(one.rows), *told])
        return align(rows)

    def to_dict(self) -> dict[str, Any]:
        """Returns the multiverse for JSON; what is not fitted or not identified is None."""
        rows = zip(self.frame.to_dict("records"), self.combinations, strict=True)
        return plain(
            {
                "schema": 1,
                "formula": self.base.law.formula(),
                "columns": self.columns,
                "loss": self.loss,
                "base": self.base.options,
                "options": self.options,
                "parameters": self.parameters,
                "effects": self.effects.to_dict("records"),
                "combinations": [
                    {**row, "reason": one.reason, "not_identified": one.unidentified, "formula": one.law.formula()}
                    for row, one in rows
                ],
                "confidence": self.confidence,
                "seed": self.seed,
                "notes": self.notes,
            }
        )

    def _one_at_a_time(self) -> dict[str, list[Combination]]:
        """The combinations of each choice, those that differ from the base in it alone, where there are several."""
        base, rules = self.base, self.options["ties"]
        sizes = list(dict.fromkeys(one.exclude_highest for one in self.combinations))
        names = ["exclude_highest", *(f"ties at {size}" for size in sizes), *CHOICES[2:]]
        groups: dict[str, list[Combination]] = {name: [] for name in names}
        for one in self.combinations:
            apart = {choice for choice in CHOICES[2:] if one.options[choice] != base.options[choice]}
            if not apart and one.ties in (rules[0], EITHER):
                groups["exclude_highest"].append(one)
            # At the base no row may be excluded: a tie rule shows at other numbers of them only.
            if not apart and one.ties != EITHER:
                groups[f"ties at {one.exclude_highest}"].append(one)
            if (one.exclude_highest, one.ties) == (base.exclude_highest, base.ties):
                for choice in CHOICES[2:]:
                    if apart <= {choice}:
                        groups[choice].append(one)
        several = {name: among for name, among in groups.items() if len(among) > 1}
        return {"all": list(self.combinations), **several}

    def _table(self) -> list[str]:
        """The ranges, a column a parameter, in blocks that fit the width."""
        choices = list(dict.fromkeys(effect.choice for effect in self._effects))
        first = ["", "base", *("all choices" if choice == "all" else choice for choice in choices)]
        blocks, used = [], _WIDTH
        for name in self.parameters:
            cells = [name, "-" if name not in self.base.law.parameters else "?"]
            error = self._typical_error(name)
            if name in self.base.values:
                cells[1] = " +- ".join(significant(x, error) for x in (self.base.values[name], self.base.errors[name]))
            cells += [_range(effect, error) for effect in self._effects if effect.parameter == name]
            width = 2 + max(map(len, cells))
            if used + width > _WIDTH:
                blocks.append([first])
                used = 2 + max(map(len, first))
            blocks[-1].append(cells)
            used += width
        tables = [align(list(zip(*block, strict=True))) for block in blocks]
        return [line for i, table in enumerate(tables) for line in ([""] * (i > 0) + table)]

    def _typical_error(self, name: str) -> float | None:
        errors = [one.errors[name] for one in (self.base, *self.combinations) if name in one.errors]
        return errors[0] if errors else None

    def _sentence(self, name: str) -> str:
        every, *alone = (effect for effect in self._effects if effect.parameter == name)
        if not every.determined:
            return f"{name}: no combination determines it"
        error = self._typical_error(name)
        low, high = significant(every.low, error), significant(every.high, error)
        count = "one combination" if every.determined == 1 else f"{every.determined} combinations"
        text = f"{name}: {low} ... {high} over the {count} that determine{'s' * (every.determined == 1)} it"
        if name in self.base.errors:
            text += f"; standard error of the base {significant(self.base.errors[name], error)}"
        moves = {effect.high - effect.low: effect.choice for effect in alone if effect.determined > 1}
        if moves and max(moves) > 0:
            text += f"; moved most by {moves[max(moves)]} ({significant(max(moves), error)})"
        return text


def _range(effect: Effect, error: float | None) -> str:
    """Writes 0.93 ... 1.66, and (3/4) where three of four fits determine it; - where there is nothing to compare."""
    if effect.fitted < 2:
        return "-"
    if not effect.determined:
        return "?"
    part = f" ({effect.determined}/{effect.fitted})" if effect.determined < effect.fitted else ""
    return f"{significant(effect.low, error)} ... {significant(effect.high, error)}{part}"


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
