"""From repetitions to rows, and the table of them."""

from __future__ import annotations

from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cases import CASES
from benchmarks.hardware import sheet_flops
from toydepth.bank.flops import sets_of_students, step_flops


def make_row(
    name: str, kind: str, case: str, seconds: list[float], told: dict[str, Any], peak: float
) -> dict[str, Any]:
    """Returns a row: seconds a step (median; spread: half the range of the middle half), rates, memory, device."""
    ordered = sorted(seconds)
    quarter = len(ordered) // 4
    row: dict[str, Any] = {
        "name": name,
        "seconds_median": median(seconds),
        "seconds_spread": (ordered[-1 - quarter] - ordered[quarter]) / 2,
        "repetitions": len(seconds),
    }
    if kind in ("bank", "plain", "torch"):
        config = CASES[case].config()
        flops = step_flops(config)
        sets = sets_of_students(config)
        if kind != "bank":  # one set of students a step: the rest of the bank would follow one after another
            row["seconds_per_set"] = row["seconds_median"]
            # The teacher's share is what a student at a time pays for each of them; only what is needed counts.
            row["gflops"] = flops / sets / row["seconds_median"] / 1e9
        else:
            row["seconds_per_set"] = row["seconds_median"] / sets
            row["gflops"] = flops / row["seconds_median"] / 1e9
        row["fraction_of_peak"] = row["gflops"] * 1e9 / peak
        if kind != "torch" and (sheet := sheet_flops(told["device"])):
            row["model_flop_utilisation"] = row["gflops"] * 1e9 / (sheet * told["device_count"])
    return row | {key: told[key] for key in ("peak_memory_bytes", "device", "layout", "setup_seconds") if key in told}


def add_ratios(rows: list[dict[str, Any]]) -> None:
    """Gives each bank its ratio to the rows of the same case: seconds a set of students there / here."""
    by_name = {row["name"]: row for row in rows}
    for name, row in by_name.items():
        kind, _, case = name.partition(" ")
        for other, key in (("torch", "ratio_to_baseline"), ("plain", "ratio_to_plain")):
            theirs = by_name.get(f"{other} {case}") or by_name.get(f"{other} {case}_one")
            if kind == "bank" and theirs:
                row[key] = theirs["seconds_per_set"] / row["seconds_per_set"]


_COLUMNS = (
    ("ms", "seconds_median", 1e3),
    ("+-", "seconds_spread", 1e3),
    ("ms a set", "seconds_per_set", 1e3),
    ("GFLOP/s", "gflops", 1.0),
    ("% of peak", "fraction_of_peak", 100.0),
    ("% MFU", "model_flop_utilisation", 100.0),
    ("x torch", "ratio_to_baseline", 1.0),
    ("x plain", "ratio_to_plain", 1.0),
    ("MB", "peak_memory_bytes", 1e-6),
)


def print_rows(rows: list[dict[str, Any]], console: Console) -> None:
    """Prints the rows as a table, of the columns that any of them fills."""
    if not console.is_terminal:
        console.width = max(console.width, 100)
    table = Table(box=None, header_style="bold")
    table.add_column("row", no_wrap=True)
    columns = [column for column in _COLUMNS if any(column[1] in row for row in rows)]
    for heading, _, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["name"], *(_number(row.get(key), factor) for _, key, factor in columns))
    console.print(table)
    devices: dict[str, list[str]] = {}
    for row in rows:
        if "device" in row:
            devices.setdefault(row["device"], []).append(row["name"].partition(" ")[0])
    for device, kinds in devices.items():
        console.print(f"{', '.join(dict.fromkeys(kinds))}: {device}", highlight=False)


def _number(value: float | None, factor: float = 1.0) -> str:
    return "" if value is None else f"{value * factor:.3g}" if abs(value * factor) < 1000 else f"{value * factor:.0f}"
