"""Tables of a known law: its loss at the points of a design, with noise; what fits are tested on."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from toydepth.errors import did_you_mean
from toydepth.fit.checks import check_count, is_number, number_name, refuse
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.saved import SavedLaw, as_saved
from toydepth.fit.law.table.cells import NUMBER, check_has_column, column_of, name_some, read_numbers, show_cell
from toydepth.fit.law.table.reading import as_table

KINDS = ("log", "linear", "student")


def simulate_law(
    law: SavedLaw | LawFit,
    design: pd.DataFrame | Mapping[str, Any],
    *,
    noise: float,
    seed: int = 0,
    loss: str = "loss",
    columns: Mapping[str, str] | None = None,
    kind: str = "log",
    nu: float = 4.0,
) -> pd.DataFrame:
    """Draws the losses of a law at the points of a design: L = sum_k c_k / (x_k - offset_k)^alpha_k + L0, and noise.

    Args:
        law: with numbers: a fit, or what `load_law` returns.
        design: a table, one point a row, with a column for each variable of the law. A fit's own table will do.
        noise: standard deviation of the noise (of student, its scale: the standard deviation is sqrt(nu / (nu - 2))
            times it); 0 gives the law itself.
        seed: of the noise.
        loss: name of the new column.
        columns: symbol to column of the design; default: the column named as the symbol, or else the law's own.
        kind: log, noise added to ln L, normal; linear, added to L, normal; student, added to ln L, Student's t.
        nu: degrees of freedom of student.

    Returns:
        The design with the loss as its last column; its index stays.

    Raises:
        InputError: for a missing column, a point that is no number or not above its offset, a loss that is not
            positive.

    Example:
        >>> from toydepth.fit.law import Law, Term
        >>> law = SavedLaw(Law("one", (Term("m"),)), {"c_m": 40.0, "alpha_m": 1.0, "L0": 1.7}, {"m": "width"}, {})
        >>> simulate_law(law, {"width": [10, 20, 40]}, noise=0.0)["loss"].tolist()
        [5.7, 3.7, 2.7]

    Source: docs/notation.md, "Scaling laws".
    """
    saved = as_saved(law)
    check_count("seed", seed, 0)
    for name, value, least in (("noise", noise, 0.0), ("nu", nu, None)):
        good = is_number(value) and math.isfinite(value) and (value >= 0 if least is not None else value > 0)
        if not good:
            wanted = "a finite number, 0 or more" if least is not None else "a finite number above 0"
            raise refuse(
                name, wanted, reprlib.repr(value), "0.005 is usual of ln L." if least is not None else "Give 4."
            )
    if kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS).strip() or "Give one of them."
        raise refuse("kind", f"one of {', '.join(KINDS)}", reprlib.repr(kind), hint)
    table = as_table(design)
    if loss in table.columns:
        raise refuse(
            "loss", "a name that no column of the design has", repr(loss), "Give another, or drop that column."
        )
    with np.errstate(over="ignore", under="ignore"):
        exact = saved.loss(_points(saved, table, columns or {}))
    _check_rows(table, exact, np.isfinite(exact) & (exact > 0), "points where the law is positive and finite")
    generator = np.random.default_rng(seed)
    draws = generator.standard_t(nu, len(table)) if kind == "student" else generator.standard_normal(len(table))
    with np.errstate(over="ignore", under="ignore"):
        noisy = exact + noise * draws if kind == "linear" else exact * np.exp(noise * draws)
    _check_rows(
        table, noisy, np.isfinite(noisy) & (noisy > 0), "points where noise leaves the loss positive and finite"
    )
    done = pd.DataFrame(design).copy()
    done[loss] = noisy
    return done


def _points(saved: SavedLaw, table: pd.DataFrame, columns: Mapping[str, str]) -> dict[str, np.ndarray]:
    """The variables, offsets not yet taken off; raises InputError for a column or row that will not do."""
    for name in columns:
        if name not in saved.law.variables:
            known = saved.law.variables
            raise refuse(
                "columns", f"for {', '.join(known)}", repr(name), f"Leave it out.{did_you_mean(str(name), known)}"
            )
    points = {}
    for name in saved.law.variables:
        label = columns.get(name, name if name in table.columns else saved.labels.get(name, name))
        check_has_column(table, f"the design's column for {name}", label)
        values, kinds = read_numbers(column_of(table, label))
        offset = saved.offsets.get(name, 0.0)
        bad = np.flatnonzero((kinds != NUMBER) | ~np.isfinite(values))
        if bad.size:
            cells = [f"{show_cell(column_of(table, label).iloc[int(i)])} in row {table.index[i]}" for i in bad]
            raise refuse(f"{label} of the design", "a finite number in every row", name_some(cells, 3), "Correct it.")
        above = f"greater than the offset {number_name(offset)}" if offset else "greater than 0"
        _check_rows(table, values, values > offset, f"{above}", f"{label} of the design")
        points[name] = values
    return points


def _check_rows(table: pd.DataFrame, values: np.ndarray, good: np.ndarray, wanted: str, of: str = "the design") -> None:
    bad = np.flatnonzero(~good)
    if bad.size:
        cells = [f"{values[i]:g} in row {table.index[i]}" for i in bad]
        raise refuse(of, wanted, name_some(cells, 3), "Correct or remove these rows.")
