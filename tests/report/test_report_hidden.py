"""The figure of hidden states: a line a network, and what is never averaged."""

import numpy as np
import pandas as pd

from toydepth.report.hidden_figure import _draw, write_hidden_figure


def states(run, replicate=0, network="student", angle=0.2, depth=4):
    layers = np.arange(depth + 1)
    labels = {"run": run, "network": network, "teacher": "tied", "replicate": replicate, "depth": depth}
    labels |= {"init": "zero" if network == "student" else None, "temperature": None}
    numbers = {"theta_states": np.r_[np.full(depth, angle), np.nan], "theta_updates": 1.5, "norm": 3.0}
    return pd.DataFrame(
        {**labels, "layer": layers, "relative_depth": layers / depth, **numbers, "progress": layers / depth}
    )


def drawn(*tables):
    return {line.get_label(): line for line in _draw(pd.concat(tables, ignore_index=True)).axes[0].lines}


def test_replicates_of_a_run_are_averaged():
    lines = drawn(states("a", 0, angle=0.2), states("a", 1, angle=0.4))
    assert list(lines) == ["tied, zero init, 4"]
    np.testing.assert_allclose(lines["tied, zero init, 4"].get_ydata()[:4], 0.3)


def test_runs_are_never_averaged():
    lines = drawn(states("runs/a", angle=0.2), states("runs/b", angle=0.4), states("runs/b", network="teacher"))
    assert list(lines) == ["tied, zero init, 4 (a)", "tied, zero init, 4 (b)", "tied teacher, depth 4"]
    np.testing.assert_allclose(lines["tied, zero init, 4 (b)"].get_ydata()[:4], 0.4)


def test_a_step_stands_between_the_states_that_it_joins():
    (line,) = drawn(states("a")).values()
    np.testing.assert_allclose(line.get_xdata()[:4], [0.125, 0.375, 0.625, 0.875])


def test_the_same_states_give_the_same_bytes(tmp_path):
    first, second = (write_hidden_figure(states("a"), tmp_path / name).paths for name in ("1", "2"))
    assert [path.name for path in first] == ["hidden_states.png", "hidden_states.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def model(name, angle, position="model", depth=4):
    return states(name, network=position, angle=angle, depth=depth).assign(teacher=None, init=None)


def test_language_models_have_a_colour_each_and_position_0_is_dotted():
    tables = [model("hub/a.gguf", 0.2), model("hub/a.gguf", 0.3, "model at position 0"), model("b", 0.4, depth=8)]
    lines = drawn(*tables)
    assert list(lines) == ["a, 4 blocks", "a, 4 blocks at position 0", "b, 8 blocks"]
    bulk, first, other = lines.values()
    assert bulk.get_color() == first.get_color() != other.get_color()
    assert first.get_linestyle() == ":" and first.get_linewidth() < bulk.get_linewidth()
    np.testing.assert_allclose(other.get_xdata()[:2], [1 / 16, 3 / 16])


def test_models_of_one_name_are_told_apart():
    assert list(drawn(model("one/a", 0.2), model("two/a", 0.3))) == ["a, 4 blocks (one/a)", "a, 4 blocks (two/a)"]
