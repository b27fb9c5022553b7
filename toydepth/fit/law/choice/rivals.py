"""Which laws a law is usually held against."""

from __future__ import annotations

from dataclasses import replace

from toydepth.errors import InputError
from toydepth.fit.law.terms import Law, universal_law


def usual_rivals(law: Law) -> list[Law]:
    """Returns the law itself; with every exponent free; with the universal ones, where there are such; without L0.

    Each formula once.

    Example:
        >>> from toydepth.fit.law.terms import make_law
        >>> [rival.formula() for rival in usual_rivals(make_law("decomposed", ["m", "D"]))][1]
        'L = c_m / m + c_D / D^0.3333 + L0'

    Source: arXiv 2606.25008 for the universal exponents.
    """
    free = Law("decomposed", tuple(replace(term, exponent=None) for term in law.terms), law.irreducible_loss)
    rivals = [law, free]
    try:
        fixed = universal_law(*law.variables)
        rivals.append(Law(fixed.name, fixed.terms, law.irreducible_loss))
    except InputError:  # of other variables: nothing is claimed about their exponents
        pass
    if law.irreducible_loss is None:
        rivals.append(Law(f"{law.name} without L0", law.terms, 0.0))
    distinct: dict[str, Law] = {}
    for rival in rivals:
        distinct.setdefault(rival.formula(), rival)
    return list(distinct.values())
