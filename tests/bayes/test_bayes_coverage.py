"""Intervals against what is known from elsewhere: a published law, and the truth of simulated tables."""

import importlib.util

import numpy as np
import pytest

from toydepth.bayes import sample_law
from toydepth.fit.law import fit_law

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numpyro") is None, reason="numpyro is not installed: pip install 'toydepth[bayes]'"
)


def test_chinchilla_shapes(public):
    columns = {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}
    fit = fit_law(public("chinchilla_depthscaling.csv"), "decomposed", columns, exclude_highest=40)
    found = sample_law(fit)
    assert found.verdict is None and not found.prior_decides
    assert max(found.r_hat.values()) < 1.01
    assert found.intervals["alpha_ell"] == pytest.approx((0.93, 1.77), abs=0.08)


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say(make_table, quick, truth):
    """200 tables of 25 rows, one compiled program; every table counts, whatever its verdict."""
    hits, usable = [], 0
    for seed in range(200):
        found = sample_law(quick(make_table(seed, noise=0.01, shape=(5, 5)), num_starts=16), seed=seed)
        usable += found.verdict is None
        hits.append([low < truth[name] < high for name, (low, _, high) in found.quantiles.items() if name in truth])
    assert np.shape(hits) == (200, 5)
    print(f"nuts, 200 tables of 25 rows: {100 * np.mean(hits):.1f} % within the 95 % interval, {usable} usable")
    assert 0.92 < np.mean(hits) < 0.98
    assert usable > 150
