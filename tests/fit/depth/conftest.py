"""Curves with a known exponent, in the columns a run leaves behind."""

import numpy as np
import pandas as pd
import pytest

LABELS = {
    "experiment": "tied_mse",
    "teacher": "tied",
    "rho": np.nan,
    "init": "zero",
    "block": "euler",
    "loss": "mse",
    "temperature": np.nan,
    "head": "none",
    "width": 8,
    "teacher_depth": 64,
    "recipe": "a1b2",
}


@pytest.fixture
def make_curves():
    """Builds curves with L = (1 + seed) * depth^-alpha(step); alpha may be a number or a function of the step."""

    def make(
        alpha=2.0, depths=(3, 6, 12, 24), steps=(0, 10, 100, 1000), seeds=(0, 1), noise=0.0, average=None, **labels
    ):
        rng = np.random.default_rng(7)
        rows = []
        for seed in seeds:
            for depth in depths:
                for step in steps:
                    exponent = alpha(step) if callable(alpha) else alpha
                    loss = (1 + seed) * float(depth) ** -exponent * np.exp(noise * rng.normal())
                    rows.append(
                        {
                            **LABELS,
                            "teacher_seed": seed,
                            "replicate": seed,
                            "depth": depth,
                            "step": step,
                            "test_loss": loss,
                            "test_loss_average": np.nan if average is None else 0.9 * loss,
                            "average_decay": np.nan if average is None else average,
                            "noise_floor": 1e-12,
                            "diverged": False,
                            "learning_rate": 0.1,
                            **labels,
                        }
                    )
        return pd.DataFrame(rows)

    return make
