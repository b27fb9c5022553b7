"""Small runs, written the way training writes them."""

import numpy as np
import pytest

from toydepth.runs import RunRecord, make_curves, write_curves

LABELS = {
    "experiment": "tied_mse",
    "teacher": "tied",
    "rho": None,
    "teacher_depth": 64,
    "recipe": "a1b2",
    "width": 8,
    "vocabulary": 0,
    "loss": "mse",
    "head": "none",
}
ARM = {
    "mlp_evaluations": 3,
    "temperature": None,
    "init": "zero",
    "block": "euler",
    "replicate": 0,
    "teacher_seed": 0,
    "average_decay": 0.998,
    "noise_floor": 1e-12,
    "diverged": False,
}


@pytest.fixture
def pieces():
    """Labels, two arms (depths 3 and 6) and three evaluations: the arguments of make_curves, free to be changed."""
    losses = np.array([[0.3, 0.2], [0.2, 0.1], [0.1, 0.05]], dtype=np.float32)
    series = {
        "step": np.array([0, 10, 20]),
        "samples": np.array([0, 2560, 5120]),
        "tau": np.array([0.0, 0.1, 0.2]),
        "learning_rate": np.full((3, 2), 0.01),
        **dict.fromkeys(("train_loss", "test_loss", "standard_error"), losses),
        **dict.fromkeys(("test_loss_average", "standard_error_average"), losses / 2),
    }
    arms = [{**ARM, "arm": 0, "depth": 3}, {**ARM, "arm": 1, "depth": 6, "mlp_evaluations": 6}]
    return dict(LABELS), arms, series


@pytest.fixture
def write_run(pieces):
    """Writes a run's folder: record, and curves unless told otherwise."""

    def write(folder, status="complete", config_hash="a1b2", curves=True, teacher_seed=0):
        labels, arms, series = pieces
        folder.mkdir(parents=True, exist_ok=True)
        RunRecord("tied_mse", {"seed": teacher_seed}, config_hash, status=status).write(folder)
        if curves:
            write_curves(folder, make_curves(labels, [{**arm, "teacher_seed": teacher_seed} for arm in arms], series))
        return folder

    return write
