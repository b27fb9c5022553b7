"""Which law: criteria by their definitions, tests of fixed exponents at their nominal rate, known public answers."""

# pyright: reportOptionalOperand=false, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from toydepth.errors import InputError
from toydepth.fit.law.choice.compare import compare_laws
from toydepth.fit.law.choice.criteria import compute_criteria
from toydepth.fit.law.choice.nested import compare_nested, is_nested
from toydepth.fit.law.fitting import estimate_rows
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.rows import Rows
from toydepth.fit.law.terms import LAWS, Law

SHAPE = ("m", "ell", "D")
FREE, UNIVERSAL = LAWS["decomposed"](*SHAPE), LAWS["universal"](*SHAPE)


def simulate(seed: int, exponents=(1.0, 1.0, 1 / 3), noise: float = 0.005, floor: float = 1.8, **options) -> Rows:
    m, ell, D = (x.ravel() for x in np.meshgrid([64, 128, 256, 512], [4, 8, 16], [1e9, 1e10, 1e11, 1e12]))
    # Terms of a known size at the middle of the table, whatever their exponents.
    loss = floor + 0.2 * (m / 181) ** -exponents[0] + 0.2 * (ell / 8) ** -exponents[1]
    loss = loss + 0.25 * (D / 3e10) ** -exponents[2]
    generator = np.random.default_rng(seed)
    table = {"m": m, "ell": ell, "D": D, "loss": loss * np.exp(noise * generator.normal(size=m.size))}
    if "runs" in options:
        shape = m * 1000 + ell
        places = np.unique(shape, return_inverse=True)[1]
        table["loss"] = table["loss"] * np.exp(options["runs"] * generator.normal(size=12)[places])
        return choose_rows({**table, "run": shape}, {name: name for name in SHAPE}, "loss", groups="run")
    return choose_rows(table, {name: name for name in SHAPE}, "loss")


def compare(rows: Rows, laws, objective: str | Objective = "log", **options):
    kind = objective if isinstance(objective, Objective) else Objective(objective)
    return compare_laws(rows, laws, {}, {}, kind, **{"num_starts": 4, **options})


def nested(rows: Rows, num_starts: int = 4):
    estimates = {law.name: estimate_rows(rows, law, Objective(), num_starts) for law in (FREE, UNIVERSAL)}
    return compare_nested(estimates, dict.fromkeys(estimates, 1.0))[0]


# Criteria -------------------------------------------------------------------------------------------------------------


def test_criteria_are_those_of_the_definitions():
    rows = simulate(0)
    estimates = {law.name: estimate_rows(rows, law, Objective(), 4) for law in (FREE, UNIVERSAL)}
    found = compute_criteria(estimates)
    n = 48
    fit = {name: n * np.log(e.value / n) for name, e in estimates.items()}
    k = {"decomposed": 8, "universal": 5}
    aicc = {name: fit[name] + 2 * k[name] + 2 * k[name] * (k[name] + 1) / (n - k[name] - 1) for name in fit}
    bic = {name: fit[name] + k[name] * np.log(n) for name in fit}
    for values, field in ((aicc, "aicc"), (bic, "bic")):
        gap = getattr(found["decomposed"], field) - getattr(found["universal"], field)
        assert gap == pytest.approx(values["decomposed"] - values["universal"], abs=1e-9)
        assert min(getattr(one, field) for one in found.values()) == 0
    ratio = found["decomposed"].weight / found["universal"].weight
    assert ratio == pytest.approx(np.exp(-(aicc["decomposed"] - aicc["universal"]) / 2))
    assert sum(one.weight for one in found.values()) == pytest.approx(1)


# Nested laws ---------------------------------------------------------------------------------------------------------


def test_nested_laws_are_recognised_whatever_the_order_and_the_restriction():
    shared = FREE.with_exponents({"alpha_ell": "alpha_m"})
    other = Law("other order", tuple(reversed(FREE.terms)))
    no_floor = FREE.with_exponents({"L0": 0.0})
    half = FREE.with_exponents({"alpha_m": 0.5})
    assert is_nested(UNIVERSAL, other) and is_nested(shared, FREE) and is_nested(no_floor, FREE)
    assert is_nested(UNIVERSAL, shared)  # 1 and 1 are shared
    assert not is_nested(FREE, UNIVERSAL) and not is_nested(FREE, FREE)
    assert not is_nested(UNIVERSAL, half) and not is_nested(half.with_exponents({"alpha_ell": 1.0}), shared)
    assert not is_nested(UNIVERSAL, no_floor) and not is_nested(FREE.without("m"), FREE)


def test_the_five_percent_test_rejects_five_percent_of_true_laws():
    rejected = sum(nested(simulate(seed), 2).p_value < 0.05 for seed in range(200))
    assert 0.02 * 200 <= rejected <= 0.09 * 200


def test_other_exponents_are_not_compatible_and_the_true_ones_are():
    assert compare(simulate(5, (0.5, 0.5, 0.2)), [FREE, UNIVERSAL]).nested[0].verdict == "not compatible"
    true = compare(simulate(5), [FREE, UNIVERSAL]).nested[0]
    assert true.verdict == "compatible" and true.degrees == (3, 41)
    assert "the fixed exponents are compatible with the table (F(3, 41) = " in "\n".join(true.lines())


def test_f_is_the_textbooks_and_equal_for_every_objective_that_is_least_squares():
    both = compare(simulate(7), [UNIVERSAL, FREE])
    small, large = both.estimates["universal"], both.estimates["decomposed"]
    f = (small.value - large.value) / 3 / (large.value / 41)
    (test,) = both.nested
    assert test.statistic == pytest.approx(f, rel=1e-9)
    assert test.p_value == pytest.approx(stats.f.sf(f, 3, 41), rel=1e-9)
    assert test.growth == pytest.approx(np.sqrt(small.value / 44 / (large.value / 41)) - 1)
    wide = compare(simulate(7), [UNIVERSAL, FREE], Objective("huber", delta=10.0)).nested[0]
    assert wide.statistic == pytest.approx(f, rel=1e-5)
    normal = compare(simulate(7), [UNIVERSAL, FREE], Objective("student", degrees=1e6)).nested[0]
    assert normal.statistic == pytest.approx(f, rel=1e-3)


def test_groups_whose_rows_go_together_widen_the_test():
    over, alone = [], []
    for seed in range(60):
        rows = simulate(seed, runs=0.01)
        grouped = nested(rows, 2)
        assert grouped.over_groups and grouped.degrees == (3, 9)
        over.append(grouped.p_value < 0.05)
        alone.append(nested(replace(rows, groups=None), 2).p_value < 0.05)
    assert np.mean(over) < 0.2 < np.mean(alone)


def test_wald_of_one_exponent_over_groups_is_its_t_squared():
    rows = simulate(3, runs=0.01)
    fixed = FREE.with_exponents({"alpha_D": 0.3})
    found = compare(rows, [FREE, fixed])
    large = found.estimates["decomposed"]
    place = FREE.parameters.index("alpha_D")
    t = (large.natural[place] - 0.3) / np.sqrt(large.covariance[place, place])
    assert found.nested[0].statistic == pytest.approx(t**2, rel=1e-8)
    assert "take them as if they were" in found.report()


def test_a_small_misfit_that_many_rows_make_significant_is_nearly_compatible():
    rows = simulate(0, noise=0.01)
    many = rows.take(np.tile(np.arange(48), 60))
    noise = np.exp(0.01 * np.random.default_rng(1).normal(size=many.num_rows))
    m, ell, D = (many.variables[name] for name in SHAPE)
    loss = (1.8 + 0.2 * (m / 181) ** -1.05 + 0.2 * (ell / 8) ** -1.0 + 0.25 * (D / 3e10) ** (-1 / 3)) * noise
    table = {"m": m, "ell": ell, "D": D, "loss": loss}
    found = compare(choose_rows(table, {name: name for name in SHAPE}, "loss"), [FREE, UNIVERSAL])
    (test,) = found.nested
    assert test.p_value < 0.05 and 0 < test.growth < 0.05 and test.verdict == "nearly compatible"
    assert "significant, but small" in found.report()


def test_a_table_that_says_little_is_not_taken_as_support():
    test = compare(simulate(0, noise=0.05), [FREE, UNIVERSAL]).nested[0]
    assert test.verdict == "compatible" and "the table says little of" in test.notes[0]


def test_no_irreducible_loss_is_tested_at_its_edge():
    found = compare(simulate(1), [FREE, FREE.with_exponents({"L0": 0.0})])
    (test,) = found.nested
    assert test.verdict == "not compatible" and test.constraints == ("L0 = 0",) and "edge" in test.notes[-1]
    assert "L0 = 0 is not compatible" in found.report()


# The whole -----------------------------------------------------------------------------------------------------------


def test_aic_finds_the_true_law_among_smaller_and_larger_ones():
    true = FREE.with_exponents({"alpha_m": 1.0, "alpha_ell": 1.0})
    laws = [FREE, UNIVERSAL, FREE.without("ell"), FREE.with_exponents({"L0": 0.0})]
    assert compare(simulate(2, (0.5, 0.5, 0.2), 0.002), laws).criteria["decomposed"].aic == 0
    assert compare(simulate(2), laws).criteria["universal"].bic == 0
    middle = compare(simulate(2, (1.0, 1.0, 0.6), 0.002), [UNIVERSAL, FREE, true]).criteria
    assert middle["decomposed, alpha_m = 1, alpha_ell = 1"].aicc == 0 and middle["universal"].aicc > 100


def test_criteria_and_predictions_know_no_units_and_no_order():
    rows = simulate(4)
    table = {"m": rows.variables["m"] * 7, "ell": rows.variables["ell"], "D": rows.variables["D"] / 1e9}
    table["loss"] = rows.loss * 1.44
    shuffled = np.random.default_rng(0).permutation(48)
    again = choose_rows({k: v[shuffled] for k, v in table.items()}, {name: name for name in SHAPE}, "loss")
    one, other = compare(rows, [FREE, UNIVERSAL]), compare(again, [FREE, UNIVERSAL])
    for name in one.laws:
        assert other.criteria[name].aicc == pytest.approx(one.criteria[name].aicc, abs=1e-5)
        assert other.scales.summary(name)["rmse"] == pytest.approx(one.scales.summary(name)["rmse"], rel=1e-4)
        assert other.holdout.laws[name]["bias"] == pytest.approx(one.holdout.laws[name]["bias"], abs=1e-6)


def test_laws_that_cannot_be_fitted_are_skipped_with_a_reason():
    few = simulate(0).take(np.arange(6) * 8 + np.arange(6) % 4)
    found = compare(few, [FREE, UNIVERSAL, LAWS["chinchilla"]("N", "D")])
    assert found.skipped["decomposed"] == "7 parameters need more than 6 rows"
    assert found.skipped["chinchilla"] == "the rows have no N" and list(found.laws) == ["universal"]
    assert "not fitted, 7 parameters need more than 6 rows" in found.report()
    assert found.criteria["universal"].aicc is None and found.criteria["universal"].weight is None
    with pytest.raises(InputError, match="7 parameters need more than 6 rows"):
        compare(few, [FREE])


def test_a_table_without_noise_gets_no_criteria_and_no_verdict():
    found = compare(simulate(0, noise=0.0), [FREE, UNIVERSAL])
    assert not found.criteria and "rounding" in found.no_criteria
    assert found.nested[0].verdict is None and "no noise" in found.nested[0].reason
    assert "no verdict" in found.report()


def test_an_undetermined_larger_law_can_still_speak_against_the_smaller():
    rows = simulate(0, (1.0, 1.0, 0.9), noise=0.002)
    found = compare(rows.take(rows.variables["m"] < 200), [FREE, UNIVERSAL])
    assert not found.estimates["decomposed"].condition < 1e8 and found.nested[0].verdict == "not compatible"


def test_an_undetermined_larger_law_gives_no_verdict():
    rows = simulate(0)
    found = compare(rows.take(rows.variables["m"] < 200), [FREE, UNIVERSAL])  # two widths, and a free exponent
    assert found.nested[0].verdict is None and "do not determine" in found.nested[0].reason


def test_names_tell_laws_of_one_name_apart_and_equal_laws_are_refused():
    found = compare(simulate(0), [FREE, FREE.with_exponents({"alpha_m": 1.0}), FREE.with_exponents({"L0": 0.0})])
    assert list(found.laws) == ["decomposed", "decomposed, alpha_m = 1", "decomposed, L0 = 0"]
    with pytest.raises(InputError, match="decomposed twice"):
        compare(simulate(0), [FREE, FREE])
    for bad in ({"holdout_fraction": 1.0}, {"holdout_fraction": True}, {"confidence": 95}, {"seed": -1}):
        with pytest.raises(InputError):
            compare(simulate(0), [FREE], **bad)
    with pytest.raises(InputError, match="laws must be one law or more"):
        compare(simulate(0), [])


def test_rows_of_a_model_size_that_go_together_are_noticed():
    ungrouped = replace(simulate(0, runs=0.02), groups=None)
    assert "go together within a model size" in compare(ungrouped, [FREE, UNIVERSAL]).report()
    assert "go together" not in compare(simulate(0), [FREE, UNIVERSAL]).report()


@pytest.mark.parametrize("objective", ["log", "linear", "huber", "student"])
def test_everything_is_json_for_every_objective(objective: str):
    found = compare(simulate(1), [FREE, UNIVERSAL], objective, num_starts=2)
    text = json.dumps(found.to_dict(), allow_nan=False)
    again = json.loads(text)
    assert again["laws"]["universal"]["num_parameters"] == 4 and again["nested"][0]["verdict"]
    assert again["objective"]["kind"] == objective and found.objective.in_words in found.report()
    assert all(len(line) == len(line.rstrip()) for line in found.report().splitlines())


# Public tables -------------------------------------------------------------------------------------------------------


def test_chinchilla_is_nearly_compatible_with_the_universal_exponents(public):
    columns = {"m": "d_model", "ell": "n_layers", "D": "num_tokens"}
    rows = choose_rows(public("chinchilla_depthscaling.csv"), columns, "loss", exclude_highest=40)
    found = compare(rows, [FREE, UNIVERSAL], num_starts=16)
    assert found.estimates["decomposed"].value == pytest.approx(0.0061456, abs=5e-8)
    assert found.estimates["universal"].value == pytest.approx(0.0064323, abs=5e-8)
    (test,) = found.nested
    assert test.degrees == (3, 196) and test.statistic == pytest.approx(3.048, abs=2e-3)
    assert test.verdict == "nearly compatible" and test.growth == pytest.approx(0.0153, abs=2e-4)
    assert "39 distinct (m, ell)" in found.scales.scales.words


@pytest.mark.parametrize("groups", [None, "run_name"])
def test_gemstones_contradict_the_universal_exponents(groups: str | None, public):
    columns = {"m": "width", "ell": "depth", "D": "tokens"}
    rows = choose_rows(public("gemstones_hot.jsonl"), columns, "final_loss", groups=groups)
    found = compare(rows, [FREE, UNIVERSAL], num_starts=16)
    assert found.estimates["decomposed"].value == pytest.approx(0.01788, abs=5e-6)
    assert found.estimates["universal"].value == pytest.approx(0.16584, abs=5e-6)
    assert found.nested[0].verdict == "not compatible" and found.nested[0].growth > 1.9
    assert len(found.scales.scales.names) == 22
    assert found.criteria["universal"].aic > 400 and found.scales.summary("universal")["rmse"] > 0.03
