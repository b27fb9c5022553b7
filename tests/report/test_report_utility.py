"""Figures of depth utility and of causal tracing: every number is drawn, and the same bytes each time."""

import numpy as np
import pandas as pd
import pytest

from toydepth.report import trace_figure, utility_figure
from toydepth.report.trace_figure import write_trace_figure
from toydepth.report.utility_figure import write_utility_figure


def utility(change=0.1, error=0.01, depth=6):
    parts = []
    for number, kind in enumerate(("skip", "swap", "repeat")):
        layer = np.arange(1, depth + (kind != "swap"))
        values = change * (1 + number) * np.exp(-layer / 2) * np.ones(len(layer))
        place = (layer if kind == "swap" else layer - 0.5) / depth
        columns = {"intervention": kind, "layer": layer, "relative_depth": place, "change": values}
        parts.append(pd.DataFrame(columns | {"change_error": error * np.abs(values)}))
    return pd.concat(parts, ignore_index=True)


def trace(depth=5, sign=1.0):
    rows = []
    for number, role in enumerate(("first subject", "last subject", "last token")):
        for layer in range(depth + 1):
            row = {"role": role, "layer": layer, "relative_depth": layer / depth, "facts": 3 + number}
            rows.append(row | {"effect": sign * (number + 1) * layer / 50 - 0.02})
    return pd.DataFrame(rows)


def test_every_intervention_and_layer_is_drawn():
    table = utility()
    figure = utility_figure._draw(table)
    (ax,) = figure.axes
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["skipped", "swapped with the next", "repeated"]
    for line, kind in zip(ax.lines, ("skip", "swap", "repeat"), strict=True):
        own = table[table["intervention"] == kind]
        np.testing.assert_array_equal(line.get_xdata(), own["relative_depth"])
        np.testing.assert_array_equal(line.get_ydata(), own["change"])
    assert ax.get_yscale() == "log" and len(ax.collections) == 3
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(table["change"][0] * 1.02)
    assert "nats" in ax.get_ylabel()


@pytest.mark.parametrize("table", [utility(change=-0.1), utility(change=0.0)])
def test_what_is_not_positive_is_drawn_too(table):
    (ax,) = utility_figure._draw(table).axes
    assert ax.get_yscale() == ("symlog" if (table["change"] != 0).any() else "linear")
    low, high = ax.get_ylim()
    assert low <= table["change"].min() and high >= table["change"].max()


def test_a_band_that_reaches_zero_is_cut():
    table = utility(error=0.8)
    (ax,) = utility_figure._draw(table).axes
    assert ax.get_yscale() == "log" and ax.get_ylim()[0] == pytest.approx(table["change"].min() / 2)


def test_one_document_has_no_band(tmp_path):
    table = utility().assign(change_error=np.nan)
    (ax,) = utility_figure._draw(table).axes
    assert ax.get_yscale() == "log" and len(ax.lines) == 3
    assert write_utility_figure(table, tmp_path).paths[0].stat().st_size > 10_000


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_every_role_and_layer_is_a_cell(sign):
    table = trace(sign=sign)
    figure = trace_figure._draw(table)
    ax, bar = figure.axes
    (mesh,) = [each for each in ax.collections if each.get_array() is not None]
    np.testing.assert_allclose(mesh.get_array().reshape(3, 6), table["effect"].to_numpy().reshape(3, 6))
    assert mesh.norm.vmin == -mesh.norm.vmax, "white is nothing"
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        *("first subject (3)", "last subject (4)", "last token (5)")
    ]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first role stands on top"
    assert "Probability" in bar.get_ylabel()


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for write, table, name in ((write_utility_figure, utility(), "utility"), (write_trace_figure, trace(), "trace")):
        first, second = (write(table, tmp_path / folder).paths for folder in ("1", "2"))
        assert [path.name for path in first] == [f"{name}.png", f"{name}.svg"]
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
