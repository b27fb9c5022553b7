"""The figure of losses against depth says what the fits say, and shows what they left out."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from toydepth.fit import FitTable, fit_curves
from toydepth.report.depth_figure import draw_loss_against_depth
from toydepth.report.depth_panels import complete_means
from toydepth.report.series import collect_series
from toydepth.report.style import NotDrawn, figure_style
from toydepth.report.words import alpha_text


def draw(curves, **options):
    table = fit_curves(curves, all_steps=True, num_bootstrap=50, **options)
    with figure_style():
        return table, draw_loss_against_depth(collect_series(curves, table))


def lines(ax, label):
    return [line for line in ax.get_lines() if line.get_label() == label]


def legend_texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_each_family_has_a_panel_of_losses_above_one_of_slopes(three_groups):
    _, figure = draw(three_groups)
    tops, bottoms = figure.axes[:3], figure.axes[3:]
    assert len(bottoms) == 3
    for ax in tops:
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert len(lines(ax, "replicate")) == 3 and len(lines(ax, "fit")) == 1
    assert tops[0].get_ylabel() == "Test loss (mean squared difference)"
    assert [ax.get_ylim() for ax in tops] == [tops[0].get_ylim()] * 3
    assert all(ax.get_xlabel() == "Depth ell (blocks)" for ax in bottoms)
    assert [tick.get_text() for tick in bottoms[0].get_xticklabels()] == ["3", "4", "6", "8", "12", "16"]
    assert bottoms[0].get_ylabel() == "Local slope"


def test_annotation_is_the_fit(three_groups):
    table, figure = draw(three_groups)
    ends = [row for row in table.last if row.weights == "average"]
    for row, ax in zip(ends, figure.axes[:3], strict=True):
        text = f"alpha = {row.alpha:.2f} [{row.low:.2f}, {row.high:.2f}]"
        assert legend_texts(ax.get_legend()) == [text]
        fit = lines(ax, "fit")[0]
        np.testing.assert_allclose(fit.get_ydata(), row.fit.predict(fit.get_xdata()))
        slope = np.polyfit(np.log(fit.get_xdata()), np.log(fit.get_ydata()), 1)[0]
        assert slope == pytest.approx(-row.alpha)
    assert figure.axes[1].get_legend().get_title().get_text() == "tied, euler init\nstep 20000"


def test_slopes_and_their_bars_are_the_fits(three_groups):
    table, figure = draw(three_groups)
    row = next(row for row in table.last if row.weights == "average")
    ax = figure.axes[3]
    np.testing.assert_allclose(lines(ax, "slope")[0].get_ydata(), row.fit.local_slopes["slope"])
    bars = [path.vertices[:, 1] for path in ax.collections[0].get_paths()]
    np.testing.assert_allclose(bars, row.fit.local_slopes[["low", "high"]])
    levels = [line.get_ydata()[0] for line in ax.get_lines() if len(set(line.get_ydata())) == 1]
    assert {1, 2, 3} <= set(levels)


def test_points_near_the_noise_floor_are_hollow(make_curves):
    curves = make_curves(noise_floor=4e-6, steps=(10, 100, 20000))
    table, figure = draw(curves)
    left_out = {(p.depth, p.loss) for p in table.last[1].fit.left_out}
    ax = figure.axes[0]
    hollow = lines(ax, "left out")
    assert {(line.get_xdata()[0], line.get_ydata()[0]) for line in hollow} == left_out != set()
    assert all(line.get_markerfacecolor() == "white" for line in hollow)
    floor = lines(ax, "noise floor")[0]
    assert floor.get_linestyle() == ":" and set(floor.get_ydata()) == {4e-6}
    assert ax.get_ylim()[0] < 4e-6
    assert {"left out of the fit", "noise floor"} <= set(legend_texts(figure.legends[0]))


def test_a_noise_floor_far_below_is_not_drawn(make_curves):
    _, figure = draw(make_curves(steps=(10, 100, 20000)))
    assert not lines(figure.axes[0], "noise floor")
    assert "noise floor" not in legend_texts(figure.legends[0])


def test_a_diverged_arm_is_on_the_upper_edge_and_spoils_no_mean(make_curves, diverge):
    _, figure = draw(diverge(make_curves(steps=(10, 100, 20000)), depth=12, replicate=1, after=10))
    ax = figure.axes[0]
    (mark,) = lines(ax, "no loss")
    assert mark.get_xdata()[0] == 12 and mark.get_marker() == "^"
    means = dict(zip(lines(ax, "mean")[0].get_xdata(), lines(ax, "mean")[0].get_ydata(), strict=True))
    assert np.isnan(means[12]) and means[16] > 0
    assert "diverged or missing" in legend_texts(figure.legends[0])


def test_a_loss_below_zero_is_on_the_lower_edge(make_curves):
    curves = make_curves(steps=(10, 100, 20000), noise_floor=1e-9)
    curves.loc[curves["depth"].eq(16) & curves["replicate"].eq(0), "test_loss_average"] = -1e-10
    _, figure = draw(curves)
    (mark,) = lines(figure.axes[0], "not above 0")
    assert mark.get_xdata()[0] == 16 and mark.get_marker() == "v"


def test_temperatures_share_the_panel_of_their_family(two_temperatures):
    table, figure = draw(two_temperatures)
    top, _ = figure.axes
    assert top.get_ylabel() == "Test loss (nats)"
    ends = {row.temperature: row for row in table.last if row.weights == "average"}
    assert legend_texts(top.get_legend()) == [f"T 0.1: {alpha_text(ends[0.1])}", f"T 1: {alpha_text(ends[1.0])}"]
    cold, warm = lines(top, "fit")
    assert cold.get_color() != warm.get_color() and cold.get_linestyle() != warm.get_linestyle()


def test_losses_of_different_kinds_have_axes_of_their_own(three_groups, two_temperatures):
    _, figure = draw(pd.concat([three_groups, two_temperatures], ignore_index=True))
    labels = [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel().startswith("Test loss")]
    assert labels == ["Test loss (mean squared difference)", "Test loss (nats)"]


def test_a_single_replicate_has_points_but_no_mean_of_them(make_curves):
    _, figure = draw(make_curves(replicates=1, average=None))
    assert not lines(figure.axes[0], "replicate")
    low, high = figure.axes[0].get_ylim()
    for label in ("mean", "fit"):
        assert all(low < value < high for value in lines(figure.axes[0], label)[0].get_ydata())
    assert legend_texts(figure.legends[0]) == ["loss", "power law"]
    assert figure.axes[0].get_legend().get_title().get_text().endswith("raw weights")
    assert not figure.axes[1].collections[0].get_paths()


def test_means_are_geometric():
    np.testing.assert_allclose(complete_means(np.array([[1.0], [100.0]])), [10.0])


def test_nothing_fitted_is_not_drawn(make_curves):
    with pytest.raises(NotDrawn, match="no group of arms could be fitted"):
        draw_loss_against_depth(collect_series(make_curves(depths=(6,)), FitTable([], [], [])))


def test_the_style_leaves_the_persons_own_alone(make_curves):
    before = dict(matplotlib.rcParams)
    draw(make_curves(steps=(10, 100, 20000)))
    assert dict(matplotlib.rcParams) == before
