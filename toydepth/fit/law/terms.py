"""What a law says: a sum of power terms and an irreducible loss; which exponents are free, fixed or shared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toydepth.errors import did_you_mean
from toydepth.fit.checks import is_number, refuse


@dataclass(frozen=True)
class Term:
    """c / x^alpha for one variable x.

    Args:
        variable: its symbol: m, ell, D, tau, N, or any name of a column.
        exponent: None where it is free; a number where it is fixed; the name of another term's exponent ("alpha_m")
            where it is shared with it.
    """

    variable: str
    exponent: float | str | None = None

    @property
    def coefficient(self) -> str:
        """The name of c, for example c_ell."""
        return f"c_{self.variable}"

    @property
    def alpha(self) -> str:
        """The name of the exponent, for example alpha_ell."""
        return f"alpha_{self.variable}"


@dataclass(frozen=True)
class Law:
    """L = sum_k c_k / x_k^alpha_k + L0.

    Args:
        name: for reports.
        terms: of different variables.
        irreducible_loss: None where L0 is free (and positive), a number where it is fixed; 0 for none.

    Raises:
        InputError: for no terms, two terms of one variable, or an exponent that is shared with nothing free.

    Example:
        >>> LAWS["universal"]("m", "ell", "D").parameters
        ('c_m', 'c_ell', 'c_D', 'L0')

    Source: arXiv 2602.05970 (free), 2606.25008 (fixed exponents), 2203.15556 (N and D); docs/notation.md.
    """

    name: str
    terms: tuple[Term, ...]
    irreducible_loss: float | None = None

    def __post_init__(self) -> None:
        names = self.variables
        if not names:
            raise refuse("law", "a sum of one term or more", "none", "Name columns: width, depth, data, or terms.")
        if len(set(names)) < len(names):
            raise refuse("law", "terms of different variables", ", ".join(names), "Name each variable once.")
        free = [term.alpha for term in self.terms if term.exponent is None]
        for term in self.terms:
            if isinstance(term.exponent, str) and term.exponent not in free:
                have = f"Free are: {', '.join(free) or 'none'}.{did_you_mean(term.exponent, free)}"
                raise refuse(term.alpha, "shared with a free exponent", term.exponent, have)
            if is_number(term.exponent) and not math.isfinite(float(term.exponent)):  # pyright: ignore
                raise refuse(term.alpha, "a finite number", term.exponent, "Leave it out to fit it.")
            if is_number(term.exponent) and term.exponent == 0:
                raise refuse(term.alpha, "other than 0", "0", "With it the term is a constant, as L0 is.")
        floor = self.irreducible_loss
        if floor is not None and (not is_number(floor) or not (math.isfinite(floor) and floor >= 0)):
            raise refuse("L0", "a finite number, 0 or more", floor, "Leave it out to fit it.")

    @property
    def variables(self) -> tuple[str, ...]:
        """The symbols of the terms, in order."""
        return tuple(term.variable for term in self.terms)

    @property
    def free_exponents(self) -> tuple[str, ...]:
        """The names of the exponents that are fitted."""
        return tuple(term.alpha for term in self.terms if term.exponent is None)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what is fitted: coefficients, free exponents, L0."""
        floor = () if self.irreducible_loss is not None else ("L0",)
        return (*(term.coefficient for term in self.terms), *self.free_exponents, *floor)

    def with_exponents(self, fixed: Mapping[str, float | str | None]) -> Law:
        """Returns the law with some exponents, or L0, fixed to a number, shared by name, or freed (None).

        Example:
            >>> LAWS["decomposed"]("m", "ell", "D").with_exponents({"alpha_ell": 1.0, "L0": 0.0}).parameters
            ('c_m', 'c_ell', 'c_D', 'alpha_m', 'alpha_D')
        """
        known = {term.alpha: term for term in self.terms}
        floor = self.irreducible_loss
        changed = dict(known)
        for name, value in fixed.items():
            if name == "L0":
                if isinstance(value, str):
                    raise refuse("L0", "a number", value, "Only exponents can be shared.")
                floor = value
            elif name in known:
                changed[name] = replace(changed[name], exponent=value)
            else:
                names = [*known, "L0"]
                raise refuse("fix", f"one of {', '.join(names)}", name, f"{did_you_mean(name, names)}".strip())
        return Law(self.name, tuple(changed.values()), floor)

    def without(self, variable: str) -> Law:
        """Returns the law without one term; exponents shared with it become free."""
        gone = next(term for term in self.terms if term.variable == variable)
        kept = [term for term in self.terms if term is not gone]
        heirs = [term for term in kept if term.exponent == gone.alpha]
        if heirs:
            first = heirs[0]
            kept = [
                replace(term, exponent=None if term is first else first.alpha) if term in heirs else term
                for term in kept
            ]
        return Law(f"{self.name} without {variable}", tuple(kept), self.irreducible_loss)

    def formula(self) -> str:
        """Returns the law as text.

        Example:
            >>> LAWS["universal"]("m", "ell", "D").formula()
            'L = c_m / m + c_ell / ell + c_D / D^0.3333 + L0'
        """
        parts = [f"{term.coefficient} / {term.variable}{_power(term)}" for term in self.terms]
        floor = self.irreducible_loss
        parts += ["L0"] if floor is None else [f"{floor:g}"] if floor else []
        return "L = " + " + ".join(parts)


def exponent_text(exponent: float | str | None) -> str:
    """Writes a term's exponent: a number, or the name of what it is shared with.

    Example:
        >>> exponent_text(1 / 3), exponent_text("alpha_m")
        ('0.3333', 'alpha_m')
    """
    return f"{exponent:.4g}" if is_number(exponent) else str(exponent)


def space_name(name: str) -> str:
    """Returns the name of what is fitted for a parameter: `ln c_m`, `ln L0`, `alpha_m`."""
    return f"ln {name}" if name == "L0" or name.startswith("c_") else name


def _power(term: Term) -> str:
    return "" if term.exponent == 1 else f"^{term.alpha if term.exponent is None else exponent_text(term.exponent)}"


def free_law(*variables: str) -> Law:
    """Every exponent free: L = c_m / m^alpha_m + c_ell / ell^alpha_ell + c_D / D^alpha_D + L0."""
    return Law("decomposed", tuple(Term(name) for name in variables))


def universal_law(*variables: str) -> Law:
    """Exponents 1 for width and depth, 1/3 for training time or data (which stands for it online)."""
    unknown = [name for name in variables if name not in _UNIVERSAL]
    if unknown:
        advice = "Take the law decomposed, or fix exponents of your own."
        raise refuse("law universal", f"of {', '.join(_UNIVERSAL)}", ", ".join(unknown), advice)
    return Law("universal", tuple(Term(name, _UNIVERSAL[name]) for name in variables))


def chinchilla_law(*variables: str) -> Law:
    """L = c_N / N^alpha_N + c_D / D^alpha_D + L0, of parameters and tokens."""
    if set(variables) != {"N", "D"}:
        advice = "Name the columns of parameters and data, or take the law decomposed."
        raise refuse("law chinchilla", "of N and D", ", ".join(variables) or "none", advice)
    return Law("chinchilla", (Term("N"), Term("D")))


_UNIVERSAL: Mapping[str, float] = {"m": 1.0, "ell": 1.0, "D": 1 / 3, "tau": 1 / 3}
LAWS = {"decomposed": free_law, "universal": universal_law, "chinchilla": chinchilla_law}


def make_law(name: str, variables: Sequence[str], fixed: Mapping[str, float | str | None] | None = None) -> Law:
    """Builds a law by name over variables, with exponents fixed or shared as `Law.with_exponents` has it.

    Raises:
        InputError: for an unknown name, or variables that the law does not have.
    """
    if name not in LAWS:
        raise refuse("law", f"one of {', '.join(LAWS)}", name, f"Or give a Law.{did_you_mean(name, LAWS)}")
    return LAWS[name](*variables).with_exponents(fixed or {})
