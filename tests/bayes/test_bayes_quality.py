"""What draws are worth: chains whose r_hat and effective size are known, and parameters that the prior decides."""

import importlib.util
import re

import numpy as np
import pytest

from toydepth.bayes import sample_law
from toydepth.bayes.quality import measure_quality
from toydepth.fit.law import Law, Term

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("numpyro") is None, reason="numpyro is not installed: pip install 'toydepth[bayes]'"
    ),
    # Compiling NUTS is nearly all of the time.
    pytest.mark.usefixtures("quick_compilation"),
]


def test_r_hat_and_effective_size_of_known_chains():
    generator = np.random.default_rng(0)
    independent = generator.normal(size=(4, 2000))
    r_hat, size = measure_quality(independent)
    assert r_hat < 1.005 and 6000 < size < 9500
    assert measure_quality(independent + np.array([[0], [0], [0], [0.5]]))[0] > 1.01
    assert measure_quality(independent * np.array([[1], [1], [1], [2]]))[0] > 1.01
    correlated = np.zeros((4, 4000))
    for i in range(1, 4000):
        correlated[:, i] = 0.9 * correlated[:, i - 1] + generator.normal(size=4)
    assert measure_quality(correlated)[1] == pytest.approx(16000 * 0.1 / 1.9, rel=0.3)
    assert not measure_quality(np.zeros((4, 100)))[0] <= 1.01


def test_half_the_prior_is_what_is_weighed(one_term):
    """Draws under the one prior, reweighted, have the ends of draws under the other."""
    fit = one_term(4.0)
    wide, narrow = sample_law(fit, num_draws=3000), sample_law(fit, num_draws=3000, prior_scale=1.5)
    ends = [np.array([np.log(p.quantiles["c_x"][0]), np.log(p.quantiles["c_x"][2])]) for p in (wide, narrow)]
    told = re.search(r"an end by (\d+) %", wide.prior_decides["c_x"])
    assert told
    assert np.abs(ends[1] - ends[0]).max() / np.ptp(ends[0]) == pytest.approx(float(told[1]) / 100, abs=0.04)


def test_the_prior_is_told_where_it_decides(make_table, quick):
    """The m term is a hundredth of the noise; its exponent is fixed, so only an upper bound is known."""
    table = make_table(noise=0.01)
    table["loss"] -= 39.99 / table.m
    law = Law("shared", (Term("m", "alpha_D"), Term("D")))
    found = sample_law(quick(table, law))
    assert "the prior decides" in found.prior_decides["c_m"]
    assert "c_D" not in found.prior_decides and "alpha_D" not in found.prior_decides
    assert any(one.startswith("the posterior of c_m: the prior decides") for one in found.caveats)
    assert found.intervals["c_m"] is None and found.to_dict()["parameters"]["c_m"]["median"] is None
    assert found.to_dict(show_all=True)["parameters"]["c_m"]["median"] > 0
    line = next(one for one in found.report().splitlines() if one.startswith("  c_m"))
    assert re.match(r"  c_m +\? +- ", line) and line.endswith("not identified (1)")
