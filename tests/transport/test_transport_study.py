"""Studies: fields of several sizes over steps; a row a cascade, exponents by step, effects, channels, sensitivity."""

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.transport import (
    ProbeSettings,
    StudyField,
    associate_study,
    effects_by_step,
    exponents_by_step,
    fit_exponents,
    measure_field,
    measure_sensitivity,
    measure_study,
)

SETTINGS = ProbeSettings(seeds=(0, 1))
SIZES = (60, 240, 960)


def gaussian(size, step, seed=0):
    return np.random.default_rng([seed, size, step]).normal(size=size)


def study(steps=(10, 20), sizes=SIZES, family="a", make=gaussian, **about):
    for step in steps:
        for size in sizes:
            numbers = {name: value(size, step) for name, value in about.items()}
            yield StudyField(family, f"N{size}", 0, step, make(size, step), numbers)


def test_rows_are_those_of_each_field_alone():
    table = measure_study(study(), SETTINGS)
    kinds = ["field", "N1", "N2", "as_is", "N0"]
    assert len(table) == 2 * 3 * 2 * len(kinds) and table["kind"].unique().tolist() == kinds
    own = table.query("step == 20 and model == 'N240'").reset_index(drop=True)
    alone = measure_field(gaussian(240, 20), SETTINGS)
    for kind in ("field", "N0", "N1", "N2"):
        for name in ("seed", "size", "duration", "threshold"):
            assert own[own["kind"] == kind][name].tolist() == alone[alone["kind"] == kind][name].tolist(), (kind, name)
    placed = measure_field(gaussian(240, 20), ProbeSettings(seeds=(0, 1), order="as_is"), kinds=("field",))
    assert own[own["kind"] == "as_is"]["size"].tolist() == placed["size"].tolist()
    assert (own["num_values"] == 240).all()


def test_exponents_by_step_are_those_of_the_rows():
    table = measure_study(study(), SETTINGS)
    found = exponents_by_step(table).set_index(["step", "kind"])
    own = table.query("step == 10 and kind == 'N2'")
    fit = fit_exponents(own["num_nodes"], own["size"], own["duration"])
    row = found.loc[(10, "N2")]
    assert (row["D"], row["z_error"], row["delta_r_squared"]) == (
        fit.D.slope,
        fit.z.standard_error,
        fit.delta.r_squared,
    )
    assert row["num_sizes"] == 3 and row["num_cascades"] == 6 and abs(row["closure_error"]) < 1e-12
    assert abs(row["beta"] - (row["D"] - row["z"])) < 1e-12 and abs(row["delta"] - row["beta"] + 1) < 1e-12
    assert len(found) == 2 * 5


def test_larger_fields_are_sampled_down():
    table = measure_study(study(sizes=(60, 240, 960, 4000)), SETTINGS, max_nodes=960)
    top = table.query("model == 'N4000' and kind == 'field'")
    assert (top["num_nodes"] == 960).all() and (top["num_values"] == 4000).all()


def test_a_field_without_a_cascade_is_named_and_never_a_number():
    def make(size, step):
        return np.zeros(size) if (size, step) == (240, 20) else gaussian(size, step)

    table = measure_study(study(make=make, sizes=(60, 240, 960)), SETTINGS)
    bad = table.query("step == 20 and model == 'N240'")
    assert bad["kind"].unique().tolist() == ["field"] and (bad["problem"] == "zero field").all()
    assert bad["size"].isna().all()
    rows = exponents_by_step(table).query("kind == 'field'").set_index("step")
    assert rows.loc[20, "missing"] == "2 sizes, of 3 or more that it takes (zero field)"
    assert np.isnan(rows.loc[20, "D"]) and np.isfinite(rows.loc[10, "D"])
    assert set(effects_by_step(table).query("step == 20")["mean"].dropna()) == set()


def test_capped_cascades_are_counted_where_exponents_stand():
    table = measure_study(study(steps=(10,)), ProbeSettings(seeds=(0, 1), cap=1))
    row = exponents_by_step(table).query("kind == 'field'").iloc[0]
    assert row["num_capped"] > 0 and 960 in row["capped_sizes"]


def test_fewer_than_three_sizes_is_an_error():
    table = measure_study(study(sizes=(60, 240)), SETTINGS)
    with pytest.raises(InputError, match="sizes must be 3 or more in a family, got 2 at most"):
        exponents_by_step(table)


def test_no_field_and_one_twice():
    with pytest.raises(InputError, match="fields must be one or more, got none"):
        measure_study([], SETTINGS)
    with pytest.raises(InputError, match="got N60, replicate 0, step 10 of a twice"):
        measure_study([*study(), *study()], SETTINGS)


def test_order_on_the_nodes_shows_in_the_assignment_effect_alone():
    """Large values side by side in the flattened order, as rows of a matrix: as_is keeps them so, a permutation not."""

    def sorted_field(size, step):
        return np.sort(np.abs(np.random.default_rng(size).standard_t(2, size=size)))[::-1]

    sizes = (500, 2000, 8000)
    table = measure_study(study((10,), sizes, make=sorted_field), ProbeSettings(seeds=tuple(range(6))))
    means = table[table["model"] == "N8000"].groupby("kind")["efficiency"].mean()
    assert abs(means["field"] / means["N2"] - 1) < 0.15 < abs(means["as_is"] / means["N2"] - 1)
    effects = effects_by_step(table)
    assert (effects["num_pairs"] == 6).all()
    slopes = {}
    for kind in ("as_is", "N0", "N2"):
        own = table[table["kind"] == kind]
        for seed in range(6):
            one = own[own["seed"] == seed]
            fit = fit_exponents(one["num_nodes"], one["size"], one["duration"])
            slopes.setdefault(kind, []).append((fit.D.slope, fit.delta.slope))
    by_kind = {kind: np.array(values) for kind, values in slopes.items()}
    for effect, first, second in (("distribution", "N2", "N0"), ("assignment", "as_is", "N2")):
        for place, channel in enumerate(("D", "delta")):
            row = effects.query("effect == @effect and channel == @channel").iloc[0]
            apart = (by_kind[first] - by_kind[second])[:, place]
            assert row["mean"] == pytest.approx(apart.mean()), (effect, channel)
            reach = 2.570582 * apart.std(ddof=1) / 6**0.5  # t of 5 degrees of freedom
            assert row["high"] - row["mean"] == pytest.approx(reach, rel=1e-5)


def test_channels_go_with_a_loss_that_is_made_from_one():
    """loss = exp(noise) / v_rel of the largest model, about."""
    steps = tuple(range(1, 31))
    table = measure_study(study(steps, (100, 400, 1600)), SETTINGS)
    own = table.query("model == 'N1600' and kind == 'field'")
    v_rel = np.exp(np.log(own["efficiency"]).groupby(own["step"]).mean())
    noise = dict(zip(steps, 0.02 * np.random.default_rng(0).normal(size=30), strict=True))
    table["loss"] = [np.exp(noise[step]) / v_rel[step] for step in table["step"]]
    found = associate_study(table, exponents_by_step(table))
    assert found["model"].unique().tolist() == ["N100", "N400", "N1600", "all sizes"]
    raw = found[found["kind"] == "raw"].set_index(["model", "channel"])
    top = raw.loc[("N1600", "ln v_rel")]
    assert top["rho"] < -0.9 and top["high"] < 0 and top["p_holm"] < 0.05
    assert top["trend"] == "" and top["num_steps"] == 30
    other = raw.loc[("N100", "ln v_rel")]
    assert other["low"] < 0 < other["high"]
    assert "partial" not in set(found["kind"])  # no learning rate is known


def test_the_control_is_the_learning_rate_and_the_channels_are_those_named():
    """A rate that is the loss, noise added: nothing of the correlation is left, given it. Given the step, all is."""
    from toydepth.transport import associate

    steps = tuple(range(1, 31))
    table = measure_study(study(steps, (100, 400, 1600)), SETTINGS)
    generator = np.random.default_rng(2)
    rates, losses = (dict(zip(steps, generator.uniform(1, 2, size=30), strict=True)) for _ in range(2))
    table["loss"] = [losses[step] for step in table["step"]]
    table["learning_rate"] = [rates[step] for step in table["step"]]
    found = associate_study(table, exponents_by_step(table)).query("model == 'N400'")
    own = table.query("model == 'N400' and kind == 'field'")
    logs = {
        "ln v_rel": np.log(own["size"] / (400 * own["duration"])).groupby(own["step"]).mean(),
        "ln n/N": np.log(own["duration"] / 400).groupby(own["step"]).mean(),
    }
    curve = np.log(np.array(list(losses.values())))
    given = {name: values.to_numpy() for name, values in logs.items()}
    expected = associate(given, curve, {"learning_rate": np.array(list(rates.values()))})
    for one in expected:
        row = found.query("channel == @one.channel and kind == 'partial'").iloc[0]
        assert row["rho"] == pytest.approx(one.partial.rho), one.channel
        assert row["low"] == pytest.approx(one.partial.interval[0])


def test_association_needs_a_loss_and_twelve_steps():
    table = measure_study(study(), SETTINGS)
    assert associate_study(table, exponents_by_step(table)).empty
    table = measure_study(study(loss=lambda size, step: 1.0), SETTINGS)
    assert associate_study(table, exponents_by_step(table)).empty


def test_sensitivity_holds_each_setting_and_the_default_once_each():
    calls = []

    def fields():
        calls.append(1)
        return study(steps=(10,))

    table = measure_sensitivity(fields, SETTINGS, max_nodes=500)
    assert table.groupby("setting", sort=False)["is_default"].sum().to_dict() == dict.fromkeys(
        ("m_BA", "percentile", "sign", "order", "order_seed", "max_nodes"), 1
    )
    defaults = table[table["is_default"]]
    assert len({*defaults["D"]}) == 1
    assert len(calls) == 1 + 3 + 3 + 1 + 1 + 2 + 1
    other = table.query("setting == 'm_BA' and value == '3'").iloc[0]
    own = pd.concat(
        [
            measure_field(gaussian(size, 10), ProbeSettings(m_BA=3, seeds=(0, 1)), num_nodes=min(size, 500))
            for size in SIZES
        ]
    ).query("kind == 'field'")
    assert other["D"] == pytest.approx(fit_exponents(own["num_nodes"], own["size"], own["duration"]).D.slope)
