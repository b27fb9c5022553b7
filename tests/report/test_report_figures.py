"""Figures as files: which, the same each time, and why one is not there."""

import matplotlib
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit import FitTable, fit_curves
from toydepth.report import write_figures
from toydepth.report.layout import place_panels
from toydepth.report.words import name_groups

FEW = (0, 10, 100, 1000, 20000)


def test_every_figure_is_written_twice_over(make_curves, tmp_path):
    parts = [make_curves("kl", loss="kl", temperature=T, steps=FEW) for T in (1.0, 0.1)]
    curves = pd.concat(parts, ignore_index=True)
    figures = write_figures(curves, fit_curves(curves, num_bootstrap=50), tmp_path / "new" / "figures")
    names = ("loss_against_depth", "alpha_against_step", "training_curves", "temperature")
    assert [path.name for path in figures.paths] == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]
    assert figures.skipped == []
    for path in figures.paths:
        head = path.read_bytes()[:100]
        assert head.startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")


def test_the_same_curves_give_the_same_bytes_whatever_the_persons_style(make_curves, tmp_path):
    curves = make_curves(steps=FEW, depths=(3, 6, 12))
    table = fit_curves(curves, num_bootstrap=50)
    first = write_figures(curves, table, tmp_path / "a").paths
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "other", "axes.grid": True}):
        second = write_figures(curves, table, tmp_path / "b").paths
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert b"<dc:date>" not in first[1].read_bytes()


def test_one_depth_is_drawn_as_far_as_it_goes(make_curves, tmp_path):
    curves = make_curves(depths=(6,), steps=FEW)
    (tmp_path / "temperature.png").write_bytes(b"of an earlier run")
    figures = write_figures(curves, None, tmp_path)
    assert sorted(tmp_path.iterdir()) == figures.paths
    assert [path.name for path in figures.paths] == ["training_curves.png", "training_curves.svg"]
    assert [name for name, _ in figures.skipped] == ["loss_against_depth", "alpha_against_step", "temperature"]
    assert all("could be fitted" in reason for _, reason in figures.skipped)


def test_a_skipped_figure_says_why_the_fit_was_refused(make_curves, tmp_path):
    table = FitTable([], [{"group": "g", "weights": "raw", "step": None, "reason": "too few depths"}], [])
    figures = write_figures(make_curves(depths=(6,), steps=(10, 100)), table, tmp_path)
    assert figures.skipped[0] == ("loss_against_depth", "no group of arms could be fitted: too few depths")


def test_panels_beyond_the_limit_are_said_not_dropped_in_silence(make_curves, tmp_path, monkeypatch):
    for module in ("figures", "curves_figure", "depth_figure"):
        monkeypatch.setattr(f"toydepth.report.{module}.MAX_PANELS", 1)
    parts = [make_curves(init=init, steps=(10, 100), depths=(3, 6, 12)) for init in ("zero", "euler")]
    curves = pd.concat(parts, ignore_index=True)
    skipped = dict(write_figures(curves, fit_curves(curves, num_bootstrap=50), tmp_path).skipped)
    assert skipped["training_curves"] == "1 of 2 panels is not shown: give fewer groups"
    assert skipped["loss_against_depth"] == "1 of 2 panels is not shown: give fewer groups"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.iloc[:0], "curves must be a table with at least one row, got 0 rows. Give a run that was evalu"),
        (lambda c: c.drop(columns="depth"), "curves must be a table with every column of a run's curves, got no depth"),
    ],
)
def test_unusable_curves_are_refused(make_curves, tmp_path, change, message):
    with pytest.raises(InputError) as error:
        write_figures(change(make_curves(steps=FEW)), None, tmp_path / "figures")
    assert message in str(error.value)
    assert not (tmp_path / "figures").exists()


def test_pyplot_knows_of_no_figure(make_curves, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    write_figures(make_curves(depths=(6,), steps=(10, 100)), None, tmp_path)
    assert pyplot.get_fignums() == []


def test_names_hold_what_tells_groups_apart():
    base = {"teacher": "tied", "init": "zero", "block": "euler", "width": 8, "experiment": "a", "head": "none"}
    assert name_groups([base, {**base, "init": "euler", "experiment": "b"}]) == ["tied, zero init", "tied, euler init"]
    assert name_groups([base, {**base, "width": 16}]) == ["tied, zero init, width 8", "tied, zero init, width 16"]
    assert name_groups([base, {**base, "experiment": "b"}]) == ["tied, zero init, a", "tied, zero init, b"]


def test_panels_stay_in_the_grid():
    for count in range(1, 17):
        rows, columns, places = place_panels(["mse"] * count)
        assert columns <= 4 and len(set(places)) == count == len(places)
        assert max(row for row, _ in places) == rows - 1
        assert all(column < columns for _, column in places)
    assert place_panels(["mse"] * 16)[:2] == (4, 4)
