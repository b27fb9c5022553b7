"""The options of each choice that somebody could have made, and what each is called."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toydepth.errors import InputError
from toydepth.fit.checks import check_count, is_number, refuse
from toydepth.fit.law.objective import OBJECTIVES, Objective
from toydepth.fit.law.terms import Law, universal_law

EXCLUSIONS = (0, 5, 20, 40, 60)
CHOICES: tuple[str, ...] = ("exclude_highest", "ties", "offset", "objective", "law")
EITHER = "either"  # tie rules that keep the same rows


def name_laws(law: Law, others: Sequence[Law] | None) -> dict[str, Law]:
    """Returns {name: law}, the law of the base first; laws of one name are told apart by what they fix."""
    if others is None:
        try:
            others = [replace(universal_law(*law.variables), irreducible_loss=law.irreducible_loss)]
        except InputError:
            others = []
    else:
        others = listed("laws", others)
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


def name_objectives(given: Sequence[Objective | str] | None) -> dict[str, Objective]:
    """Returns {"huber 0.001": objective}, by default all kinds."""
    kinds = OBJECTIVES if given is None else listed("objectives", given)
    found = [one if isinstance(one, Objective) else Objective(one) for one in kinds]
    detail = {"huber": "delta", "student": "degrees"}
    return {f"{one.kind} {getattr(one, detail[one.kind]):g}" if one.kind in detail else one.kind: one for one in found}


def name_exclusions(given: Sequence[int] | None, rows: int) -> list[int]:
    """Returns how many of the highest losses to leave out, by default those below half of the rows."""
    if given is None:
        return [excluded for excluded in EXCLUSIONS if excluded < rows / 2]
    return list(dict.fromkeys(check_count("exclusions", one, 0) for one in listed("exclusions", given)))


def name_offsets(
    given: Sequence[Mapping[str, float]] | None, smallest: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Returns {"ell - 1": {"ell": 1.0}, "none": {}}, without zeros."""
    if given is None:
        given = [{}, {"ell": 1.0}] if smallest.get("ell", 0.0) > 1 else [{}]
    found = {}
    for offset in listed("offsets", given):
        for name, value in dict(offset).items():
            if name not in smallest:
                raise refuse("offsets", f"of {', '.join(smallest)}", repr(name), "Name a variable of the law.")
            if not is_number(value) or not math.isfinite(value):
                raise refuse(f"the offset of {name}", "a finite number", reprlib.repr(value), "Give 0 for none.")
        taken = {name: float(value) for name, value in offset.items() if value}
        title = ", ".join(f"{name} {'-' if value > 0 else '+'} {abs(value):g}" for name, value in taken.items())
        found[title or "none"] = taken
    return found


def listed(argument: str, given: Any) -> list[Any]:
    """Returns the options of a choice as a list; raises InputError where it is none, or empty."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise refuse(argument, "a list of options, one or more", reprlib.repr(given), "Leave it out for the default.")
    return list(given)
