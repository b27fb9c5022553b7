"""Curves like those of real runs, with exponents that are known."""

import numpy as np
import pandas as pd
import pytest

DEPTHS = (3, 4, 6, 8, 12, 16)
STEPS = (0, *np.unique(np.geomspace(10, 20000, 40).round().astype(int)).tolist())
GROUPS = {
    "tied_zero": {"teacher": "tied", "init": "zero", "alpha": (0.4, 2.0)},
    "tied_euler": {"teacher": "tied", "init": "euler", "alpha": (2.0, 2.8)},
    "independent_zero": {"teacher": "independent", "init": "zero", "alpha": (0.4, 1.07)},
}


def synthetic_curves(
    experiment="demo", alpha=(0.4, 2.0), depths=DEPTHS, steps=STEPS, replicates=3, noise=0.05, average=0.998,
    noise_floor=1e-12, seed=0, scale=1e-3, **labels,
):  # fmt: skip
    """Curves with L = scale (1 + r) (2000 / (step + 20))^.5 (ell / 3)^-alpha(step), alpha linear in ln step."""
    rng = np.random.default_rng(seed)
    kind = {
        "teacher": "tied", "rho": np.nan, "init": "zero", "loss": "mse", "temperature": np.nan, "block": "euler",
        "head": "none", "width": 8, "teacher_depth": 64, "recipe": "a1b2", "vocabulary": 0,
    }  # fmt: skip
    rows = []
    end = np.log(max(*steps, 10) / 10)
    for replicate in range(replicates):
        tilt = 0.05 * rng.normal()
        for depth in depths:
            for step in steps:
                done = np.log(max(step, 10) / 10) / end if end else 1.0
                exponent = alpha[0] + (alpha[1] - alpha[0]) * done + tilt
                # Early losses scatter more, so that early intervals are wide as they are in real runs.
                scatter = noise * (1 + 3 * (1 - done) ** 4)
                loss = scale * (1 + replicate) * (2000 / (step + 20)) ** 0.5 * (depth / 3) ** -exponent
                average_loss = loss * np.exp(scatter * rng.normal())
                raw_loss = loss * np.exp(4 * scatter * rng.normal())
                rows.append(
                    {
                        "run": experiment, "experiment": experiment, **kind, **labels, "teacher_seed": replicate,
                        "replicate": replicate, "arm": len(rows), "depth": depth, "mlp_evaluations": depth,
                        "step": step, "samples": 256 * step, "tau": 0.01 * step, "learning_rate": 0.01,
                        "train_loss": raw_loss, "test_loss": raw_loss, "standard_error": 0.01 * loss,
                        "test_loss_average": average_loss if average else np.nan,
                        "standard_error_average": 0.01 * loss if average else np.nan,
                        "average_decay": average or np.nan, "noise_floor": noise_floor, "diverged": False,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def diverge_arm(curves, depth, replicate, after):
    """Returns curves in which one arm grows after a step, then has no loss, and is marked as diverged."""
    curves = curves.copy()
    arm = curves["depth"].eq(depth) & curves["replicate"].eq(replicate)
    late = arm & curves["step"].gt(after)
    for name in ("test_loss", "test_loss_average"):
        curves.loc[late, name] *= 1e3
        curves.loc[late & curves["step"].gt(3 * after), name] = np.nan
    curves["diverged"] = curves["diverged"] | late
    return curves


@pytest.fixture
def make_curves():
    """Builds one group; see `synthetic_curves`."""
    return synthetic_curves


@pytest.fixture
def diverge():
    """Lets one arm diverge; see `diverge_arm`."""
    return diverge_arm


@pytest.fixture
def three_groups():
    """Tied from zero (.4 to 2), tied from Euler (2 to 2.8), independent from zero (.4 to 1.07)."""
    return pd.concat(
        [synthetic_curves(name, seed=i, **labels) for i, (name, labels) in enumerate(GROUPS.items())],
        ignore_index=True,
    )


@pytest.fixture
def two_temperatures():
    """kl with T = 1 (.8 to 1.95) and T = 0.1 (.6 to 1.16)."""
    ends = {1.0: (0.8, 1.95), 0.1: (0.6, 1.16)}
    parts = [
        synthetic_curves("kl", alpha=alpha, temperature=T, loss="kl", head="teacher", vocabulary=32, scale=1e-3 / T)
        for T, alpha in ends.items()
    ]
    return pd.concat(parts, ignore_index=True)
