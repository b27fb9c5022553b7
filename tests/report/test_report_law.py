"""Figures of laws: what they show against what is known, and which are not there."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from toydepth.fit.law import Law, Term, fit_law, make_law
from toydepth.fit.law.choice.multiverse import multiverse
from toydepth.fit.law.profile import threshold
from toydepth.report.law_decomposition import draw_decomposition
from toydepth.report.law_figures import write_law_figures
from toydepth.report.law_multiverse_figure import _draw, write_multiverse_figure
from toydepth.report.law_panels import _tick, thin
from toydepth.report.law_profiles import draw_profiles
from toydepth.report.law_residuals import draw_residuals, running_median

COLUMNS = {"m": "m", "D": "D"}
NAMES = ["law_residuals", "law_decomposition", "law_profiles"]


def make_runs(noise=0.01, repeats=1):
    m, D = (np.tile(x.ravel(), repeats) for x in np.meshgrid([32.0, 64, 128, 256, 512], [1e8, 1e9, 1e10, 1e11, 1e12]))
    loss = 30 / m + 400 / D**0.3 + 1.5
    return pd.DataFrame({"m": m, "D": D, "loss": loss * np.exp(noise * np.random.default_rng(0).normal(size=m.size))})


@pytest.fixture(scope="module")
def fit():
    return fit_law(make_runs(), "decomposed", COLUMNS)


@pytest.fixture(scope="module")
def unknown():
    """m and D move together, so that neither term is known."""
    runs = make_runs(repeats=3)
    return fit_law(runs[np.isclose(np.log10(runs["D"]) - 8, np.log2(runs["m"]) - 5)], "decomposed", COLUMNS)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_figure_is_written_the_same_each_time_whatever_the_persons_style(fit, tmp_path):
    first = write_law_figures(fit, tmp_path / "a")
    assert [path.name for path in first.paths] == [f"{name}.{kind}" for name in NAMES for kind in ("png", "svg")]
    assert first.skipped == []
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "other", "axes.grid": True}):
        second = write_law_figures(fit, tmp_path / "b")
    assert [path.read_bytes() for path in first.paths] == [path.read_bytes() for path in second.paths]
    assert all(b"<dc:date>" not in path.read_bytes() for path in first.paths if path.suffix == ".svg")


def test_residuals_are_those_of_ln_loss_in_per_cent(fit):
    axes = draw_residuals(fit).axes[:3]
    assert [ax.get_xlabel() for ax in axes] == ["Fitted loss", "Width m", "Tokens D"]
    runs = make_runs()
    expected = 100 * np.log(runs["loss"] / fit.predict(runs)["loss"])
    for ax, x in zip(axes, (fit.predict(runs)["loss"], runs["m"], runs["D"]), strict=True):
        np.testing.assert_allclose(
            np.asarray(ax.collections[0].get_offsets()), np.column_stack([x, expected]), rtol=1e-9
        )
    assert f"({2 * 100 * fit.residual_std:.2f} %)" in legend(draw_residuals(fit))[1]


def test_residuals_of_ln_loss_also_where_the_loss_was_fitted():
    runs = make_runs()
    fit = fit_law(runs, "decomposed", COLUMNS, objective="linear")
    drawn = np.asarray(draw_residuals(fit).axes[1].collections[0].get_offsets())[:, 1]
    np.testing.assert_allclose(drawn, 100 * np.log(runs["loss"] / fit.predict(runs)["loss"]), rtol=1e-9)


def test_without_noise_the_rows_lie_on_the_stacked_terms():
    figure = draw_decomposition(fit_law(make_runs(noise=0.0), "decomposed", COLUMNS))
    for ax, name in zip(figure.axes, ("m", "D"), strict=True):
        x, y = np.asarray(ax.collections[-1].get_offsets()).T
        # The medians of m and D are 128 and 1e10.
        m, D = (x, 1e10) if name == "m" else (128, x)
        np.testing.assert_allclose(y, 30 / m + 400 / D**0.3 + 1.5, rtol=1e-6)
        line = ax.lines[0].get_xydata()
        np.testing.assert_allclose(np.interp(np.log(x), np.log(line[:, 0]), line[:, 1]), y, rtol=1e-3)
        # Areas from below: L0, the other term, the own term.
        tops = [area.get_paths()[0].vertices[:, 1].max() for area in ax.collections[:3]]
        assert tops[0] == pytest.approx(1.5, rel=1e-6)
        assert tops[1] == pytest.approx(1.5 + (400 / 1e10**0.3 if name == "m" else 30 / 128), rel=1e-6)
        assert tops[2] == pytest.approx(y.max(), rel=1e-6)


def test_profiles_cross_the_threshold_where_the_interval_ends(fit):
    goal = threshold(fit.estimate, 0.95)
    for ax, name in zip(draw_profiles(fit).axes, ("alpha_m", "alpha_D", "L0"), strict=True):
        parabola, curve = (line.get_xydata() for line in ax.lines[:2])
        one = fit.parameters[name]
        for end in (one.low, one.high):
            assert np.interp(end, *curve.T) == pytest.approx(goal, rel=0.02)
        assert curve[:, 1].min() == pytest.approx(0, abs=1e-6)
        shaded = ax.patches[0].get_extents().transformed(ax.transData.inverted())
        assert (shaded.x0, shaded.x1) == pytest.approx((one.low, one.high))
        if name != "L0":
            reach = np.sqrt(goal) * one.standard_error
            assert np.interp(one.value + reach, *parabola.T) == pytest.approx(goal, rel=0.02)


def test_what_is_not_identified_is_grey_and_says_so(unknown):
    assert {"alpha_m", "alpha_D"} <= set(unknown.unidentified)
    for ax in draw_profiles(unknown).axes[:2]:
        assert texts(ax) == ["not identified"]
        assert not ax.patches
        assert ax.lines[0].get_color() == "0.6"
    figure = draw_decomposition(unknown)
    assert all(area.get_hatch() for area in figure.axes[0].collections[1:3])
    assert legend(figure)[:2] == ["term of Tokens D: not identified", "term of Width m: not identified"]


def test_a_parameter_that_has_vanished_is_profiled_from_nothing():
    runs = make_runs()
    runs["loss"] = (30 / runs["m"] ** 0.5) * np.exp(0.01 * np.random.default_rng(0).normal(size=len(runs)))
    fit = fit_law(runs, Law("own", (Term("m"),)), {"m": "m"})
    assert "L0" in fit.unidentified
    curve = draw_profiles(fit).axes[1].lines[0].get_xydata()
    # The lowest loss is 30 / 512^.5 = 1.33.
    assert 0 < curve[0, 0] < 0.01
    assert 0.01 < curve[-1, 0] < 1.4
    assert np.all(np.diff(curve[:, 1]) > -1e-6)


def test_profiles_have_no_spikes(public):
    """Of this table some starts end in another valley, 40 higher."""
    table = public("farseer_nd.csv").query("split == 'train'")
    fit = fit_law(table, "decomposed", {"m": "width", "ell": "depth", "D": "D"}, loss="loss_bpc")
    for ax in draw_profiles(fit).axes:
        curve = ax.lines[1 if ax.patches else 0].get_ydata()
        inside = np.flatnonzero(curve < ax.get_ylim()[1])
        steps = np.diff(curve[inside[0] : inside[-1] + 1])
        steps = np.sign(steps[np.abs(steps) > 1e-3])  # the grids meet in points that differ by rounding
        assert np.all(np.diff(steps) >= 0)  # down, then up


def test_laws_without_a_free_exponent_show_their_coefficients():
    fit = fit_law(make_runs(), make_law("universal", ["m", "D"]), COLUMNS, intervals="covariance")
    figure = draw_profiles(fit)
    assert [ax.get_xlabel() for ax in figure.axes] == ["c_m", "c_D", "L0"]
    assert legend(figure)[-1] == "95 % interval, covariance"


def test_offsets_and_own_columns_are_named(tmp_path):
    runs = make_runs().rename(columns={"m": "layers", "D": "heads"})
    fit = fit_law(runs, "decomposed", {"ell": "layers", "x": "heads"}, offsets={"ell": 2})
    assert [ax.get_xlabel() for ax in draw_decomposition(fit).axes] == ["Depth ell - 2", "heads (x)"]
    one = fit_law(runs, Law("data", (Term("D"),), 0.0), {"D": "layers"})
    assert len(write_law_figures(one, tmp_path).paths) == 6
    assert not any("L0" in name for name in legend(draw_decomposition(one)))


def test_many_rows_are_thinned_and_it_says_so():
    runs = make_runs(repeats=100)
    fit = fit_law(runs, "decomposed", COLUMNS, num_starts=8, intervals="covariance")
    for ax in [*draw_residuals(fit).axes[:3], *draw_decomposition(fit).axes]:
        assert ax.get_title(loc="right") == "2000 of 2500 rows shown"
        assert len(ax.collections[-1 if len(ax.collections) > 1 else 0].get_offsets()) == 2000


def test_thinning_is_even_over_the_sorted_order():
    x = np.random.default_rng(0).permutation(10_001).astype(float)
    assert x[thin(x, 101)].tolist() == list(range(0, 10_001, 100))


def test_running_median_keeps_equal_values_together():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 40, 500) / 7, rng.normal(size=500)
    at, median = running_median(x, y)
    assert 10 <= len(at) <= 15
    assert np.all(np.diff(at) > 0)
    x = np.repeat([1.0, 2.0, 5.0], 200)
    y = rng.normal(size=600)
    at, median = running_median(x, y)
    assert at.tolist() == [1, 2, 5]
    assert median.tolist() == [np.median(y[x == value]) for value in (1, 2, 5)]


@pytest.mark.parametrize(
    ("value", "largest", "text"),
    [
        (500, 5000, "500"),
        (0.02, 1, "0.02"),
        (1e4, 2e4, "10000"),
        (1e4, 1e5, "$10^{4}$"),
        (3e9, 1e10, r"$3{\cdot}10^{9}$"),
    ],
)
def test_ticks_are_written_as_people_do(value, largest, text):
    assert _tick(value, largest) == text


@pytest.fixture(scope="module")
def found():
    return multiverse(
        make_runs(), make_law("decomposed", ["m", "D"]), COLUMNS, exclusions=[0, 5], objectives=["log", "student"]
    )


def test_the_curve_is_sorted_and_the_dots_say_what_was_chosen(found):
    figure = _draw(found)
    lines = [label.get_text() for label in figure.axes[2].get_yticklabels()]
    assert lines == ["excluded 0", "excluded 5", "objective log", "objective student 4"]
    frame = found.frame[found.frame["law"] == "decomposed"].sort_values("alpha_m")
    values = [line.get_ydata()[0] for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert values == frame["alpha_m"].tolist()
    expected = [
        np.flatnonzero(rows).tolist()
        for rows in (
            frame["exclude_highest"] == 0, frame["exclude_highest"] == 5,
            frame["objective"] == "log", frame["objective"] == "student 4",
        )
    ]  # fmt: skip
    drawn = [list(line.get_xdata()) for line in figure.axes[2].lines if line.get_marker() == "o"]
    assert drawn == expected
    assert figure.axes[0].get_title(loc="left") == "alpha_m: 4 of 4 fits"


def test_the_multiverse_gives_the_same_bytes(found, tmp_path):
    first, second = (write_multiverse_figure(found, tmp_path / name).paths for name in "ab")
    assert [path.name for path in first] == ["law_multiverse.png", "law_multiverse.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_multiverse_without_an_exponent_is_skipped_with_a_reason(tmp_path):
    (tmp_path / "law_multiverse.png").write_bytes(b"of an earlier table")
    found = multiverse(make_runs(), make_law("universal", ["m", "D"]), COLUMNS, exclusions=[0], objectives=["log"])
    figures = write_multiverse_figure(found, tmp_path)
    assert figures.skipped == [("law_multiverse", "no exponent is free")]
    assert not list(tmp_path.iterdir())


def test_an_exponent_that_no_combination_determines_is_said_not_dropped(tmp_path):
    rng = np.random.default_rng(0)
    runs = make_runs(repeats=2).assign(ell=lambda t: t["m"] / 16 * np.exp(0.01 * rng.normal(size=len(t))))
    law = make_law("decomposed", ["m", "ell", "D"])
    found = multiverse(runs, law, {}, exclusions=[0], offsets=[{}], objectives=["log"])
    figures = write_multiverse_figure(found, tmp_path)
    assert figures.skipped == [
        ("law_multiverse", "no combination determines alpha_m"),
        ("law_multiverse", "no combination determines alpha_ell"),
    ]
    assert len(figures.paths) == 2
