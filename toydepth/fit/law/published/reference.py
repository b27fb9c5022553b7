"""Published procedures, repeated on a table, beside the exact minimum of the objective they make small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from toydepth.errors import did_you_mean
from toydepth.fit.checks import plain, refuse
from toydepth.fit.law.published.chinchilla import repeat_chinchilla
from toydepth.fit.law.published.depth import repeat_depth
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.reading import as_table, read_table
from toydepth.fit.law.table.rows import Rows


@dataclass(frozen=True)
class Reference:
    """A published procedure on a table.

    Attributes:
        name: of the procedure. paper: its source. columns: symbol to column.
        numbers: all of the answer, ready for JSON. lines: the same for people.
    """

    name: str
    paper: str
    columns: dict[str, str]
    numbers: dict[str, Any]
    lines: tuple[str, ...]

    def report(self) -> str:
        """Returns the answer as text."""
        return "\n".join(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer for JSON."""
        head = {"schema": 1, "reference": self.name, "paper": self.paper, "columns": self.columns}
        return plain(head | self.numbers)


@dataclass(frozen=True)
class _Procedure:
    paper: str
    columns: dict[str, str]
    exclude_highest: int
    repeat: Callable[[Rows, dict[str, str]], tuple[dict[str, Any], list[str]]]


PROCEDURES = {
    "depth-paper": _Procedure(
        "arXiv 2602.05970", {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}, 40, repeat_depth
    ),
    "chinchilla-epoch": _Procedure("arXiv 2404.10102", {"N": "model_size", "D": "num_tokens"}, 5, repeat_chinchilla),
}


def run_reference(
    name: str,
    table: pd.DataFrame | Mapping[str, Any] | str | Path,
    columns: Mapping[str, str] | None = None,
    loss: str = "loss",
) -> Reference:
    """Repeats a published procedure, and finds the exact minimum of its objective.

    depth-paper: arXiv 2602.05970, width, depth and data by Adam (see `repeat_depth`). chinchilla-epoch: arXiv
    2404.10102, parameters and data by quasi-Newton methods from a grid (see `repeat_chinchilla`). Both were made for
    the digitised Chinchilla table, whose names of columns are the default; other tables can be given.

    Args:
        name: of the procedure.
        table: a file (csv, tsv, jsonl, parquet) or a table.
        columns: symbol to column, where it is not the default: m, ell, D of depth-paper; N, D of chinchilla-epoch.
        loss: its column.

    Returns:
        Reference: published, repeated and exact numbers, side by side; report(), to_dict().

    Raises:
        InputError: for an unknown name, a missing column, too few rows, or a table on which the procedure breaks.

    Example:
        >>> run_reference("depth-papers", pd.DataFrame({"loss": [1.0]}))
        Traceback (most recent call last):
            ...
        toydepth.errors.InputError: reference must be one of depth-paper, chinchilla-epoch, got depth-papers. Did you \
mean 'depth-paper'?

    Source: arXiv 2602.05970, arXiv 2404.10102.
    """
    if name not in PROCEDURES:
        hint = did_you_mean(str(name), PROCEDURES).strip() or "Give one of them."
        raise refuse("reference", f"one of {', '.join(PROCEDURES)}", name, hint)
    procedure = PROCEDURES[name]
    for symbol in columns or {}:
        if symbol not in procedure.columns:
            advice = f"Leave it out.{did_you_mean(str(symbol), procedure.columns)}"
            raise refuse(f"the columns of {name}", f"for {', '.join(procedure.columns)}", symbol, advice)
    named = procedure.columns | dict(columns or {})
    frame = read_table(table) if isinstance(table, str | Path) else as_table(table)
    rows = choose_rows(frame, named, loss, exclude_highest=procedure.exclude_highest, ties="below")
    numbers, lines = procedure.repeat(rows, named)
    head = [
        f"{name}: the procedure published with {procedure.paper}, repeated; beside the exact minimum of its objective"
    ]
    where = ", ".join(f"{symbol} = {column}" for symbol, column in named.items())
    head.append(f"  {where}; {rows.num_rows} used of {rows.total} rows")
    head += [f"  left out: {left.count}: {left.reason}" for left in rows.left_out]
    used = {"rows_used": rows.num_rows, "rows_total": rows.total, "left_out": [one.to_dict() for one in rows.left_out]}
    return Reference(name, procedure.paper, named, used | numbers, (*head, "", *lines))
