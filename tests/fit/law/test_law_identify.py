"""What a table cannot tell gets a reason, and no number."""

import numpy as np
import pandas as pd
import pytest

from toydepth.fit.law import fit_law

ALL = {"m": "m", "ell": "ell", "D": "D"}


def values_of(fit):
    return {name: one.value for name, one in fit.parameters.items() if not one.fixed}


def test_a_constant_depth(make_table):
    table = make_table()
    table = table[table.ell == table.ell.min()]
    fit = fit_law(table, "decomposed", ALL)
    assert set(fit.unidentified) == {"c_ell", "alpha_ell", "L0"}
    assert "ell is 2 in every row" in fit.unidentified["alpha_ell"]
    known = values_of(fit)
    assert known["alpha_m"] == pytest.approx(1.0, abs=0.1) and known["alpha_ell"] is None
    assert "?" in fit.report() and "not identified" in fit.report()


def test_two_depths_are_too_few_for_an_exponent_but_not_for_a_coefficient(make_table):
    table = make_table({"alpha_ell": 1.0})
    table = table[table.ell.isin([table.ell.min(), table.ell.max()])]
    fit = fit_law(table, "decomposed", ALL)
    assert "two values" in fit.unidentified["alpha_ell"]
    fixed = fit_law(table, "decomposed", ALL, fixed={"alpha_ell": 1.0})
    assert "c_ell" not in fixed.unidentified
    assert fixed.values["c_ell"] == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("wobble", [0.0, 0.01])
def test_width_in_proportion_to_depth(make_table, wobble):
    table = make_table()
    generator = np.random.default_rng(0)
    table["m"] = 64 * table.ell * np.exp(wobble * generator.normal(size=len(table)))
    table["loss"] = (40 / table.m + 2 / table.ell**1.2 + 400 / table.D**0.3 + 1.7) * np.exp(
        0.005 * generator.normal(size=len(table))
    )
    fit = fit_law(table, "decomposed", ALL)
    assert {"c_m", "c_ell", "alpha_m", "alpha_ell"} <= set(fit.unidentified)
    assert "m and ell move together" in fit.unidentified["alpha_m"]
    assert fit.parameters["alpha_D"].value == pytest.approx(0.3, abs=0.03)


def test_one_path_of_data_cannot_be_told_from_size():
    size = np.repeat(np.geomspace(1e7, 1e10, 8), 3)
    table = pd.DataFrame({"N": size, "D": 20 * size})
    noise = np.exp(0.003 * np.random.default_rng(1).normal(size=len(size)))
    table["loss"] = (400 / table.N**0.34 + 2000 / table.D**0.37 + 1.8) * noise
    fit = fit_law(table, "chinchilla", {"N": "N", "D": "D"})
    assert set(fit.unidentified) >= {"c_N", "c_D", "alpha_N", "alpha_D"}


def test_a_term_that_is_not_there(make_table):
    fit = fit_law(make_table({"c_ell": 1e-9}), "decomposed", ALL)
    assert {"c_ell", "alpha_ell"} <= set(fit.unidentified)
    assert fit.parameters["alpha_m"].value == pytest.approx(1.0, abs=0.1)


def test_a_table_that_tells_all_has_no_reason(make_table):
    assert fit_law(make_table(), "decomposed", ALL).unidentified == {}


def test_no_irreducible_loss(make_table):
    fit = fit_law(make_table({"L0": 1e-9}), "decomposed", ALL)
    assert "L0" in fit.unidentified
