"""One law under every combination of the choices that somebody could have made: what the choices do to the numbers."""

from __future__ import annotations

import math
import reprlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.fit.checks import check_confidence, check_count, is_number, plain, refuse
from toydepth.fit.law.estimate import Estimate
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.identify import find_unidentified
from toydepth.fit.law.model import make_model
from toydepth.fit.law.objective import OBJECTIVES, Objective
from toydepth.fit.law.profile import profile_all
from toydepth.fit.law.table.rows import Rows, choose_rows
from toydepth.fit.law.terms import Law, universal_law
from toydepth.fit.law.text import align, significant

EXCLUSIONS = (0, 5, 20, 40, 60)
CHOICES: tuple[str, ...] = ("exclude_highest", "ties", "offset", "objective", "law")
EITHER = "either"  # tie rules that keep the same rows
_SMALL_ERROR = 0.05  # of ln c, an exponent, ln L0: no profile is open there
_NO_ERROR = 8.0  # of an exponent: none is
_WIDTH = 110


@dataclass(frozen=True, eq=False)
class Combination:
    """One fit of the multiverse.

    Attributes:
        exclude_highest, ties, offsets (none that is 0), objective, law: what was chosen; ties is "either" where the tie
            rules keep the same rows.
        options: the same as text, {choice: option}.
        rows: how many were used. values, errors: {parameter: number} of those that the rows determine, with the
            standard error of the value itself. unidentified: {parameter: why} of the others.
        residual_std: of ln L, whatever the objective, with n - p degrees of freedom.
        converged, share_agreeing: of the search for the minimum. reason: why there is no fit, or None.
    """

    exclude_highest: int
    ties: str
    offsets: dict[str, float]
    objective: Objective
    law: Law
    options: dict[str, str]
    rows: int = 0
    values: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    unidentified: dict[str, str] = field(default_factory=dict)
    residual_std: float = float("nan")
    converged: bool = False
    share_agreeing: float = float("nan")
    reason: str | None = None


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
        return "\n".join(lines)

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


def multiverse(
    table: pd.DataFrame | Mapping[str, Any],
    law: Law,
    columns: Mapping[str, str],
    *,
    loss: str = "loss",
    exclusions: Sequence[int] | None = None,
    ties: Sequence[str] = ("below", "rank"),
    offsets: Sequence[Mapping[str, float]] | None = None,
    objectives: Sequence[Objective | str] | None = None,
    laws: Sequence[Law] | None = None,
    query: str | None = None,
    weights: str | None = None,
    groups: str | None = None,
    confidence: float = 0.95,
    num_starts: int = 16,
    seed: int = 0,
) -> Multiverse:
    """Fits a law under every combination of choices; the first option of each is the base.

    No combination is the right one: a number that moves with a choice by more than its error is a result of the choice.

    Args:
        table, columns, loss, query, weights, groups: as in `fit_law`.
        law: of the base.
        exclusions: how many of the highest losses to leave out; default 0, 5, 20, 40, 60, those below half of the rows.
        ties: tie rules of `choose_rows`; where they keep the same rows there is one fit, of "either".
        offsets: {symbol: what is taken off}, each below the smallest value; default none, and 1 off ell where it fits.
        objectives: default log, linear, huber (delta 1e-3), student.
        laws: default the law, and the universal one over the same variables where there is one.
        confidence: of the tests of what is identified, and of intervals in figures.
        num_starts: of each search, beside the minima of neighbouring combinations.
        seed: of the starts.

    Returns:
        Multiverse: frame, effects, report, to_dict. Standard errors are those of the covariance. A combination that
        cannot be fitted has a reason; a number that its rows do not determine is left out.

    Raises:
        InputError: for an option or table that no combination could use.

    Example:
        >>> m, D = np.meshgrid([64, 128, 256, 512, 1024], [1e8, 1e9, 1e10, 1e11])
        >>> runs = pd.DataFrame({"m": m.ravel(), "D": D.ravel()})
        >>> noise = np.random.default_rng(0).normal(0, 0.002, len(runs))
        >>> runs["loss"] = (40 / runs.m + 400 / runs.D**0.3 + 1.7) * np.exp(noise)
        >>> from toydepth.fit.law.terms import make_law
        >>> found = multiverse(runs, make_law("decomposed", ["m", "D"]), {"m": "m", "D": "D"}, objectives=["log"])
        >>> found.frame[["exclude_highest", "law", "rows"]].to_numpy().tolist()
        [[0, 'decomposed', 20], [0, 'universal', 20], [5, 'decomposed', 15], [5, 'universal', 15]]

    Source: the idea, Steegen, Tuerlinckx, Gelman, Vanpaemel, Perspectives on Psychological Science 2016.
    """
    check_confidence(confidence)
    check_count("num_starts", num_starts, 2)
    check_count("seed", seed, 0)
    titles = _name_laws(law, laws)
    symbols = dict.fromkeys(symbol for one in titles.values() for symbol in one.variables)
    columns = {symbol: columns.get(symbol, symbol) for symbol in symbols}
    kinds = _name_objectives(objectives)
    common: dict[str, Any] = {"query": query, "weights": weights, "groups": groups}
    every = choose_rows(table, columns, loss, **common)
    smallest = {name: float(values.min()) for name, values in every.variables.items()}
    exclusions = _name_exclusions(exclusions, every.num_rows)
    shifts = _name_offsets(offsets, smallest)
    rules = tuple(dict.fromkeys(_listed("ties", ties)))
    for rule in rules:  # an unknown one is refused before any fit
        choose_rows(table, columns, loss, ties=rule)
    found: list[Combination] = []
    done: dict[tuple, Combination] = {}  # rows that several choices leave are fitted once
    minima: dict[tuple[str, str], np.ndarray] = {}  # the last of each law and objective
    for excluded, rule, chosen in _row_sets(table, columns, loss, exclusions, rules, common):
        for shift, offset in shifts.items():
            rows = _take_off(chosen, offset, smallest)
            for kind, title in ((kind, title) for kind in kinds for title in titles):
                options: dict[str, str] = dict(zip(CHOICES, (str(excluded), rule, shift, kind, title), strict=True))
                blank = Combination(excluded, rule, offset, kinds[kind], titles[title], options)
                if isinstance(rows, str):
                    found.append(replace(blank, reason=rows))
                    continue
                key = (rows.numbers.tobytes(), shift, kind, title)
                if key not in done:
                    # From the neighbour of the same objective, and the last of any: what one finds the next shall too.
                    near = [minima[at] for at in ((title, kind), *reversed(minima)) if at in minima and at[0] == title]
                    done[key], minimum = _fit(blank, rows, columns, near[:2], confidence, num_starts, seed)
                    if minimum is not None:
                        minima[title, kind] = minimum
                found.append(replace(done[key], exclude_highest=excluded, ties=rule, options=options))
    names = {choice: tuple(dict.fromkeys(one.options[choice] for one in found)) for choice in CHOICES}
    notes = ["standard errors are those of the covariance; no combination is the right one"]
    if any(objective.kind == "huber" for objective in kinds.values()):
        notes.append("of huber they are rough: they hang on how many residuals lie within delta")
    return Multiverse(tuple(found), found[0], {**names, "ties": rules}, columns, loss, confidence, seed, tuple(notes))


def _fit(
    blank: Combination,
    rows: Rows,
    labels: Mapping[str, str],
    near: Sequence[np.ndarray],
    confidence: float,
    num_starts: int,
    seed: int,
) -> tuple[Combination, np.ndarray | None]:
    """Returns the combination with its numbers, and the minimum (ln c, free exponents, ln L0)."""
    blank = replace(blank, rows=rows.num_rows)
    law = blank.law
    also = None
    if near:
        # A model's own parameters depend on its rows' geometric means; the natural ones do not.
        matrix, shift = make_model(law, rows.variables).to_natural()
        also = np.linalg.solve(matrix, (np.array(near) - shift).T).T
    try:
        estimate = estimate_rows(rows, law, blank.objective, num_starts, seed, also)
    except InputError as error:
        return replace(blank, reason=str(error)), None
    own_errors = np.sqrt(np.maximum(np.diag(estimate.own_covariance), 0))
    # A single parameter's profile is its objective, which closes on both sides unless the term has vanished.
    unneeded = np.all(own_errors < _SMALL_ERROR) or len(own_errors) == 1
    profiles = None if unneeded else profile_all(estimate, confidence)
    unidentified = dict(find_unidentified(estimate, rows.variables, labels, profiles, confidence))
    for name, error in zip(law.parameters, own_errors, strict=True):
        if name in law.free_exponents and not error < _NO_ERROR:
            unidentified.setdefault(name, "its standard error is beyond any use: hardly a row sees its term")
    for term in law.terms:
        # c is the term at x = 1, far outside the rows: without the exponent it is not known.
        if term.alpha in unidentified:
            unidentified.setdefault(term.coefficient, unidentified[term.alpha])
    natural, errors = estimate.natural, np.sqrt(np.maximum(np.diag(estimate.covariance), 0))
    values, value_errors = {}, {}
    for name, value, error in zip(law.parameters, natural, errors, strict=True):
        if name not in unidentified:
            logged = name not in law.free_exponents
            values[name] = float(np.exp(value) if logged else value)
            value_errors[name] = float(error * (values[name] if logged else 1))
    fitted = replace(
        blank,
        values=values,
        errors=value_errors,
        unidentified=unidentified,
        residual_std=_residual_std(estimate),
        converged=estimate.converged,
        share_agreeing=estimate.share_agreeing,
    )
    return fitted, natural


def _residual_std(estimate: Estimate) -> float:
    residuals = estimate.problem.log_loss - estimate.problem.model.log_loss(estimate.theta)
    return float(np.sqrt(np.sum(estimate.weights * residuals**2) / max(estimate.degrees, 1)))


def _row_sets(
    table: pd.DataFrame | Mapping[str, Any],
    columns: Mapping[str, str],
    loss: str,
    exclusions: Sequence[int],
    rules: Sequence[str],
    common: Mapping[str, Any],
) -> Iterator[tuple[int, str, Rows | str]]:
    """Yields (exclude_highest, tie rule, rows or why there are none); "either" where the tie rules agree."""
    for excluded in exclusions:
        kept: dict[str, Rows | str] = {}
        for rule in rules:
            try:
                kept[rule] = choose_rows(table, columns, loss, exclude_highest=excluded, ties=rule, **common)
            except InputError as error:
                kept[rule] = str(error)
        marks = {one if isinstance(one, str) else one.numbers.tobytes() for one in kept.values()}
        if excluded == 0 or (len(rules) > 1 and len(marks) == 1):
            yield excluded, EITHER, kept[rules[0]]
        else:
            yield from ((excluded, rule, kept[rule]) for rule in rules)


def _take_off(rows: Rows | str, offset: Mapping[str, float], smallest: Mapping[str, float]) -> Rows | str:
    """Returns the rows with an offset taken off; why not, where that would cost some of them."""
    wrong = [name for name, value in offset.items() if value >= smallest[name]]
    if wrong:
        name = wrong[0]
        return f"the offset {offset[name]:g} of {name} is not below its smallest value, {smallest[name]:g}"
    if isinstance(rows, str):
        return rows
    return replace(rows, variables={name: x - offset.get(name, 0.0) for name, x in rows.variables.items()})


def _listed(argument: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise refuse(argument, "a list of options, one or more", reprlib.repr(given), "Leave it out for the default.")
    return list(given)


def _name_laws(law: Law, others: Sequence[Law] | None) -> dict[str, Law]:
    """Returns {name: law}, the law of the base first; laws of one name are told apart by what they fix."""
    if others is None:
        try:
            others = [replace(universal_law(*law.variables), irreducible_loss=law.irreducible_loss)]
        except InputError:
            others = []
    else:
        others = _listed("laws", others)
    distinct = {(one.terms, one.irreducible_loss): one for one in reversed([law, *others])}
    found = list(reversed(distinct.values()))
    names = [one.name for one in found]
    same = len({one.variables for one in found}) == 1
    titles = [
        name if names.count(name) == 1 else f"{name}, {_fixed(one)}{'' if same else ' of ' + ' '.join(one.variables)}"
        for name, one in zip(names, found, strict=True)
    ]
    return dict(zip(titles, found, strict=True))


def _fixed(law: Law) -> str:
    floor = [] if law.irreducible_loss is None else [f"L0 = {law.irreducible_loss:g}"]
    held = [
        f"{t.alpha} = {t.exponent if isinstance(t.exponent, str) else f'{t.exponent:g}'}"
        for t in law.terms
        if t.exponent is not None
    ]
    return ", ".join([*held, *floor]) or "all free"


def _name_objectives(given: Sequence[Objective | str] | None) -> dict[str, Objective]:
    listed = OBJECTIVES if given is None else _listed("objectives", given)
    found = [one if isinstance(one, Objective) else Objective(one) for one in listed]
    detail = {"huber": "delta", "student": "degrees"}
    return {f"{one.kind} {getattr(one, detail[one.kind]):g}" if one.kind in detail else one.kind: one for one in found}


def _name_exclusions(given: Sequence[int] | None, rows: int) -> list[int]:
    if given is None:
        return [excluded for excluded in EXCLUSIONS if excluded < rows / 2]
    return list(dict.fromkeys(check_count("exclusions", one, 0) for one in _listed("exclusions", given)))


def _name_offsets(
    given: Sequence[Mapping[str, float]] | None, smallest: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Returns {"ell - 1": {"ell": 1.0}, "none": {}}, without zeros."""
    if given is None:
        given = [{}, {"ell": 1.0}] if smallest.get("ell", 0.0) > 1 else [{}]
    found = {}
    for offset in _listed("offsets", given):
        for name, value in dict(offset).items():
            if name not in smallest:
                raise refuse("offsets", f"of {', '.join(smallest)}", repr(name), "Name a variable of the law.")
            if not is_number(value) or not math.isfinite(value):
                raise refuse(f"the offset of {name}", "a finite number", reprlib.repr(value), "Give 0 for none.")
        taken = {name: float(value) for name, value in offset.items() if value}
        title = ", ".join(f"{name} {'-' if value > 0 else '+'} {abs(value):g}" for name, value in taken.items())
        found[title or "none"] = taken
    return found


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
