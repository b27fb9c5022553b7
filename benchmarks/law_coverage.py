"""How often 95 % intervals of a law hold the truth, on simulated tables: `python -m benchmarks.law_coverage [TABLES]`.

Truth: 40 / m + 2 / ell^1.2 + 400 / D^0.3 + 1.7 on a grid of m 64 ... 4096, ell 2 ... 64, D 1e8 ... 1e12; every
parameter is identified. Nominal is 95 %; within 92 ... 98 % counts as kept.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd

from toydepth.fit.law import Objective, fit_law

TRUTH = {"c_m": 40.0, "c_ell": 2.0, "c_D": 400.0, "alpha_m": 1.0, "alpha_ell": 1.2, "alpha_D": 0.3, "L0": 1.7}
METHODS = ("covariance", "profile", "bootstrap")


@dataclass(frozen=True)
class Case:
    """A kind of table: the grid's points a variable, the noise of ln L (normal, or t of 3 degrees), the objective."""

    name: str
    shape: tuple[int, int, int] = (6, 5, 6)
    objective: Objective = Objective()  # noqa: RUF009 (frozen)
    heavy: bool = False
    grouped: bool = False
    noise: float = 0.005


CASES = (
    Case("64 rows", shape=(4, 4, 4)),
    Case("180 rows"),
    Case("180 rows, objective linear", objective=Objective("linear")),
    Case("180 rows, heavy tails, student", objective=Objective("student"), heavy=True),
    Case("180 rows, huber 1e-3", objective=Objective("huber", 1e-3)),
    Case("64 models of 4 checkpoints, groups", shape=(8, 8, 4), grouped=True),
)


def simulate(case: Case, seed: int) -> pd.DataFrame:
    """Returns a table of the case: columns m, ell, D, loss, model."""
    generator = np.random.default_rng(seed)
    axes = (
        2.0 ** np.linspace(6, 12, case.shape[0]),
        2.0 ** np.linspace(1, 6, case.shape[1]),
        np.geomspace(1e8, 1e12, case.shape[2]),
    )
    m, ell, data = (axis.ravel() for axis in np.meshgrid(*axes))
    noise = generator.standard_t(3, size=m.size) if case.heavy else generator.normal(size=m.size)
    table = pd.DataFrame({"m": m, "ell": ell, "D": data})
    table["model"] = table.groupby(["m", "ell"]).ngroup()
    log_noise = case.noise * noise
    if case.grouped:  # what the checkpoints of one model have in common is twice the rest
        log_noise = log_noise + 2 * case.noise * generator.normal(size=table["model"].max() + 1)[table["model"]]
    table["loss"] = (40 / m + 2 / ell**1.2 + 400 / data**0.3 + 1.7) * np.exp(log_noise)
    return table


def coverage(case: Case, tables: int, num_bootstrap: int = 400) -> pd.DataFrame:
    """Returns the share of tables whose interval holds the truth: a row a method, a column a parameter, and `all`."""
    hits = pd.DataFrame(0.0, index=list(METHODS), columns=list(TRUTH))
    for seed in range(tables):
        fit = fit_law(
            simulate(case, seed),
            "decomposed",
            {"m": "m", "ell": "ell", "D": "D"},
            objective=case.objective,
            groups="model" if case.grouped else None,
            intervals="all",
            num_bootstrap=num_bootstrap,
            num_starts=4,
            seed=seed,
        )
        for method in METHODS:
            for name, truth in TRUTH.items():
                low, high = fit.intervals[method][name] or (None, None)
                hits.loc[method, name] += (low is None or low <= truth) and (high is None or truth <= high)
    shares = hits / tables
    return shares.assign(all=shares.mean(axis=1))


def main() -> int:
    """Prints a table a case; returns 1 where a pooled coverage is outside 92 ... 98 %."""
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    wrong = 0
    for case in CASES:
        shares = coverage(case, tables)
        print(f"{case.name} ({tables} tables), per cent within the 95 % interval")
        print((100 * shares).round(1).to_string(), flush=True)
        wrong += int(((shares["all"] < 0.92) | (shares["all"] > 0.98)).sum())
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
