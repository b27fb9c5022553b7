"""Tables of a known law, their fits, and one posterior that several files look at."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from toydepth.bayes import Posterior, sample_law
from toydepth.fit.law import Law, LawFit, Term, fit_law

ONE_TERM = Law("one", (Term("x", 1.0),), 0.0)
TWO_TERMS = Law("two", (Term("m"), Term("D")))
TRUTH = {"c_m": 40.0, "c_D": 400.0, "alpha_m": 1.0, "alpha_D": 0.3, "L0": 1.7}


def losses(seed: int = 0, noise: float = 0.004, shape: tuple[int, int] = (6, 6)) -> pd.DataFrame:
    m, tokens = np.meshgrid(np.geomspace(32, 1024, shape[0]), np.geomspace(1e8, 1e11, shape[1]))
    table = pd.DataFrame({"m": m.ravel(), "D": tokens.ravel()})
    generator = np.random.default_rng(seed)
    table["loss"] = (40 / table.m + 400 / table.D**0.3 + 1.7) * np.exp(generator.normal(0, noise, len(table)))
    table["group"] = np.repeat(np.arange(shape[1]), shape[0])
    table["weight"] = generator.uniform(0.5, 2, len(table))
    return table


@pytest.fixture(scope="session")
def truth() -> dict[str, float]:
    """The parameters of the law of make_table."""
    return TRUTH


@pytest.fixture(scope="session")
def make_table() -> Callable[..., pd.DataFrame]:
    """make_table(seed, noise, shape): losses of a two-term law, on a grid that determines all of it."""
    return losses


@pytest.fixture(scope="session")
def quick() -> Callable[..., LawFit]:
    """quick(table, law, **options): a fit with the cheapest intervals, by default of the law of make_table."""

    def fit(table: pd.DataFrame, law: Law = TWO_TERMS, **options) -> LawFit:
        return fit_law(table, law, intervals="covariance", **options)

    return fit


@pytest.fixture(scope="session")
def one_term(quick) -> Callable[[float], LawFit]:
    """one_term(noise): a fit of c / x, whose only parameter is a mean of ln L + ln x; 8 rows."""

    def fit(noise: float) -> LawFit:
        x = np.geomspace(1, 100, 8)
        table = {"x": x, "loss": 3 / x * np.exp(np.random.default_rng(4).normal(0, noise, 8))}
        return quick(pd.DataFrame(table), ONE_TERM)

    return fit


@pytest.fixture(scope="module")
def well_known(quick_compilation) -> Posterior:
    """A posterior of a table that determines everything, with its fit's profile intervals."""
    return sample_law(fit_law(losses(), TWO_TERMS, intervals="profile"))
