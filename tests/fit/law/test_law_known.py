"""Known answers on public tables: published fits, their errors, and what those tables cannot tell."""

import numpy as np
import pytest

from tests.fit.law.conftest import CHINCHILLA
from toydepth.fit.law import Objective, fit_law
from toydepth.fit.law.profile import profile_curve


@pytest.mark.parametrize(
    ("excluded", "ties", "alpha", "error"),
    [(0, "below", 1.19, 0.60), (5, "below", 0.93, 0.22), (20, "below", 1.04, 0.21), (40, "below", 1.325, 0.29),
     (60, "below", 1.66, 0.35), (40, "rank", 1.451, None)],
)  # fmt: skip
def test_exclusions_of_the_chinchilla_table(chinchilla, excluded, ties, alpha, error):
    fit = fit_law(chinchilla, "decomposed", CHINCHILLA, exclude_highest=excluded, ties=ties, intervals="covariance")
    one = fit.parameters["alpha_ell"]
    assert one.estimate == pytest.approx(alpha, abs=0.006)
    if error:
        assert one.standard_error == pytest.approx(error, abs=0.006)


def test_the_exact_minimum_on_the_chinchilla_table(chinchilla):
    fit = fit_law(chinchilla, "decomposed", CHINCHILLA, exclude_highest=40, intervals="all")
    assert fit.estimate.num_rows == 203
    assert 100 * fit.estimate.value / 203 == pytest.approx(0.0030274, abs=1e-7)
    values = fit.parameters
    assert values["alpha_m"].estimate == pytest.approx(0.945, abs=0.001)
    assert values["alpha_m"].standard_error == pytest.approx(0.085, abs=0.001)
    assert values["alpha_ell"].estimate == pytest.approx(1.325, abs=0.001)
    assert values["alpha_ell"].standard_error == pytest.approx(0.287, abs=0.001)
    assert values["alpha_D"].estimate == pytest.approx(0.299, abs=0.001)
    assert values["L0"].estimate == pytest.approx(1.754, abs=0.001)
    assert fit.correlations.loc["alpha_m", "alpha_ell"] == pytest.approx(-0.86, abs=0.006)
    low, high = fit.intervals["bootstrap"]["alpha_ell"]
    assert low == pytest.approx(0.98, abs=0.03) and high == pytest.approx(1.79, abs=0.03)
    assert fit.estimate.share_agreeing > 0.9


def test_the_profile_on_the_chinchilla_table(chinchilla):
    fit = fit_law(chinchilla, "decomposed", CHINCHILLA, exclude_highest=40, intervals="covariance")
    chi2 = profile_curve(fit.estimate, "alpha_ell", np.array([0.7, 1.0, 1.2, 2.0]))
    assert chi2 == pytest.approx([10.1, 2.7, 0.4, 10.1], abs=0.06)


def test_fixed_exponents_on_the_chinchilla_table(chinchilla):
    table = chinchilla.assign(num_tokens=chinchilla["num_tokens"] / 1e9)
    fit = fit_law(table, "universal", CHINCHILLA, exclude_highest=40)
    known = {
        "c_m": (388, 9, 0.5),
        "c_ell": (3.25, 0.20, 0.005),
        "c_D": (1.064, 0.009, 0.0005),
        "L0": (1.778, 0.005, 0.0005),
    }
    for name, (value, error, digit) in known.items():
        assert fit.parameters[name].estimate == pytest.approx(value, abs=digit), name
        assert fit.parameters[name].standard_error == pytest.approx(error, abs=digit), name


def test_farseer_tells_n_and_d_but_not_width_and_depth(public):
    table = public("farseer_nd.csv")
    table[["N", "D"]] /= 1e9
    known = {"N": "N", "D": "D"}
    fit = fit_law(
        table,
        "chinchilla",
        known,
        loss="loss_bpc",
        query="split == 'train'",
        fixed=dict.fromkeys(("alpha_N", "alpha_D"), 1 / 3),
    )
    assert fit.estimate.num_rows == 404
    for name, value, error in (("c_N", 0.0723, 0.0005), ("c_D", 0.2118, 0.0011), ("L0", 0.3877, 0.0008)):
        assert fit.parameters[name].estimate == pytest.approx(value, abs=5e-5)
        assert fit.parameters[name].standard_error == pytest.approx(error, abs=5e-5)
    shape = {"m": "width", "ell": "depth", "D": "D"}
    fit = fit_law(table, "universal", shape, loss="loss_bpc", query="split == 'train'")
    assert set(fit.unidentified) == {"c_m", "c_ell"}
    assert "width and depth move together" in fit.unidentified["c_m"]
    assert fit.to_dict()["parameters"]["c_m"]["value"] is None
    assert fit.to_dict(show_all=True)["parameters"]["c_m"]["value"] > 0


@pytest.mark.parametrize(
    ("model", "rows", "alpha", "error"),
    [("pythia-70m", 1, 0.3407, 0.028), ("pythia-410m", 2, 0.3670, 0.013), ("pythia-2.8b", 2, 0.3374, 0.013),
     ("pythia-12b", 2, 0.3074, 0.016)],
)  # fmt: skip
def test_training_time_of_the_pythia_models(public, model, rows, alpha, error):
    table = public("pythia_fineweb_loss_reconstructed.csv")
    table = table[table["model"].str.lower() == model].sort_values("step").iloc[rows:]
    fit = fit_law(table, "decomposed", {"tau": "tau_norm"}, loss="loss_reconstructed")
    assert fit.parameters["alpha_tau"].estimate == pytest.approx(alpha, abs=5e-4)
    assert fit.parameters["alpha_tau"].standard_error == pytest.approx(error, abs=1e-3)


def test_four_pythia_models_do_not_tell_depth(public):
    table = public("pythia_fineweb_loss_reconstructed.csv").sort_values(["model", "step"])
    table = table[table.groupby("model").cumcount() >= 2]
    fit = fit_law(table, "universal", {"tau": "tau_norm", "m": "width", "ell": "depth"}, loss="loss_reconstructed")
    assert "c_ell" in fit.unidentified
    assert fit.parameters["c_ell"].value is None


@pytest.mark.parametrize(
    ("variables", "delta", "least"),
    [("ND", 1e-3, 0.00198161), ("ND", 1e-4, 0.000207505), ("mlND", 1e-4, 0.000111404)],
)
def test_gemstones_minima_are_at_or_below_the_published_ones(public, variables, delta, least):
    table = public("gemstones_hot.jsonl")
    columns = {"N": "params_active_precise", "D": "tokens"}
    if variables == "mlND":
        columns = {"m": "width", "ell": "depth"} | columns
    huber = Objective("huber", delta)
    fit = fit_law(table, "decomposed", columns, loss="final_loss", objective=huber, intervals="covariance")
    assert fit.estimate.value <= least * (1 + 5e-6)
    assert fit.estimate.value == pytest.approx(least, rel=1e-3)


def test_pythia_models_jointly(public):
    """Exponents fixed, the first three points of each left out (step > 512): c_ell .14 +- .31 says nothing."""
    table = public("pythia_fineweb_loss_reconstructed.csv")
    columns = {"tau": "tau", "m": "width", "ell": "depth"}
    fit = fit_law(table, "universal", columns, loss="loss_reconstructed", query="step > 512")
    one = fit.parameters["c_ell"]
    assert (one.estimate, one.standard_error) == pytest.approx((0.14, 0.31), abs=0.005)
    assert one.value is None and not one.identified
