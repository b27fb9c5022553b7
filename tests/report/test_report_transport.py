"""The figures of gradient transport: what is drawn, what is flagged, what is left out, and the same bytes each time."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from toydepth.report import transport_association_figure as association_figure
from toydepth.report import transport_compressibility_figure as compressibility_figure
from toydepth.report import transport_exponents_figure as exponents_figure
from toydepth.report import transport_nulls_figure as nulls_figure
from toydepth.report import transport_sensitivity_figure as sensitivity_figure
from toydepth.report import transport_sizes_figure as sizes_figure
from toydepth.report.transport_figures import write_transport_figures
from toydepth.report.transport_panels import family_look
from toydepth.transport.channels import associate_study
from toydepth.transport.probe import ProbeSettings
from toydepth.transport.study import StudyField, effects_by_step, exponents_by_step, measure_study

STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
SIZES = (100, 200, 400, 800)
KINDS = ("field", "as_is", "N0", "N1", "N2")


def synthetic_fields():
    """Two families that drift apart; the second has zero fields at step 2, the first one of 100 at step 5."""
    for place, family in enumerate(("tied", "independent")):
        for size in SIZES:
            for i, step in enumerate(STEPS):
                generator = np.random.default_rng([place, size, step])
                values = generator.normal(size=size)
                values = np.sign(values) * np.abs(values) ** (1 + place * i / 8)
                if (family, step) == ("independent", 2) or (family, step, size) == ("tied", 5, 100):
                    values = np.zeros(size)
                loss = 1 / (1 + i) + 0.05 * generator.normal() ** 2
                about = {"loss": loss, "learning_rate": 1e-3 * (1 - i / 20)}
                yield StudyField(family, f"N {size}", 0, step, values, about)


@pytest.fixture(scope="module")
def study():
    table = measure_study(synthetic_fields(), ProbeSettings(seeds=(0, 1)))
    exponents = exponents_by_step(table)
    association = associate_study(table, exponents, num_bootstrap=100)
    return {"table": table, "exponents": exponents, "effects": effects_by_step(table), "association": association}


def exponents_of(family="tied", steps=(0, 10, 100), kinds=KINDS, **more):
    """Rows as `exponents_by_step` has them, with D = 1 + step / 1000, z = 0.1, delta = D - z - 1."""
    rows = []
    for step in steps:
        for kind in kinds:
            D = 1 + step / 1000
            row = {"family": family, "step": step, "kind": kind, "num_sizes": 4, "num_capped": 0, "missing": None}
            for name, value in {"D": D, "z": 0.1, "delta": D - 1.1}.items():
                row |= {name: value, f"{name}_low": value - 0.05, f"{name}_high": value + 0.05, f"{name}_error": 0.02}
                row |= {f"{name}_r_squared": 0.9, f"{name}_curved": False}
            rows.append(row | more)
    return pd.DataFrame(rows)


def labelled(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_files_are_the_same_each_time_whatever_the_persons_style(study, tmp_path):
    study = {name: table[table["family"] == "tied"] for name, table in study.items()}
    few = {name: table[table["step"].isin([0, 10, 5000])] for name, table in study.items() if "step" in table}
    study |= few | {"association": study["association"].iloc[:12], "cascades": few["table"]}
    first = write_transport_figures(study | {"sensitivity": sensitivity_of("tied")}, tmp_path / "a")
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "other", "axes.grid": True}):
        second = write_transport_figures(study | {"sensitivity": sensitivity_of("tied")}, tmp_path / "b")
    names = ["exponents", "sizes", "compressibility", "nulls", "association", "sensitivity"]
    assert [path.name for path in first.paths] == [f"transport_{x}.{end}" for x in names for end in ("png", "svg")]
    assert [path.read_bytes() for path in first.paths] == [path.read_bytes() for path in second.paths]
    assert first.skipped == second.skipped == [("transport_sensitivity", "tied, sign absolute: no exponents: 2 sizes")]


def test_exponents_of_a_study_are_drawn_with_gaps_and_marks(study):
    exponents = study["exponents"]
    axes = exponents_figure._draw(exponents, 0.95).axes
    for ax, name, reference in zip(axes, ("D", "z", "delta"), (1, 0, 0), strict=True):
        for family in ("tied", "independent"):
            own = exponents.query(f"family == '{family}' and kind == 'field'")
            (line,) = labelled(ax, family)
            np.testing.assert_array_equal(line.get_xdata(), own["step"])
            np.testing.assert_array_equal(line.get_ydata(), own[name])
        assert np.isnan(labelled(ax, "independent")[0].get_ydata()[2])
        (fewer,) = labelled(ax, "_fewer")
        assert fewer.get_xdata().tolist() == [5] and fewer.get_color() == family_look(0).colour
        assert labelled(ax, "_capped") == []
        assert set(labelled(ax, "_reference")[0].get_ydata()) == {reference}
    assert axes[2].get_xscale() == "symlog" and axes[2].get_xlim()[0] < 0
    assert [text.get_text() for text in axes[2].get_xticklabels()] == ["0", "1", "10", "100", "1000"]


def test_a_step_that_stands_alone_has_bars_and_capped_points_are_hollow():
    exponents = exponents_of(steps=(1, 10, 100, 1000))
    exponents.loc[exponents["step"] == 10, ["D", "z", "delta", "D_low", "D_high"]] = np.nan
    exponents.loc[exponents["step"] == 100, "num_capped"] = 2
    figure = exponents_figure._draw(exponents, 0.9)
    (bar,) = [one for one in figure.axes[0].collections if hasattr(one, "get_segments")]
    np.testing.assert_allclose(np.array(bar.get_segments()), [[[1, 0.951], [1, 1.051]]])
    (capped,) = labelled(figure.axes[0], "_capped")
    assert capped.get_xdata().tolist() == [100] and capped.get_markerfacecolor() == "white"
    assert legend(figure) == ["tied", "hollow: capped cascades"]
    assert figure.legends[0].get_title().get_text() == "shaded: 90 % interval"
    assert figure.axes[0].get_xscale() == "log"


def test_one_step_has_a_row_a_family():
    figure = exponents_figure._draw(pd.concat([exponents_of("a", (7,)), exponents_of("b", (7,), num_capped=1)]), 0.95)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["a", "b"]
    assert figure.legends[0].get_title().get_text() == "Step 7; bars: 95 % interval"
    for row, (name, fill) in enumerate((("a", family_look(0).colour), ("b", "white"))):
        (point,) = labelled(figure.axes[1], name)
        assert (point.get_xdata()[0], point.get_ydata()[0]) == (0.1, row)
        assert point.get_markerfacecolor() == fill
    np.testing.assert_allclose(labelled(figure.axes[1], "_interval")[1].get_xdata(), [0.05, 0.15])


def test_ten_families_are_told_apart_and_more_are_named(tmp_path):
    exponents = pd.concat([exponents_of(f"family {i}") for i in range(12)], ignore_index=True)
    figure = exponents_figure._draw(exponents, 0.95)
    lines = [labelled(figure.axes[0], f"family {i}") for i in range(12)]
    assert list(map(len, lines)) == [1] * 10 + [0] * 2
    assert len({(one.get_color(), one.get_marker()) for (one,) in lines[:10]}) == 10
    assert len(labelled(figure.axes[0], "_interval")) == 10 and not figure.axes[0].collections[0].get_paths()
    skipped = exponents_figure.write_transport_exponents_figure(exponents, tmp_path).skipped
    assert skipped == [("transport_exponents", "family 10; family 11: not shown, 10 families is the most; give fewer")]


def test_what_has_no_exponents_is_named_and_its_old_figure_goes(tmp_path):
    missing = pd.DataFrame([{"family": "zero", "step": 0, "kind": "field", "num_sizes": 0, "missing": "0 sizes"}])
    both = pd.concat([exponents_of(), missing], ignore_index=True)
    reason = "zero: no exponent at any step: 0 sizes"
    drawn = exponents_figure.write_transport_exponents_figure(both, tmp_path)
    assert len(drawn.paths) == 2 and drawn.skipped == [("transport_exponents", reason)]
    none = exponents_figure.write_transport_exponents_figure(missing, tmp_path)
    assert none.paths == [] and none.skipped == drawn.skipped and not list(tmp_path.iterdir())
    empty = missing.iloc[:0]
    assert compressibility_figure.write_transport_compressibility_figure(empty, tmp_path).skipped == [
        ("transport_compressibility", "no family of models")
    ]


def test_compressibility_shares_an_axis_that_holds_its_least_value(study):
    axes = compressibility_figure._draw(study["exponents"]).axes
    tied = study["exponents"].query("family == 'tied' and kind == 'field'")
    for ax, name in zip(axes, ("D", "z", "delta"), strict=True):
        np.testing.assert_array_equal(labelled(ax, "tied")[0].get_ydata(), tied[f"{name}_r_squared"])
        assert ax.get_ylim() == axes[0].get_ylim()
    least = study["exponents"].query("kind == 'field'")[["D_r_squared", "z_r_squared", "delta_r_squared"]].min().min()
    assert axes[0].get_ylim()[0] < least and axes[0].get_ylim()[1] > 1


def cascades_of(step, kinds=("field", "N2")):
    """Cascades on lines of slope 1 and 0.25 exactly, but for two that scatter about them."""
    nodes = np.repeat([100, 400, 1600], 2)
    scatter = np.tile([1.1, 1 / 1.1], 3)
    base = {"family": "tied", "step": step, "num_nodes": nodes, "size": 0.2 * nodes * scatter, "problem": None}
    columns = base | {"duration": 2 * nodes**0.25 * scatter, "capped": False}
    return pd.concat([pd.DataFrame(columns | {"kind": kind}) for kind in kinds], ignore_index=True)


def test_sizes_are_drawn_at_the_last_step_with_exponents():
    table = pd.concat([cascades_of(3), cascades_of(9)], ignore_index=True)
    exponents = exponents_of(steps=(3, 9), D=1.0, z=0.25, z_curved=True, z_error=None)
    exponents.loc[exponents["step"] == 9, ["D", "z", "delta"]] = np.nan
    table.loc[table["num_nodes"].eq(1600) & table["step"].eq(3) & table["size"].lt(320), "capped"] = True
    figure = sizes_figure._draw(table, exponents)
    assert legend(figure) == ["tied, step 3: D 1.000 ± 0.020, z 0.250 (no error); z curved; capped at N 1600"]
    for ax, law in zip(figure.axes, (lambda x: 0.2 * x, lambda x: 2 * x**0.25), strict=True):
        (line,), (means,) = labelled(ax, "tied"), labelled(ax, "_means")
        np.testing.assert_allclose(line.get_ydata(), law(line.get_xdata()))
        np.testing.assert_allclose(means.get_ydata(), law(np.array([100, 400, 1600])))
        np.testing.assert_allclose(labelled(ax, "_N2")[0].get_ydata(), law(labelled(ax, "_N2")[0].get_xdata()))
        assert labelled(ax, "_N0") == []
        assert len(labelled(ax, "_cascades")[0].get_xdata()) == 5
        assert labelled(ax, "_capped")[0].get_xdata().tolist() == [1600]


def test_fitted_lines_of_a_study_are_least_squares(study):
    table, exponents = study["table"], study["exponents"]
    axes = sizes_figure._draw(table, exponents).axes
    own = table.query("family == 'tied' and step == 5000 and kind == 'field'")
    for ax, name in zip(axes, ("size", "duration"), strict=True):
        slope, intercept = np.polyfit(np.log(own["num_nodes"]), np.log(own[name]), 1)
        (line,) = labelled(ax, "tied")
        np.testing.assert_allclose(np.log(line.get_ydata()), intercept + slope * np.log(line.get_xdata()))


def test_nulls_have_a_column_a_family_and_a_gap_where_the_field_has_one(study):
    figure = nulls_figure._draw(study["exponents"], study["effects"], 0.95)
    axes = np.array(figure.axes).reshape(6, 2)
    assert [ax.get_title() for ax in axes[0]] == ["tied", "independent"]
    for column, family in enumerate(("tied", "independent")):
        exponents, effects = (study[name].query(f"family == '{family}'") for name in ("exponents", "effects"))
        for row, channel in enumerate(("D", "z", "delta")):
            for kind in KINDS:
                own = exponents[exponents["kind"] == kind].set_index("step")[channel]
                (line,) = labelled(axes[2 * row, column], kind)
                np.testing.assert_array_equal(line.get_ydata(), own.reindex(STEPS))
            for effect in ("distribution", "assignment"):
                chosen = effects["channel"].eq(channel) & effects["effect"].eq(effect)
                own = effects[chosen].set_index("step")["mean"]
                (line,) = labelled(axes[2 * row + 1, column], effect)
                np.testing.assert_array_equal(line.get_ydata(), own.reindex(STEPS))
    # Nulls have no row at all at step 2 of the second family: a line across it would be made up.
    assert np.isnan(labelled(axes[0, 1], "N0")[0].get_ydata()[2])


def test_nulls_of_one_step_stand_side_by_side_and_five_families_are_too_many(tmp_path):
    exponents = pd.concat([exponents_of(f"f{i}", (7,)) for i in range(5)], ignore_index=True)
    effects = pd.DataFrame(columns=["family", "step", "effect", "channel", "mean", "low", "high"])
    figure = nulls_figure._draw(exponents, effects, 0.95)
    assert len(figure.axes) == 12 and figure.axes[0].get_title() == "f0, step 7"
    assert [labelled(figure.axes[0], kind)[0].get_xdata()[0] for kind in KINDS] == [0, 1, 2, 3, 4]
    assert nulls_figure.write_transport_nulls_figure(exponents, effects, tmp_path).skipped == [
        ("transport_nulls", "f4: not shown, 4 families is the most; give fewer")
    ]


def association_of(channel, kind, rho, p=0.5, trend="", problem=None, model="N 8"):
    spread = {"low": None, "high": None} if rho is None else {"low": rho - 0.1, "high": rho + 0.1}
    row = {"family": "tied", "model": model, "channel": channel, "kind": kind, "rho": rho, "p_holm": p}
    return row | spread | {"trend": trend, "problem": problem}


def test_correlations_are_coloured_by_p_hollow_for_trends_and_named_where_undefined(tmp_path):
    rows = [
        association_of("ln v_rel", "raw", 0.6, p=0.01),
        association_of("ln v_rel", "given_step", None, p=None, problem="a constant series"),
        association_of("ln n/N", "raw", -0.7, p=0.01, trend="given step"),
        association_of("ln n/N", "given_step", 0.2, trend="given step"),
        association_of("D", "raw", 0.1, model="all sizes", trend=np.nan),
    ]
    figure = association_figure._draw(pd.DataFrame(rows), 0.95)
    raw, given = figure.axes
    assert [text.get_text() for text in raw.get_yticklabels()] == [
        "tied, N 8    ln v_rel",
        "ln n/N",
        "tied, all sizes    D",
    ]
    drawn = {name: labelled(raw, name)[0] for name in ("ln v_rel", "ln n/N", "D")}
    assert [(one.get_xdata()[0], one.get_ydata()[0]) for one in drawn.values()] == [(0.6, 0), (-0.7, 1), (0.1, 2)]
    sure, unsure = association_figure._SURE, association_figure._UNSURE
    assert [one.get_color() for one in drawn.values()] == [sure, sure, unsure]
    assert [one.get_markerfacecolor() for one in drawn.values()] == [sure, "white", unsure]
    np.testing.assert_allclose(labelled(raw, "_interval")[1].get_xdata(), [-0.8, -0.6])
    assert [text.get_text() for text in given.texts] == ["undefined", "trend: lost given step"]
    written = association_figure.write_transport_association_figure(pd.DataFrame(rows), tmp_path)
    assert written.skipped == [
        ("transport_association", "the correlation given the step is not defined in 1 rows: a constant series")
    ]


def test_no_loss_and_too_many_rows(study, tmp_path):
    none = association_figure.write_transport_association_figure(study["association"].iloc[:0], tmp_path)
    assert none.skipped == [("transport_association", "no model has a loss at 12 steps or more")] and not none.paths
    many = pd.DataFrame([association_of("D", "raw", 0.1, model=f"N {i}") for i in range(61)])
    figure = association_figure._draw(many, 0.95)
    assert len(figure.axes[0].get_yticks()) == 60
    (told,) = association_figure.write_transport_association_figure(many, tmp_path).skipped
    assert told[1] == "1 rows are not shown, 60 is the most: of tied, N 60"


def sensitivity_of(family, shift=0.0):
    """As `measure_sensitivity` has it: the given value of each setting first."""
    values = [("m_BA", "2", 0.0), ("m_BA", "1", -0.02), ("m_BA", "3", 0.03), ("sign", "signed", 0.0)]
    tables = []
    for setting, value, moved in [*values, ("sign", "absolute", None)]:
        row = exponents_of(family, (100,), ("field",)).assign(setting=setting, value=value, is_default=moved == 0)
        for name in ("D", "D_low", "D_high"):
            row[name] = row[name] + moved + shift if moved is not None else np.nan
        tables.append(row.assign(missing="2 sizes" if moved is None else None))
    return pd.concat(tables, ignore_index=True)


def test_settings_are_in_order_with_the_default_marked_and_what_is_missing_named(tmp_path):
    table = sensitivity_of("tied")
    table.loc[table["value"] == "3", "num_capped"] = 1
    figure = sensitivity_figure._draw(table, 0.95)
    ax = figure.axes[0]
    names = [text.get_text().split() for text in ax.get_yticklabels()]
    assert names == [["m_BA", "1"], ["[2]"], ["3"], ["sign", "[signed]"], ["absolute"]]
    (points,), (capped,), (default,) = (labelled(ax, name) for name in ("tied", "_capped", "_default"))
    found = dict(zip(points.get_ydata(), points.get_xdata(), strict=True))
    assert found == pytest.approx({0: 1.08, 1: 1.1, 3: 1.1})
    assert capped.get_ydata() == [2] and capped.get_xdata() == pytest.approx([1.13])
    assert set(default.get_xdata()) == {1.1}
    (band,) = ax.patches
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((1.05, 1.15))
    assert [text.get_text() for text in ax.texts] == ["no exponents"]
    assert sensitivity_figure.write_transport_sensitivity_figure(table, tmp_path).skipped == [
        ("transport_sensitivity", "tied, sign absolute: no exponents: 2 sizes")
    ]


def test_families_of_a_sensitivity_stand_apart_and_three_have_no_bands():
    figure = sensitivity_figure._draw(pd.concat([sensitivity_of(f"f{i}", i / 100) for i in range(3)]), 0.95)
    ax = figure.axes[0]
    assert not ax.patches and len(labelled(ax, "_default")) == 3
    assert len({labelled(ax, f"f{i}")[0].get_ydata()[0] for i in range(3)}) == 3
    assert legend(figure) == ["f0, step 100", "f1, step 100", "f2, step 100"]
