"""A law as a file: what `toydepth law` writes as fit.json, or a few lines by hand, read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toydepth.errors import did_you_mean
from toydepth.fit.checks import is_number, refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.terms import Law, Term
from toydepth.runs.files import write_json

SCHEMA = 1
_BY_HAND = '{"terms": {"m": {"c": 40, "alpha": 1}}, "L0": 1.7}'


@dataclass(frozen=True, eq=False)
class SavedLaw:
    """A law with its numbers.

    Attributes:
        law: its form. values: {c_<variable>, alpha_<variable>, L0: number}, all of them.
        labels: symbol to column. offsets: symbol to what is taken off the variable.
        residual_std: standard deviation of the residuals, or None; residuals_of: "ln L" or "L".
        covariance (p, p): of (ln c, free exponents, ln L0), in the order of law.parameters, or None.
    """

    law: Law
    values: dict[str, float]
    labels: dict[str, str]
    offsets: dict[str, float]
    residual_std: float | None = None
    residuals_of: str = "ln L"
    covariance: np.ndarray | None = None

    def loss(self, variables: Mapping[str, Any]) -> np.ndarray:
        """Returns sum_k c_k / (x_k - offset_k)^alpha_k + L0, (n,); variables: symbol to values (n,) above their offset.

        Example:
            >>> law = SavedLaw(Law("one", (Term("m"),)), {"c_m": 40.0, "alpha_m": 1.0, "L0": 1.7}, {"m": "m"}, {})
            >>> law.loss({"m": [10, 20, 40]}).tolist()
            [5.7, 3.7, 2.7]
        """
        total: Any = self.values["L0"]
        for term in self.law.terms:
            x = np.asarray(variables[term.variable], float) - self.offsets.get(term.variable, 0.0)
            total = total + self.values[term.coefficient] * x ** -self.values[term.alpha]
        return np.asarray(total)


def as_saved(law: SavedLaw | LawFit) -> SavedLaw:
    """Returns a law with its numbers, those of the minimum where it is a fit: along its rows they say what L is."""
    if isinstance(law, SavedLaw):
        return law
    if not isinstance(law, LawFit):
        raise refuse("law", "a LawFit, or what load_law returns", type(law).__name__, "Give load_law(path).")
    of = "ln L" if law.estimate.problem.objective.of_log else "L"
    return SavedLaw(law.law, law.values, law.labels, law.offsets, law.residual_std, of, law.estimate.covariance)


def write_law(fit: LawFit, path: str | Path, *, show_all: bool = False, extra: Mapping[str, Any] | None = None) -> Path:
    """Writes a fit as JSON (`LawFit.to_dict`), atomically: a reader sees the old file or the new one.

    Args:
        fit: the fit.
        path: the file; its folder is made.
        show_all: also the numbers that the rows do not determine, which are null otherwise.
        extra: more entries, beside the fit's own; they replace none of these.

    Returns:
        The path.

    Raises:
        InputError: where the file cannot be written.
    """
    path = Path(path)
    try:
        write_json(path, {**(extra or {}), **fit.to_dict(show_all)})
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise refuse(str(path), "a file that can be written", got, "Give another path.") from None
    return path


def load_law(path: str | Path) -> SavedLaw:
    """Reads a law: a fit.json of `write_law`, or one written by hand.

    By hand: `{"terms": {"m": {"c": 40, "alpha": 1}, "D": {"c": 400, "alpha": 0.3}}, "L0": 1.7}`; a term may also have a
    "column" and an "offset". L0 is 0 where it is left out.

    Args:
        path: the file.

    Returns:
        SavedLaw.

    Raises:
        InputError: for a file that is missing, damaged or of another kind, or a number that is missing or null.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "law.json")
        ...     _ = file.write_text('{"terms": {"m": {"c": 40, "alpha": 1}}, "L0": 1.7}')
        ...     load_law(file).values
        {'c_m': 40.0, 'alpha_m': 1.0, 'L0': 1.7}
    """
    shown = str(path)
    data = _read(Path(path))
    if not isinstance(data, dict):
        raise refuse(shown, "a law", f"a {type(data).__name__}", f"Write such as {_BY_HAND}.")
    try:
        if "terms" in data:
            return _by_hand(shown, data)
        if "law" not in data or "parameters" not in data:
            runs = {"rows", "refused"} <= set(data)
            got = "the depth exponents of runs" if runs else f"one with {', '.join(map(str, data)) or 'nothing'}"
            raise refuse(shown, "a law, with law and parameters", got, "Give the fit.json of toydepth law.")
        return _of_a_fit(shown, data)
    except (KeyError, TypeError, AttributeError) as error:
        got = f"{type(error).__name__} {error}".replace("\n", " ")
        raise refuse(
            shown, "a law as it was written", f"a part missing or of another kind ({got})", "Write it again."
        ) from None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        near = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        raise refuse(str(path), "a file", "none", f"Check the path.{did_you_mean(path.name, near)}") from None
    except IsADirectoryError:
        raise refuse(str(path), "a file", "a folder", "Give the fit.json in it.") from None
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise refuse(str(path), "a file that can be read", got, "Check its permissions.") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        got = f"a damaged one ({' '.join(str(error).split())})"
        raise refuse(str(path), "a JSON file", got, "Write it again.") from None


def _of_a_fit(shown: str, data: dict[str, Any]) -> SavedLaw:
    if data.get("schema") != SCHEMA:
        advice = "It was written by another version of toydepth: fit again."
        raise refuse(f"the schema of {shown}", str(SCHEMA), repr(data.get("schema")), advice)
    form, found = data["law"], data["parameters"]
    terms = tuple(Term(str(one["variable"]), _exponent(shown, one["exponent"])) for one in form["terms"])
    law = Law(str(form["name"]), terms, form["irreducible_loss"])
    names = [*(term.coefficient for term in terms), *(term.alpha for term in terms), "L0"]
    missing = [name for name in names if name not in found]
    if missing:
        raise refuse(f"the parameters of {shown}", f"with {', '.join(names)}", f"none for {missing[0]}", "Fit again.")
    unknown = [name for name in names if found[name]["value"] is None]
    if unknown:
        why = found[unknown[0]].get("reason") or "no reason given"
        got = f"null for {', '.join(unknown)} (not identified: {why})"
        advice = "Leave that term out or fix its exponent; or write the minimum's own numbers, with --show-all."
        raise refuse(shown, "a law with all its numbers", got, advice)
    values = {name: _number(shown, name, found[name]["value"]) for name in names}
    offsets = {str(name): _number(shown, f"the offset of {name}", x) for name, x in form["offsets"].items()}
    labels = {name: str(form["columns"][name]) for name in law.variables}
    spread: Any = data.get("residual_std")
    of = "L" if data.get("objective", {}).get("kind") == "linear" else "ln L"
    return _checked(
        shown,
        SavedLaw(law, values, labels, offsets, float(spread) if is_number(spread) else None, of, _matrix(law, data)),
    )


def _matrix(law: Law, data: dict[str, Any]) -> np.ndarray | None:
    """The covariance, where it is whole: what no row determines has none."""
    rows = data.get("covariance")
    size = len(law.parameters)
    if not isinstance(rows, list) or len(rows) != size:
        return None
    if any(not isinstance(row, list) or len(row) != size or not all(map(is_number, row)) for row in rows):
        return None
    return np.array(rows, float)


def _by_hand(shown: str, data: dict[str, Any]) -> SavedLaw:
    for key in data:
        if key not in ("terms", "L0"):
            raise refuse(
                shown, "a law of terms and L0", repr(key), f"Leave it out.{did_you_mean(key, ('terms', 'L0'))}"
            )
    terms = data["terms"]
    if not isinstance(terms, dict) or not terms or not all(isinstance(one, dict) for one in terms.values()):
        raise refuse(f"the terms of {shown}", "a dict of symbol to c and alpha", repr(terms)[:60], f"Write {_BY_HAND}.")
    values, labels, offsets = {}, {}, {}
    for name, one in terms.items():
        known = ("c", "alpha", "column", "offset")
        for key in one:
            if key not in known:
                hint = f"Leave it out.{did_you_mean(key, known)}"
                raise refuse(f"the term {name} of {shown}", f"of {', '.join(known)}", key, hint)
        for key in ("c", "alpha"):
            if key not in one:
                raise refuse(f"the term {name} of {shown}", "with c and alpha", f"no {key}", f"Write {_BY_HAND}.")
        values[f"c_{name}"] = _number(shown, f"c of {name}", one["c"])
        labels[name] = str(one.get("column", name))
        if "offset" in one:
            offsets[name] = _number(shown, f"the offset of {name}", one["offset"])
    values |= {f"alpha_{name}": _number(shown, f"alpha of {name}", one["alpha"]) for name, one in terms.items()}
    values["L0"] = _number(shown, "L0", data.get("L0", 0.0))
    law = Law("by hand", tuple(Term(name) for name in terms), None if values["L0"] else 0.0)
    return _checked(shown, SavedLaw(law, values, labels, offsets))


def _checked(shown: str, saved: SavedLaw) -> SavedLaw:
    for term in saved.law.terms:
        if saved.values[term.coefficient] <= 0:
            got = f"{saved.values[term.coefficient]:g}"
            raise refuse(f"{term.coefficient} of {shown}", "greater than 0", got, "A term adds to the loss.")
    if saved.values["L0"] < 0:
        raise refuse(f"L0 of {shown}", "0 or more", f"{saved.values['L0']:g}", "It is the loss that is left.")
    return saved


def _exponent(shown: str, value: Any) -> float | str | None:
    return value if value is None or isinstance(value, str) else _number(shown, "an exponent", value)


def _number(shown: str, name: str, value: Any) -> float:
    if not is_number(value) or not math.isfinite(value):
        raise refuse(f"{name} of {shown}", "a finite number", repr(value)[:60], "Correct it.")
    return float(value)
