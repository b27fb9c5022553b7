"""One law under every combination of the choices that somebody could have made: what the choices do to the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from toydepth.fit.checks import check_confidence, check_count
from toydepth.fit.law.choice.combinations import Combination, fit_combination, row_sets, take_off
from toydepth.fit.law.choice.effects import Multiverse
from toydepth.fit.law.choice.options import CHOICES, listed, name_exclusions, name_laws, name_objectives, name_offsets
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.terms import Law


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
    titles = name_laws(law, laws)
    symbols = dict.fromkeys(symbol for one in titles.values() for symbol in one.variables)
    columns = {symbol: columns.get(symbol, symbol) for symbol in symbols}
    kinds = name_objectives(objectives)
    common: dict[str, Any] = {"query": query, "weights": weights, "groups": groups}
    every = choose_rows(table, columns, loss, **common)
    smallest = {name: float(values.min()) for name, values in every.variables.items()}
    exclusions = name_exclusions(exclusions, every.num_rows)
    shifts = name_offsets(offsets, smallest)
    rules = tuple(dict.fromkeys(listed("ties", ties)))
    for rule in rules:  # an unknown one is refused before any fit
        choose_rows(table, columns, loss, ties=rule)
    found: list[Combination] = []
    done: dict[tuple, Combination] = {}  # rows that several choices leave are fitted once
    minima: dict[tuple[str, str], np.ndarray] = {}  # the last of each law and objective
    for excluded, rule, chosen in row_sets(table, columns, loss, exclusions, rules, common):
        for shift, offset in shifts.items():
            rows = take_off(chosen, offset, smallest)
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
                    done[key], minimum = fit_combination(blank, rows, columns, near[:2], confidence, num_starts, seed)
                    if minimum is not None:
                        minima[title, kind] = minimum
                found.append(replace(done[key], exclude_highest=excluded, ties=rule, options=options))
    names = {choice: tuple(dict.fromkeys(one.options[choice] for one in found)) for choice in CHOICES}
    notes = ["standard errors are those of the covariance; no combination is the right one"]
    if any(objective.kind == "huber" for objective in kinds.values()):
        notes.append("of huber they are rough: they hang on how many residuals lie within delta")
    return Multiverse(tuple(found), found[0], {**names, "ties": rules}, columns, loss, confidence, seed, tuple(notes))
