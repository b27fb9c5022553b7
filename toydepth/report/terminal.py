"""Tables of depth exponents for the terminal, or for a file in plain text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toydepth.errors import InputError, did_you_mean
from toydepth.fit import DepthExponent, FitTable
from toydepth.report.series import group_key
from toydepth.report.words import interval, number

_WIDTH = 100
_WEIGHTS = ("average", "raw")
_VERDICT_COLOURS = {"still moving": "yellow", "settled": "green"}
# Columns from left to right, in each the fields from top to bottom. The first layout that is narrow enough is taken.
_LAYOUTS = (
    "experiment; teacher; init; weights; alpha early; alpha at end; replicates; depths; verdict; per doubling; notes",
    "experiment; teacher; init, weights; alpha early; alpha at end; depths x replicates; verdict; per doubling; notes",
    "experiment; teacher, init, weights; alpha early; alpha at end; depths x replicates; verdict, per doubling; notes",
    "experiment, teacher, init, weights; alpha early, alpha at end; depths x replicates; verdict, per doubling; notes",
)
_HEADINGS = {
    "replicates": "repli-\ncates",
    "depths x replicates": "depths x\nrepli-\ncates",
    "per doubling": "per\ndoub-\nling",
    "verdict, per doubling": "verdict,\nper\ndoubling",
}
# Fields that may be folded, but not below this width: no name of 12 letters is broken.
_FOLDED = {"experiment": 12, "notes": 5}


def exponent_table(table: FitTable, weights: str = "average", width: int = _WIDTH) -> Table:
    """Lays the last exponent of every group out in a table, with the one at 5 % of the steps beside it.

    A row a group: experiment, teacher, init (with block, rho, temperature where they matter), weights, alpha early and
    at the end with intervals and steps, replicates, depths, verdict, change of alpha per doubling of the steps, notes:
    numbers of the caveats that `print_table` prints. Where that is too wide, fields share a column, and long names and
    many notes are folded; none is cut. At the narrowest (about 50 columns) the table may be wider than the console:
    print it with crop=False.

    Args: table, of `toydepth.fit.fit_curves`; weights, 'average' or 'raw': where a group has none, the other; width,
        of the console.
    Raises: InputError for other weights.
    """
    pairs = _choose(table, weights)
    rows = [last for last, _ in pairs]
    notes = _number_caveats(rows)
    cells = [_cells(last, early, rows, notes) for last, early in pairs]
    layouts = [[name for name in layout.split("; ") if notes or name != "notes"] for layout in _LAYOUTS]
    fitting = (layout for layout in layouts if _total(_widths(layout, cells, _FOLDED)) <= width)
    layout = next(fitting, layouts[-1])
    widths = _widths(layout, cells, _FOLDED)
    for i, unfolded in enumerate(_widths(layout, cells, {})):
        widths[i] = max(widths[i], min(unfolded, widths[i] + width - _total(widths)))

    # One space between columns, and left-aligned throughout, so that neighbouring numbers stay apart. Rows of many
    # lines are set apart by a blank one.
    high = any(name.count(", ") > 1 for name in layout)
    result = Table(box=SIMPLE_HEAD, padding=0, show_edge=False, leading=int(high), width=_total(widths))
    for name, space in zip(layout, widths, strict=True):
        result.add_column(_heading(name), width=space, overflow="fold")
    for row in cells:
        row["experiment"] = Text(_fold(row["experiment"].plain, widths[0]))
        result.add_row(*(Text("\n").join(row[field] for field in name.split(", ")) for name in layout))
    return result


def print_table(table: FitTable, console: Console, weights: str = "average") -> None:
    """Prints `exponent_table`, then the caveats by number, then what could not be fitted and why.

    Where the output is no terminal it has no width of its own: it is then given 100 columns. On a terminal of very few
    columns the table is wider than it, never cut.

    Args: as in `exponent_table`; console, of rich.
    """
    width = console.width
    if not console.is_terminal and width < _WIDTH:
        console.width = _WIDTH
    try:
        rows = [last for last, _ in _choose(table, weights)]
        if rows:
            console.print(exponent_table(table, weights, console.width), crop=False)
        else:
            console.print("No depth exponent could be fitted.")
        caveats = _number_caveats(rows)
        if caveats:
            console.print()
        for caveat, index in caveats.items():
            _print_hanging(console, f"({index})", caveat)
        refusals = _refusals(table)
        if refusals:
            console.print("\nNot fitted:")
        for text in refusals:
            _print_hanging(console, " - ", text)
    finally:
        console.width = width


def _choose(table: FitTable, weights: str) -> list[tuple[DepthExponent, DepthExponent]]:
    """Returns (last, early) rows of the weights asked for, and of the others where a group has none."""
    if weights not in _WEIGHTS:
        hint = did_you_mean(str(weights), _WEIGHTS)
        raise InputError(f"weights must be 'average' or 'raw', got {weights!r}. Give one of them.{hint}")
    pairs = list(zip(table.last, table.early(), strict=True))
    having = {group_key(last) for last, _ in pairs if last.weights == weights}
    # The fits come one kind of weights after the other; the table keeps the order of the groups.
    order = list(dict.fromkeys(group_key(last) for last, _ in pairs))
    chosen = [pair for pair in pairs if pair[0].weights == weights or group_key(pair[0]) not in having]
    return sorted(chosen, key=lambda pair: order.index(group_key(pair[0])))


def _number_caveats(rows: Iterable[DepthExponent]) -> dict[str, int]:
    caveats = dict.fromkeys(caveat for row in rows for caveat in row.caveats)
    return {caveat: i for i, caveat in enumerate(caveats, start=1)}


def _cells(
    last: DepthExponent, early: DepthExponent, rows: list[DepthExponent], notes: dict[str, int]
) -> dict[str, Text]:
    """Returns the fields that `_LAYOUTS` names, of one row of the table."""
    depths = f"{min(last.depths):g} to {max(last.depths):g}\n({len(last.depths)})"
    texts = {
        "experiment": last.experiment,
        "teacher": _teacher(last),
        "init": _init(last, rows),
        "weights": _weights(last),
        "alpha early": _alpha(early) if early is not last and early.step < last.step else "-",
        "alpha at end": _alpha(last),
        "replicates": str(last.replicates),
        "depths": depths,
        "depths x replicates": f"{depths} x {last.replicates}",
        "per doubling": _signed(last.drift.change_per_doubling),
        "notes": ", ".join(str(notes[caveat]) for caveat in dict.fromkeys(last.caveats)),
    }
    verdict = Text(last.verdict.replace(" ", "\n"), style=_VERDICT_COLOURS.get(last.verdict, ""))
    return {**{name: Text(text) for name, text in texts.items()}, "verdict": verdict}


def _heading(name: str) -> str:
    return _HEADINGS.get(name, name.replace(", ", ",\n"))


def _widths(layout: list[str], cells: list[dict[str, Text]], folded: dict[str, int]) -> list[int]:
    """Returns the width of every column, for the heading and the fields; those in folded need no more than it says."""
    widths = []
    for name in layout:
        needs = [min(_longest(row[f].plain), folded.get(f, sys.maxsize)) for f in name.split(", ") for row in cells]
        widths.append(max(_longest(_heading(name)), *needs, 0))
    return widths


def _total(widths: list[int]) -> int:
    return sum(widths) + len(widths) - 1


def _longest(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _fold(name: str, width: int) -> str:
    """Breaks a name that is too long after `_` or `-` where it can; rich breaks the parts that are still too long."""
    lines = [""]
    for part in re.findall("[^_-]+[_-]*|[_-]+", name):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _teacher(row: DepthExponent) -> str:
    return f"{row.teacher}\nrho {row.rho:g}" if row.teacher == "correlated" else row.teacher


def _init(row: DepthExponent, rows: list[DepthExponent]) -> str:
    parts = [row.init]
    if row.block != "euler":
        parts.append(f"{row.block} block")
    if row.temperature == row.temperature and (row.temperature != 1 or len({r.temperature for r in rows}) > 1):
        parts.append(f"T {row.temperature:g}")
    return "\n".join(parts)


def _weights(row: DepthExponent) -> str:
    return f"average\n{row.average_decay:g}" if row.weights == "average" else row.weights


def _alpha(row: DepthExponent) -> str:
    """Writes `2.75 @ 20000` over its interval: a line break between numbers, never within one."""
    if row.alpha != row.alpha:
        return f"not\nidentified\n@ {row.step}"
    return f"{number(row.alpha)} @ {row.step}\n{interval(row)}"


def _signed(value: float | None) -> str:
    text = number(value)
    return text if text.startswith(("-", "?")) or value is None else f"+{text}"


def _refusals(table: FitTable) -> list[str]:
    """Returns a sentence a group and weights: how many steps, and the reason at the last of them."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for refusal in table.refused:
        groups.setdefault((refusal["group"], refusal["weights"]), []).append(refusal)
    texts = []
    for (name, _), refusals in groups.items():
        steps = [refusal["step"] for refusal in refusals if refusal["step"] is not None]
        where = f"{len(steps)} steps ({steps[0]} to {steps[-1]}), the last:" if len(steps) > 1 else ""
        # The reason ends in the group's name already, which is long.
        start = "" if name in refusals[-1]["reason"] else f"{name}:"
        texts.append(" ".join(part for part in (start, where, refusals[-1]["reason"]) if part))
    return texts


def _print_hanging(console: Console, mark: str, text: str) -> None:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(mark, Text(text))
    console.print(grid)
