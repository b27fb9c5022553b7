"""Profiles: ends that are where the fit gets too bad, whatever valley a search begins in."""

import numpy as np
import pandas as pd
import pytest

from toydepth.fit.law import fit_law
from toydepth.fit.law.profile import hold_from_all, profile_curve

ALL = {"m": "m", "ell": "ell", "D": "D"}


def flat_law(seed, rows=60):
    """A law whose width term hardly falls, so that L0 can take its place: valleys side by side."""
    generator = np.random.default_rng(seed)
    m, ell = 2 ** generator.uniform(6, 12, rows), 2 ** generator.uniform(1, 6, rows)
    data = 10 ** generator.uniform(8, 12, rows)
    loss = (1.1 / m**0.05 + 4 / ell + 400 / data**0.3 + 1.7) * np.exp(0.005 * generator.normal(size=rows))
    return pd.DataFrame({"m": m, "ell": ell, "D": data, "loss": loss})


@pytest.mark.parametrize("seed", range(4))
def test_the_truth_is_held_from_some_valley_and_the_starts_do_not_matter(seed):
    table = flat_law(seed)
    ends = []
    for starts in (16, 64):
        fit = fit_law(table, "decomposed", ALL, num_starts=starts)
        index = fit.law.parameters.index("c_m")
        free = fit.estimate.natural[index]
        chi2 = hold_from_all(fit.estimate, np.array([index, index]), np.array([np.log(1.1), free]))[1]
        # As good as the minimum where the minimum is; at the truth no worse than 4 standard errors.
        assert chi2[1] < 1e-3 and chi2[0] < 16
        low, high = fit.intervals["profile"]["alpha_ell"]
        assert low < 1 < high
        ends.append([low, high])
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)


def test_a_profile_has_no_spikes():
    fit = fit_law(flat_law(0), "decomposed", ALL, intervals="covariance")
    index = fit.law.parameters.index("alpha_ell")
    error = np.sqrt(fit.estimate.covariance[index, index])
    values = fit.values["alpha_ell"] + error * np.linspace(-3, 3, 25)
    curve = profile_curve(fit.estimate, "alpha_ell", values)
    assert (np.diff(curve[:13]) < 1e-3).all() and (np.diff(curve[12:]) > -1e-3).all()


def test_without_noise_what_plays_no_part_is_not_identified():
    table = flat_law(0).assign(loss=lambda t: 4 / t.ell + 1.7)
    fit = fit_law(table, "decomposed", ALL)
    assert {"c_m", "c_D", "alpha_m", "alpha_D"} <= set(fit.unidentified)
    assert fit.values["c_ell"] == pytest.approx(4, rel=1e-6) and fit.values["alpha_ell"] == pytest.approx(1, rel=1e-6)
    assert any("to rounding" in caveat for caveat in fit.caveats)
