"""What Gaussian fields give: `python -m benchmarks.transport_calibration [SEEDS]`; half a minute.

D and z of N0 over two windows of sizes, for m_BA 1, 2, 3, 5, with standard errors of independent replicates; s / N.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd

from toydepth.transport import ProbeSettings, fit_exponents, measure_field

WINDOWS = {"81 ... 2001": (81, 201, 501, 1001, 2001), "200 ... 50000": (200, 1000, 5000, 20_000, 50_000)}


def main() -> int:
    """Prints a row an m_BA and window."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="?", default=20, help="graphs and fields of each size")
    seeds = parser.parse_args().seeds
    print(f"{'m_BA':>4} {'N':>14} {'D':>16} {'z':>16} {'s / N':>8} {'closure':>9}")
    for m in (1, 2, 3, 5):
        settings = ProbeSettings(m_BA=m, seeds=tuple(range(seeds)))
        for name, sizes in WINDOWS.items():
            table = pd.concat([measure_field(np.arange(1.0, n + 1), settings, kinds=("N0",)) for n in sizes])
            columns = [table[column].to_numpy() for column in ("num_nodes", "size", "duration")]
            fit = fit_exponents(*columns, replicates="independent")
            values = [f"{one.slope:.3f} +- {one.standard_error:.3f}" for one in (fit.D, fit.z)]
            share = float((table["size"] / table["num_nodes"]).mean())
            print(
                f"{m:4d} {name:>14} {values[0]:>16} {values[1]:>16} {share:8.3f} {fit.closure_error:9.1e}", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
