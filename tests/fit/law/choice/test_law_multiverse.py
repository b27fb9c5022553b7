"""The multiverse: every combination of choices, each the same as a fit of its own, and what they do to the numbers."""

import json

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit.law import Law, Objective, Term, fit_law, make_law
from toydepth.fit.law.choice.multiverse import multiverse

M_ELL = {"m": "m", "ell": "ell"}
DECOMPOSED = make_law("decomposed", ["m", "ell"])


def make_runs(noise=0.01, seed=0, offset=0.0, columns=M_ELL):
    """A grid of 7 widths and 6 depths: L = 30 / m + 2 / (ell - offset) + 1.5, with noise in ln L."""
    m, ell = (x.ravel() for x in np.meshgrid([32.0, 64, 128, 256, 512, 1024, 2048], [2.0, 3, 4, 8, 16, 32]))
    loss = (30 / m + 2 / (ell - offset) + 1.5) * np.exp(noise * np.random.default_rng(seed).normal(size=m.size))
    return pd.DataFrame({columns["m"]: m, columns["ell"]: ell, "loss": loss})


def test_every_combination_is_the_fit_of_its_choices():
    runs = make_runs()
    runs.loc[3, "loss"] = runs["loss"].nlargest(5).iloc[-1]  # a tie at the 5th highest
    found = multiverse(runs, DECOMPOSED, M_ELL)
    frame = found.frame
    # 0, 5 (two tie rules) and 20 of 42 rows; two offsets, four objectives, two laws.
    assert len(frame) == (1 + 2 + 1) * 2 * 4 * 2
    assert sorted(set(zip(frame.exclude_highest, frame.ties, strict=True))) == [
        (0, "either"), (5, "below"), (5, "rank"), (20, "either"),
    ]  # fmt: skip
    assert not frame.duplicated(["exclude_highest", "ties", "offset_ell", "objective", "law"]).any()
    for one, (_, row) in list(zip(found.combinations, frame.iterrows(), strict=True))[::5]:
        fit = fit_law(
            runs, one.law, M_ELL, objective=one.objective, exclude_highest=one.exclude_highest,
            ties="below" if one.ties == "either" else one.ties, offsets=one.offsets, intervals="covariance",
        )  # fmt: skip
        assert row["rows"] == fit.estimate.num_rows
        for name, parameter in fit.parameters.items():
            if parameter.fixed or parameter.value is None or name in one.unidentified:
                assert name not in row or np.isnan(row[name])
            else:
                assert row[name] == pytest.approx(parameter.value, rel=1e-4)
                assert row[f"{name}_error"] == pytest.approx(parameter.standard_error, rel=1e-3)
        if one.objective.of_log:
            assert row["residual_std"] == pytest.approx(fit.residual_std, rel=1e-5)
        assert set(one.unidentified) >= set(fit.unidentified)


def test_without_noise_only_a_wrong_choice_moves_anything():
    kinds = ["log", "linear", "huber"]  # Student's t has no most likely scale where no residual is left
    table = multiverse(make_runs(noise=0.0), DECOMPOSED, M_ELL, exclusions=[0, 5], objectives=kinds).effects.set_index(
        ["choice", "parameter"]
    )
    for choice in ("exclude_highest", "objective"):
        for name in ("alpha_m", "alpha_ell"):
            effect = table.loc[(choice, name)]
            assert effect[["low", "high"]].tolist() == pytest.approx([1.0, 1.0], rel=1e-4)
    # One off a depth whose term is 2 / ell: the exponent must fall.
    assert table.loc[("offset", "alpha_ell"), "low"] < 0.9
    assert table.loc[("offset", "alpha_ell"), "high"] == pytest.approx(1.0, rel=1e-4)
    assert table.loc[("law", "alpha_ell"), "fitted"] == 1  # the universal law has nothing to say of it
    assert table.loc[("law", "L0"), ["low", "high"]].tolist() == pytest.approx([1.5, 1.5], rel=1e-4)


def test_the_true_offset_gives_the_true_exponent():
    found = multiverse(make_runs(noise=0.0, offset=1.0), DECOMPOSED, M_ELL, exclusions=[0], objectives=["log"])
    free = found.frame[found.frame["law"] == "decomposed"].set_index("offset_ell")
    assert free.loc[1.0, "alpha_ell"] == pytest.approx(1.0, rel=1e-6)
    assert free.loc[0.0, "alpha_ell"] > 1.1
    assert free.loc[1.0, "residual_std"] < 1e-6 < free.loc[0.0, "residual_std"]


def test_units_change_no_exponent():
    runs = make_runs()
    other = runs.assign(m=runs["m"] * 1e6, ell=runs["ell"] / 50, loss=runs["loss"] * 7)
    a, b = (
        multiverse(table, DECOMPOSED, M_ELL, offsets=[{}, {"ell": shift}], exclusions=[0, 5]).frame
        for table, shift in ((runs, 1.0), (other, 1 / 50))
    )
    for name in ("alpha_m", "alpha_ell", "alpha_m_error", "alpha_ell_error", "residual_std"):
        np.testing.assert_allclose(a[name], b[name], rtol=2e-3)
    np.testing.assert_allclose(7 * a["L0"], b["L0"], rtol=1e-4)


def test_effects_are_the_ranges_of_the_frame():
    runs = make_runs(noise=0.03)
    runs.loc[[4, 5], "loss"] = runs["loss"].nlargest(5).iloc[-1]
    found = multiverse(runs, DECOMPOSED, M_ELL, exclusions=[0, 5, 10], objectives=["log", "student"])
    frame = found.frame[found.frame["law"] == "decomposed"]
    base = (frame["exclude_highest"] == 0) & (frame["offset_ell"] == 0) & (frame["objective"] == "log")
    plain = (frame["offset_ell"] == 0) & (frame["objective"] == "log")
    among = {
        "all": frame["rows"] > 0,
        "exclude_highest": plain & (frame["ties"] != "rank"),
        "ties at 5": plain & (frame["exclude_highest"] == 5),
        "offset": (frame["exclude_highest"] == 0) & (frame["objective"] == "log"),
        "objective": (frame["exclude_highest"] == 0) & (frame["offset_ell"] == 0),
        "law": base,
    }
    effects = found.effects[found.effects["parameter"] == "alpha_ell"].set_index("choice")
    assert set(effects.index) == set(among)
    for choice, rows in among.items():
        values = frame.loc[rows, "alpha_ell"]
        assert effects.loc[choice, ["low", "high"]].tolist() == [values.min(), values.max()]
        assert effects.loc[choice, "determined"] == values.notna().sum()


def test_what_the_rows_do_not_determine_gets_no_number():
    runs = make_runs()
    runs = runs[runs["m"] == 32 * runs["ell"]].sample(40, replace=True, random_state=0)
    runs["loss"] *= np.exp(0.01 * np.random.default_rng(1).normal(size=40))
    found = multiverse(runs, DECOMPOSED, M_ELL, exclusions=[0, 5], objectives=["log"])
    assert found.frame[["alpha_m", "alpha_ell", "c_m", "c_ell", "alpha_m_error"]].isna().all(axis=None)
    assert found.frame["not_identified"].str.contains("alpha_ell").sum() == 4
    text = found.report()
    assert "alpha_ell: no combination determines it" in text
    assert "alpha_ell is not identified in 4 of 4 fits, for example: m and ell move together" in text
    row = next(line for line in text.splitlines() if line.startswith("  base"))
    assert row.split()[1:3] == ["?", "?"]
    assert all(one["alpha_ell"] is None for one in found.to_dict()["combinations"])


def test_failures_are_rows_with_a_reason():
    found = multiverse(
        make_runs(), DECOMPOSED, M_ELL, exclusions=[0, 38, 100], objectives=["log"], offsets=[{}, {"ell": 2}]
    )
    frame = found.frame.set_index(["exclude_highest", "offset_ell", "law"])
    assert frame.loc[(0, 0.0, "decomposed"), "reason"] == ""
    assert "must be of 6 rows or more for 5 parameters, got 4" in frame.loc[(38, 0.0, "decomposed"), "reason"]
    assert frame.loc[(38, 0.0, "universal"), "rows"] == 4
    assert "must be less than the number of rows" in frame.loc[(100, 0.0, "decomposed"), "reason"]
    assert frame.loc[(0, 2.0, "decomposed"), "reason"] == "the offset 2 of ell is not below its smallest value, 2"
    assert frame.loc[frame["reason"] != "", "L0"].isna().all()
    assert "without a fit: the offset 2 of ell" in " ".join(found.report().split())


def test_defaults_follow_the_table_and_the_law():
    runs = make_runs()
    found = multiverse(runs.iloc[:24], DECOMPOSED, M_ELL, objectives=["log"])
    assert found.options["exclude_highest"] == ("0", "5")  # 20 is not below half of 24
    assert multiverse(runs.assign(ell=runs["ell"] / 2), DECOMPOSED, M_ELL, exclusions=[0]).options["offset"] == (
        "none",
    )
    own = runs.rename(columns={"m": "N", "ell": "D"})
    chinchilla = multiverse(own, make_law("chinchilla", ["N", "D"]), {}, exclusions=[0])
    assert chinchilla.options["law"] == ("chinchilla",)
    assert "offset_ell" not in chinchilla.frame
    universal = multiverse(runs, make_law("universal", ["m", "ell"]), M_ELL, exclusions=[0])
    assert universal.options["law"] == ("universal",)
    assert universal.parameters == ("c_m", "c_ell", "L0")
    known = multiverse(runs, Law("own", (Term("m"),), 1.5), M_ELL, exclusions=[0]).combinations
    assert {one.law.irreducible_loss for one in known} == {1.5}


def test_laws_and_objectives_of_one_kind_are_told_apart():
    one = DECOMPOSED.with_exponents({"alpha_ell": 1.0})
    kinds = ["huber", Objective("huber", delta=0.01), Objective("huber")]
    found = multiverse(make_runs(), DECOMPOSED, M_ELL, exclusions=[0], offsets=[{}], laws=[one], objectives=kinds)
    assert found.options["law"] == ("decomposed, all free", "decomposed, alpha_ell = 1")
    assert found.options["objective"] == ("huber 0.001", "huber 0.01")
    effects = found.effects.set_index(["choice", "parameter"])
    assert effects.loc[("law", "alpha_m"), "fitted"] == 2
    assert effects.loc[("law", "alpha_ell"), "fitted"] == 1
    assert "of huber they are rough" in found.report()


def test_groups_and_weights_reach_every_fit():
    runs = make_runs().assign(run=np.arange(42) % 14, weight=np.arange(42) % 3)
    found = multiverse(runs, DECOMPOSED, M_ELL, exclusions=[5], objectives=["log"], groups="run", weights="weight")
    fit = fit_law(runs, DECOMPOSED, M_ELL, exclude_highest=5, groups="run", weights="weight", intervals="covariance")
    first = found.combinations[0]
    assert first.rows == fit.estimate.num_rows == 23
    assert first.values["alpha_m"] == pytest.approx(fit.values["alpha_m"], rel=1e-5)
    assert first.errors["alpha_m"] == pytest.approx(fit.parameters["alpha_m"].standard_error, rel=1e-4)


def test_the_report_fits_a_terminal_and_json_holds_all():
    names = ["a_long_name_of_a_variable", "another_long_name", "m", "ell"]
    rng = np.random.default_rng(0)
    runs = pd.DataFrame({name: np.exp(rng.uniform(1, 6, 200)) for name in names})
    runs["loss"] = sum(2 / runs[name] ** 0.5 for name in names) + 1.0 + 0.01 * rng.normal(size=200)
    found = multiverse(runs, make_law("decomposed", names), {}, exclusions=[0, 5], objectives=["log"])
    assert max(map(len, found.report().splitlines())) <= 110
    assert all(name in found.report() for name in found.parameters)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(data["combinations"]) == len(found.frame) == 4
    assert data["base"]["objective"] == "log"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exclusions": [-1]}, "exclusions must be an integer, 0 or more, got -1"),
        ({"exclusions": []}, "exclusions must be a list of options, one or more"),
        ({"ties": "rank"}, "ties must be a list of options, one or more, got 'rank'"),
        ({"ties": ["above"]}, "ties must be 'below' or 'rank', got 'above'"),
        ({"objectives": ["hubr"]}, "objective must be one of log, linear, huber, student, got hubr"),
        ({"offsets": [{"D": 1}]}, "offsets must be of m, ell, got 'D'"),
        ({"offsets": [{"ell": "1"}]}, "the offset of ell must be a finite number, got '1'"),
        ({"loss": "los"}, "los"),
        ({"confidence": 95}, "confidence must be a number between 0 and 1"),
        ({"num_starts": 1}, "num_starts must be an integer, 2 or more"),
    ],
)
def test_options_no_table_could_make_right_are_refused(change, message):
    with pytest.raises(InputError) as error:
        multiverse(make_runs(), DECOMPOSED, M_ELL, **change)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_chinchilla_by_exclusions_and_ties(chinchilla):
    columns = {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}
    law = make_law("decomposed", list(columns))
    found = multiverse(chinchilla, law, columns, offsets=[{}], objectives=["log"], laws=[law])
    table = found.frame.set_index(["exclude_highest", "ties"])
    known = {
        (0, "either"): (245, 1.19, 0.60), (5, "either"): (240, 0.93, 0.22), (20, "either"): (225, 1.04, 0.21),
        (40, "below"): (203, 1.325, 0.287), (60, "either"): (185, 1.66, 0.35),
    }  # fmt: skip
    for at, (rows, value, error) in known.items():
        row = table.loc[at]
        assert row["rows"] == rows
        assert row["alpha_ell"] == pytest.approx(value, abs=0.006)
        assert row["alpha_ell_error"] == pytest.approx(error, abs=0.006)
    assert table.loc[(40, "rank"), "rows"] == 205
    assert table.loc[(40, "rank"), "alpha_ell"] == pytest.approx(1.451, abs=0.001)
    # The point of it all: the filter moves the exponent by more than its error.
    effect = found.effects.set_index(["parameter", "choice"]).loc[("alpha_ell", "exclude_highest")]
    assert effect["high"] - effect["low"] == pytest.approx(0.73, abs=0.01)
    assert "moved most by exclude_highest (0.73)" in " ".join(found.report().split())


def test_a_term_that_is_a_step_has_no_exponent(public):
    """Without the 60 highest losses the best width term is a step at the smallest width: its alpha_m would be 65."""
    table = public("gemstones_hot.jsonl")
    columns = {"m": "width", "ell": "depth", "D": "tokens", "N": "params_active_precise"}
    law = make_law("decomposed", list(columns))
    found = multiverse(
        table, law, columns, loss="final_loss", exclusions=[60], offsets=[{}], objectives=["linear"], laws=[law]
    )
    assert {"alpha_m", "c_m"} <= set(found.base.unidentified)
    assert found.frame[["alpha_m", "c_m"]].isna().all(axis=None)
