"""Tables of a known law, and the public tables where they are."""

import numpy as np
import pandas as pd
import pytest

CHINCHILLA = {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}


@pytest.fixture(scope="session")
def chinchilla(public):
    """The digitised Chinchilla table, or a skip."""
    return public("chinchilla_depthscaling.csv")


@pytest.fixture
def make_table():
    """make_table(values, noise, seed, shape): rows on a grid of m, ell and D that tells the terms apart."""

    def make(values=None, noise=0.005, seed=0, shape=(6, 5, 6)):
        known = {"c_m": 40.0, "c_ell": 2.0, "c_D": 400.0, "alpha_m": 1.0, "alpha_ell": 1.2, "alpha_D": 0.3, "L0": 1.7}
        known |= values or {}
        axes = (
            2.0 ** np.linspace(6, 12, shape[0]),
            2.0 ** np.linspace(1, 6, shape[1]),
            np.geomspace(1e8, 1e12, shape[2]),
        )
        m, ell, data = (axis.ravel() for axis in np.meshgrid(*axes))
        loss = sum(
            known[f"c_{name}"] / x ** known[f"alpha_{name}"] for name, x in (("m", m), ("ell", ell), ("D", data))
        )
        loss = (loss + known["L0"]) * np.exp(noise * np.random.default_rng(seed).normal(size=m.size))
        return pd.DataFrame({"m": m, "ell": ell, "D": data, "loss": loss})

    return make
