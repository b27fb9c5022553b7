"""The figures of readouts and of histograms: every number at its place."""

import numpy as np
import pandas as pd

from toydepth.hidden import Accumulator, measure_states
from toydepth.report.hidden_histograms_figure import _draw as draw_histograms
from toydepth.report.hidden_histograms_figure import write_hidden_histograms_figure
from toydepth.report.hidden_readouts_figure import _draw as draw_readouts
from toydepth.report.hidden_readouts_figure import write_hidden_readouts_figure


def layers(run, depth=3):
    place = np.arange(depth + 1)
    rest = {"cross_entropy": 5.0 - place, "cross_entropy_error": 0.1}
    last = np.r_[4.0 - place[:-1], np.nan]
    rest |= {"cross_entropy_last_block": last, "cross_entropy_last_block_error": 0.1}
    return pd.DataFrame({"run": run, "network": "model", "layer": place, "relative_depth": place / depth, **rest})


def test_a_line_a_model_and_readout():
    first = layers("x/a").assign(network="model at position 0", cross_entropy=np.nan)
    (ax,) = draw_readouts(pd.concat([layers("x/a"), first, layers("b", 5)], ignore_index=True)).axes
    names = ["a, logit lens", "a, through the last block", "b, logit lens", "b, through the last block"]
    assert [line.get_label() for line in ax.lines] == names
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [5, 4, 3, 2])
    np.testing.assert_allclose(ax.lines[3].get_xdata(), np.arange(6) / 5)
    assert ax.lines[0].get_color() == ax.lines[1].get_color() != ax.lines[2].get_color()


def test_one_readout_alone():
    table = layers("a").drop(columns=["cross_entropy", "cross_entropy_error"])
    (ax,) = draw_readouts(table).axes
    assert [line.get_label() for line in ax.lines] == ["through the last block"]


def histograms(depth=4):
    states = np.random.default_rng(0).normal(size=(depth + 1, 500, 8)).cumsum(axis=0)
    return Accumulator(depth).add(measure_states(states)).histogram_table().assign(position="bulk")


def test_shares_of_a_layer_stand_in_their_bins():
    table = histograms()
    axes = draw_histograms(table, 4).axes[:3]
    for ax, quantity in zip(axes, ("theta_states", "theta_updates", "norm"), strict=True):
        (mesh,) = ax.collections
        shares = np.ma.filled(mesh.get_array(), np.nan).reshape(-1, 5)
        own = table[table["quantity"] == quantity]
        for layer in range(5):
            counts = own.query("layer == @layer")["count"]
            drawn = shares[:, layer][np.isfinite(shares[:, layer])]
            np.testing.assert_allclose(drawn, counts / counts.sum() if len(counts) else [])
        edges = mesh.get_coordinates()[:, 0, 1]
        np.testing.assert_allclose([edges[0], edges[-1]], [own["left"].min(), own["right"].max()])


def test_what_lies_outside_of_all_bins_is_not_drawn():
    far = pd.DataFrame({"quantity": ["norm"], "layer": 1, "left": 2.0**40, "right": np.inf, "count": 3})
    table = pd.concat([histograms(), far.assign(position="bulk")], ignore_index=True)
    assert draw_histograms(table, 4).axes[2].get_ylim()[1] < 1e3


def test_files_are_the_same_each_time(tmp_path):
    for write, arguments in (
        (write_hidden_readouts_figure, (layers("a"),)),
        (write_hidden_histograms_figure, (histograms(), 4)),
    ):
        one, two = (write(*arguments, tmp_path / name).paths for name in ("1", "2"))
        assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
        assert one[1].stat().st_size < 300_000
