"""Figures along training and against temperature."""

import numpy as np
import pandas as pd
import pytest

from toydepth.fit import fit_curves
from toydepth.report.curves_figure import draw_training_curves
from toydepth.report.series import collect_series
from toydepth.report.step_figure import draw_alpha_against_step
from toydepth.report.style import NotDrawn, figure_style
from toydepth.report.temperature_figure import draw_temperature


def draw(drawing, curves, **options):
    table = fit_curves(curves, all_steps=True, num_bootstrap=50, **options)
    with figure_style():
        return table, drawing(collect_series(curves, table))


def named(ax):
    return {line.get_label(): line for line in ax.get_lines() if not str(line.get_label()).startswith("_")}


def test_alpha_against_step_has_a_line_and_a_band_a_group(three_groups):
    table, figure = draw(draw_alpha_against_step, three_groups)
    (ax,) = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("Training step", "Depth exponent alpha", "log")
    assert list(named(ax)) == ["tied, zero init", "tied, euler init", "independent, zero init"]
    assert len(ax.collections) == 3
    rows = next(rows for rows in table.trajectories if rows[0].weights == "average")
    line = named(ax)["tied, zero init"]
    np.testing.assert_allclose(line.get_xdata(), [row.step for row in rows if row.step > 0])
    np.testing.assert_allclose(line.get_ydata(), [row.alpha for row in rows if row.step > 0])
    texts = " ".join(text.get_text().replace("\n", " ") for text in ax.texts)
    assert "ensemble averaging 1" in texts and "random local errors 3" in texts and "order errors 2" in texts


def test_lines_differ_without_their_colour(three_groups):
    _, figure = draw(draw_alpha_against_step, three_groups)
    lines = list(named(figure.axes[0]).values())
    assert len({line.get_marker() for line in lines}) == len({str(line._dash_pattern) for line in lines}) == 3
    weights = np.array([0.299, 0.587, 0.114])
    greys = sorted(float(weights @ [int(line.get_color()[i : i + 2], 16) for i in (1, 3, 5)]) for line in lines)
    assert np.diff(greys).min() > 40


def test_wide_early_intervals_do_not_set_the_limits(make_curves):
    curves = make_curves()
    early = curves["step"].lt(30) & curves["replicate"].eq(0)
    curves.loc[early, "test_loss_average"] *= curves.loc[early, "depth"].astype(float) ** 30
    _, figure = draw(draw_alpha_against_step, curves)
    low, high = figure.axes[0].get_ylim()
    assert -1.6 < low < 0 and 3 < high <= 6


def test_raw_weights_are_faded_and_named(three_groups, make_curves):
    raw = make_curves("raw", block="rk2", average=None)
    _, figure = draw(draw_alpha_against_step, pd.concat([three_groups, raw], ignore_index=True))
    lines = named(figure.axes[0])
    faded = lines["tied, zero init, rk2 block (raw weights)"]
    assert faded.get_alpha() < 1 and faded.get_linewidth() < lines["tied, zero init"].get_linewidth()


def test_the_longest_average_is_shown(make_curves):
    short, long = make_curves(average=0.9, alpha=(1.0, 1.0)), make_curves(average=0.999, alpha=(2.0, 2.0))
    long["test_loss"] = short["test_loss"]
    both = pd.concat([short, long], ignore_index=True)
    _, figure = draw(draw_alpha_against_step, both)
    (line,) = named(figure.axes[0]).values()
    assert line.get_ydata()[-1] == pytest.approx(2.0, abs=0.2)


def test_many_groups_have_bars_at_the_last_step_in_place_of_bands(make_curves):
    curves = pd.concat(
        [make_curves(temperature=T, loss="kl", alpha=(1, 1 + T)) for T in (0.1, 0.2, 0.5, 0.7, 1.0)], ignore_index=True
    )
    table, figure = draw(draw_alpha_against_step, curves)
    (ax,) = figure.axes
    assert not ax.collections
    bars = [line.get_ydata() for line in ax.get_lines() if line.get_label() == "_interval"]
    assert [tuple(bar) for bar in bars] == [(row.low, row.high) for row in table.last if row.weights == "average"]
    assert list(named(ax)) == ["T 0.1", "T 0.2", "T 0.5", "T 0.7", "T 1"]
    assert figure.legends[0].get_title().get_text().startswith("tied, zero init; bars at the last step: 95 % interval")


def test_one_fitted_step_is_no_trajectory(make_curves):
    with pytest.raises(NotDrawn, match="two steps"):
        draw(draw_alpha_against_step, make_curves(steps=(0, 100)))


def test_training_curves_have_a_line_a_depth_and_one_axis(three_groups):
    _, figure = draw(draw_training_curves, three_groups)
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "tied, zero init", "tied, euler init", "independent, zero init"
    ]  # fmt: skip
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    ax = figure.axes[0]
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", "Training step")
    assert list(named(ax)) == ["3", "4", "6", "8", "12", "16"] and len(ax.collections) == 6
    assert figure.legends[0].get_title().get_text() == "Depth ell"
    arms = three_groups[three_groups["experiment"].eq("tied_zero") & three_groups["depth"].eq(3)]
    end = arms[arms["step"].eq(20000)]["test_loss_average"]
    assert named(ax)["3"].get_ydata()[-1] == pytest.approx(np.exp(np.log(end).mean()))
    assert named(ax)["3"].get_xdata()[0] > 0


def test_a_diverged_arm_is_thin_and_outside_means_and_limits(make_curves, diverge):
    whole = make_curves(replicates=2)
    curves = diverge(whole, depth=12, replicate=1, after=300)
    _, figure = draw(draw_training_curves, curves)
    (ax,) = figure.axes
    lines = [line for line in ax.get_lines() if line.get_label() == "diverged"]
    assert len(lines) == 1 and lines[0].get_linewidth() < 1
    alone = whole[whole["depth"].eq(12) & whole["replicate"].eq(0) & whole["step"].gt(0)]
    np.testing.assert_allclose(named(ax)["12"].get_ydata(), alone["test_loss_average"])
    assert ax.get_ylim()[1] < curves["test_loss_average"].max()
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "diverged"


def test_one_replicate_has_no_band(make_curves):
    _, figure = draw(draw_training_curves, make_curves(replicates=1, average=None))
    assert not figure.axes[0].collections
    assert figure.axes[0].get_title(loc="left") == "tied, zero init (raw weights)"


def test_no_loss_after_step_0_is_not_drawn(make_curves):
    with pytest.raises(NotDrawn, match="after step 0"):
        draw(draw_training_curves, make_curves(steps=(0,)))


def test_temperature_shows_the_last_exponents_with_intervals(two_temperatures):
    table, figure = draw(draw_temperature, two_temperatures)
    (ax,) = figure.axes
    assert (ax.get_xlabel(), ax.get_xscale()) == ("Temperature T", "log")
    ends = sorted((row for row in table.last if row.weights == "average"), key=lambda row: row.temperature)
    line = ax.containers[0].lines[0]
    np.testing.assert_allclose(line.get_xdata(), [0.1, 1.0])
    np.testing.assert_allclose(line.get_ydata(), [row.alpha for row in ends])
    bars = [path.vertices[:, 1] for path in ax.collections[0].get_paths()]
    np.testing.assert_allclose(bars, [(row.low, row.high) for row in ends])


def test_one_temperature_is_not_drawn(three_groups):
    with pytest.raises(NotDrawn, match="two temperatures"):
        draw(draw_temperature, three_groups)
