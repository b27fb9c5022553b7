"""The figure of clusters: what its legend and axes say, and the same bytes each time."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from toydepth.report.hidden_profiles_figure import _draw, write_hidden_profiles_figure


def make_tables(shares=(0.996, 0.004), columns=2, layers=12):
    """As `toydepth.hidden.clusters` has them."""
    generator = np.random.default_rng(0)
    sizes = [round(2500 * share) for share in shares]
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    points = pd.DataFrame({"cluster": cluster})
    for number in range(1, columns + 1):
        points[f"component_{number}"] = cluster * number + 0.1 * generator.normal(size=len(cluster))
    low, high = [0.9 * share for share in shares], [min(1.1 * share, 1.0) for share in shares]
    table = pd.DataFrame({"cluster": range(len(sizes)), "tokens": sizes, "share": shares, "share_low": low})
    table = table.assign(share_high=high, first_share=[0.0, 0.95, 0.5][: len(sizes)])
    place = (np.arange(layers) + 0.5) / layers
    parts = []
    for number in range(len(sizes)):
        theta = 0.3 + number * np.exp(-5 * place)
        columns_of = {"cluster": number, "layer": np.arange(layers), "relative_depth": place, "theta": theta}
        parts.append(pd.DataFrame(columns_of | {"theta_q05": 0.8 * theta, "theta_q95": 1.2 * theta}))
    return table, points, pd.concat(parts, ignore_index=True)


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_shares_stand_in_the_legend_and_variance_on_the_axes():
    table, points, profiles = make_tables()
    figure = _draw(table, points, profiles, [0.42, 0.09])
    assert legend(figure) == [
        "bulk: 99.60 % [89.64, 100.00] of tokens, 0 % of them at position 0",
        "cluster 1: 0.40 % [0.36, 0.44] of tokens, 95 % of them at position 0",
    ]
    plane, depth = figure.axes
    assert plane.get_xlabel() == "Component 1 (rad, 42 % of variance)"
    assert plane.get_ylabel() == "Component 2 (rad, 9 % of variance)"
    assert depth.get_ylabel() == "Angle between states (rad)" and depth.get_xlim() == (0, 1)


def test_every_token_and_every_layer_is_drawn():
    table, points, profiles = make_tables((0.7, 0.2, 0.1))
    plane, depth = _draw(table, points, profiles, [0.4, 0.1]).axes
    assert [len(drawn.get_offsets()) for drawn in plane.collections] == table["tokens"].tolist()
    for cluster, line in enumerate(depth.lines):
        own = profiles.query(f"cluster == {cluster}")
        np.testing.assert_array_equal(line.get_xdata(), own["relative_depth"])
        np.testing.assert_array_equal(line.get_ydata(), own["theta"])
    assert len({line.get_color() for line in depth.lines}) == 3


def test_one_cluster_one_component_and_no_variance():
    table, points, profiles = make_tables((1.0,), columns=1, layers=1)
    figure = _draw(table, points, profiles, [float("nan")])
    assert legend(figure)[0].startswith("bulk: 100.00 % [90.00, 100.00] of tokens")
    assert figure.axes[0].get_xlabel() == "Component 1 (rad)"


@pytest.mark.parametrize("shares", [(0.996, 0.004), (1.0,)])
def test_files_are_the_same_each_time_whatever_the_persons_style(shares, tmp_path):
    tables = make_tables(shares)
    first = write_hidden_profiles_figure(*tables, [0.4, 0.1], tmp_path / "a", name="pythia")
    assert [path.name for path in first.paths] == ["pythia.png", "pythia.svg"] and first.skipped == []
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "other", "axes.grid": True}):
        second = write_hidden_profiles_figure(*tables, [0.4, 0.1], tmp_path / "b", name="pythia")
    assert [path.read_bytes() for path in first.paths] == [path.read_bytes() for path in second.paths]
    assert first.paths[1].stat().st_size < 500_000
