"""Where a step goes, by kind of operation: `python -m benchmarks.operations paper_mse_one`.

XLA's own profile of some steps. Tracing adds about a microsecond an operation, so the shares of banks with small
operations are rough: the untraced time stands beside the sum.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import jax
from rich.console import Console
from rich.table import Table

from benchmarks.cases import CASES
from toydepth.bank import choose_layout, make_bank
from toydepth.bank.flops import step_flops

# Of the names that XLA gives to operations; the first kind that a part of a name belongs to counts.
_KINDS = {
    "native layers": ("ffi_call", "toydepth_"),
    "waiting for other devices": ("psum", "all-reduce", "pmean"),
    "matrix products": ("ynn_fusion", "dot", "gemm", "cublas", "triton_gemm"),
    "slices and updates of stacks": ("dynamic-update-slice", "dynamic-slice"),
    "copies and transposes": ("copy", "transpose", "concatenate", "wrapped_broadcast"),
}
_REST = "elementwise work and sums"
_HOLDS_OTHERS = ("while", "call", "conditional")


def kind_of(operation: str) -> str | None:
    """Returns the kind of an operation by its name; None for one that only holds others.

    Example:
        >>> kind_of("ynn_fusion.3"), kind_of("maximum_multiply_fusion"), kind_of("ffi_call.2"), kind_of("while.7")
        ('matrix products', 'elementwise work and sums', 'native layers', None)
    """
    if operation.split(".")[0] in _HOLDS_OTHERS:
        return None
    return next((kind for kind, words in _KINDS.items() if any(word in operation for word in words)), _REST)


def profile_step(case: str) -> tuple[float, dict[str, float]]:
    """Returns the untraced seconds of a step of a case, and the traced seconds a device of each kind of operation."""
    config, steps = CASES[case].config(), CASES[case].steps
    layout = choose_layout(config)
    bank = make_bank(config, layout)
    state = jax.block_until_ready(bank.advance(bank.state, 2))
    begun = time.perf_counter()
    state = jax.block_until_ready(bank.advance(state, 2 + steps))
    seconds = (time.perf_counter() - begun) / steps
    found: dict[str, float] = defaultdict(float)
    # Operations only: calls of Python are many, slow to trace, and not asked for.
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            jax.block_until_ready(bank.advance(state, 2 + 2 * steps))
        data = jax.profiler.ProfileData.from_file(str(next(Path(folder).rglob("*.xplane.pb"))))
    lines = (line for plane in data.planes for line in plane.lines if line.name != "python")
    for event in (event for line in lines for event in line.events):
        if "hlo_op" in dict(event.stats) and (kind := kind_of(event.name)):
            found[kind] += event.duration_ns * 1e-9 / steps / layout.count
    return seconds, dict(found)


def main() -> int:
    """Prints the table of one case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description=__doc__)
    parser.add_argument("case", choices=CASES)
    case = parser.parse_args().case
    seconds, found = profile_step(case)
    table = Table(box=None, header_style="bold")
    for heading in ("kind of operation", "ms a step", "share"):
        table.add_column(heading, justify="left" if heading.startswith("kind") else "right")
    total = sum(found.values())
    for kind, value in sorted(found.items(), key=lambda item: -item[1]):
        table.add_row(kind, f"{value * 1e3:.2f}", f"{value / total:.0%}")
    console = Console()
    console.print(table)
    rate = f"{step_flops(CASES[case].config()) / seconds / 1e9:.0f} GFLOP/s of needed work"
    console.print(f"sum {total * 1e3:.2f} ms, traced; untraced {seconds * 1e3:.2f} ms: {rate}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
