"""The table of curves: layout, what a diverged arm keeps, refusals, and writing that cannot leave a half."""

import re

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.runs import CURVE_COLUMNS, average_columns, find_decays, make_curves, read_curves, write_curves


def test_every_column_in_its_order_and_type(pieces):
    curves = make_curves(*pieces)
    assert list(curves.columns) == list(CURVE_COLUMNS)
    assert len(curves) == 6
    for name, column in CURVE_COLUMNS.items():
        assert curves[name].dtype == pd.Series([], dtype=column.dtype).dtype, name
        assert column.meaning and "\n" not in column.meaning


def test_rows_go_arm_by_arm_and_pair_values_with_their_arm(pieces):
    curves = make_curves(*pieces)
    assert curves["arm"].tolist() == [0, 0, 0, 1, 1, 1]
    assert curves["depth"].tolist() == [3, 3, 3, 6, 6, 6]
    assert curves["step"].tolist() == [0, 10, 20] * 2
    np.testing.assert_allclose(curves["test_loss"], [0.3, 0.2, 0.1, 0.2, 0.1, 0.05], rtol=1e-6)
    assert np.isnan(curves[["rho", "temperature"]].to_numpy()).all()


def test_a_diverged_arm_keeps_what_comes_before_its_last_finite_loss(pieces):
    labels, arms, series = pieces
    arms[1]["diverged"] = True
    nan, inf = np.nan, np.inf
    series["test_loss"] = np.array([[0.3, nan], [nan, 0.1], [0.1, inf]])
    curves = make_curves(labels, arms, series)
    rows = list(zip(curves["arm"], curves["step"], curves["test_loss"].fillna(-1), strict=True))
    # The NaN of an arm that goes on, and the one before a finite loss, stay; the infinite end goes.
    assert rows == [(0, 0, 0.3), (0, 10, -1), (0, 20, 0.1), (1, 0, -1), (1, 10, 0.1)]
    assert curves.index.tolist() == list(range(5))


def test_an_arm_that_was_never_finite_has_no_row(pieces):
    labels, arms, series = pieces
    arms[0]["diverged"] = True
    series["test_loss"] = np.array([[np.nan, 1.0]] * 3)
    assert make_curves(labels, arms, series)["arm"].unique().tolist() == [1]


def test_without_averaging_its_columns_are_nan(pieces):
    labels, arms, series = pieces
    del series["test_loss_average"], series["standard_error_average"]
    curves = make_curves(labels, [{**arm, "average_decay": None} for arm in arms], series)
    assert np.isnan(curves[["test_loss_average", "standard_error_average", "average_decay"]].to_numpy()).all()


def test_further_decays_come_last(pieces, tmp_path):
    labels, arms, series = pieces
    names = average_columns(0.999)
    series |= dict.fromkeys(names, np.ones((3, 2)))
    curves = make_curves(labels, arms, series)
    assert tuple(curves.columns[-2:]) == names == ("test_loss_average_0.999", "standard_error_average_0.999")
    assert find_decays(curves.columns) == [0.999]
    write_curves(tmp_path, curves)
    pd.testing.assert_frame_equal(read_curves(tmp_path), curves)


def test_a_shared_series_is_the_same_for_all_arms(pieces):
    labels, arms, series = pieces
    per_arm = make_curves(labels, arms, {**series, "tau": np.array([[0, 0], [0.1, 0.2], [0.2, 0.4]])})
    assert make_curves(labels, arms, series)["tau"].tolist() == [0, 0.1, 0.2] * 2
    assert per_arm["tau"].tolist() == [0, 0.1, 0.2, 0, 0.2, 0.4]


REFUSALS = [
    (lambda g: g[0].pop("rho"), "labels must hold every column, got no rho. Give rho as well."),
    (lambda g: g[0].update(experimnt="x"), "labels must hold known columns, got experimnt. Leave them out. Did you me"),
    (
        lambda g: g[0].update(depth=3),
        "labels must hold known columns, got depth. Leave them out. depth belongs in arms.",
    ),
    (lambda g: g[1][1].pop("init"), "arms[1] must hold every column, got no init."),
    (lambda g: g[1].clear(), "arms must be a list of at least one arm, got none."),
    (lambda g: g[2].pop("tau"), "series must hold every column, got no tau."),
    (lambda g: g[2].update(test_los=1), "series must hold known columns, got test_los. Leave them out. Did you mean "),
    (
        lambda g: g[2].update({"test_loss_average_0.9": np.ones((3, 2))}),
        "series must hold every column, got no standard_error_average_0.9.",
    ),
    (
        lambda g: g[2].update(test_loss=np.ones((2, 3))),
        "series['test_loss'] must be of shape (3,) or (3, 2), got (2, 3). Give a row for each evaluation",
    ),
    (lambda g: g[2].update(tau=1.0), "series['tau'] must be of shape (3,) or (3, 2), got ()."),
    (lambda g: g[2].update(step=np.array([0.5, 1, 2])), "column step must be an integer, got [0.5]."),
    (lambda g: g[0].update(teacher=None), "column teacher must be a string, got None. Convert it"),
    (lambda g: g[0].update(width=8.0), "column width must be an integer, got 8.0."),
    (lambda g: g[0].update(width=None), "column width must be an integer, got None."),
    (lambda g: g[0].update(rho="1"), "column rho must be a number, got '1'."),
    (lambda g: g[1][0].update(diverged=0), "column diverged must be True or False, got 0."),
    (lambda g: g[1][0].update(depth=True), "column depth must be an integer, got True."),
]


@pytest.mark.parametrize(("change", "message"), REFUSALS)
def test_make_curves_refuses(pieces, change, message):
    change(pieces)
    with pytest.raises(InputError, match=f"^{re.escape(message)}") as error:
        make_curves(*pieces)
    assert "\n" not in str(error.value)


def test_roundtrip(pieces, tmp_path):
    curves = make_curves(*pieces)
    path = write_curves(tmp_path / "run", curves)
    assert path == tmp_path / "run" / "curves.parquet"
    pd.testing.assert_frame_equal(read_curves(tmp_path / "run"), curves)
    assert [file.name for file in path.parent.iterdir()] == ["curves.parquet"]


def test_a_failed_write_leaves_the_old_table(pieces, tmp_path, monkeypatch):
    curves = make_curves(*pieces)
    write_curves(tmp_path, curves)

    def fail(self, path, **options):
        path.write_bytes(b"half a tab")
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", fail)
    with pytest.raises(OSError, match="No space left"):
        write_curves(tmp_path, curves.iloc[:1])
    pd.testing.assert_frame_equal(read_curves(tmp_path), curves)
    assert [file.name for file in tmp_path.iterdir()] == ["curves.parquet"]


def test_a_table_without_its_columns_is_not_written(pieces, tmp_path):
    curves = make_curves(*pieces).drop(columns=["tau", "depth"])
    with pytest.raises(
        InputError, match=r"^curves must hold every column of a run's curves, got no depth, tau\. Build"
    ):
        write_curves(tmp_path, curves)


def test_read_curves_refuses_missing_damaged_and_foreign_files(tmp_path):
    with pytest.raises(InputError, match=r"curves\.parquet must be the curves of a run, got no such file\."):
        read_curves(tmp_path)
    (tmp_path / "curves.parquet").write_bytes(b"half a tab")
    with pytest.raises(InputError, match=r"curves\.parquet must be a readable parquet file, got: .*\. Restore"):
        read_curves(tmp_path)
    pd.DataFrame({"step": [1]}).to_parquet(tmp_path / "curves.parquet")
    with pytest.raises(
        InputError, match=r"curves\.parquet must hold every column of a run's curves, got no experiment"
    ):
        read_curves(tmp_path)


@pytest.mark.parametrize("name", ["test_loss_average_0.990", "test_loss_average_x", "test_loss_average_9x", "step"])
def test_other_names_are_no_decays(name):
    assert find_decays([name]) == []


WRONG_COLUMNS = [
    ("test_loss", "0.5", "a number", "'0.5'"),
    ("noise_floor", "x", "a number", "'x'"),
    ("tau", True, "a number", "True"),
    ("rho", pd.Timedelta(1, "s"), "a number", "Timedelta('0 days 00:00:01')"),
    ("depth", "3", "an integer", "'3'"),
    ("step", 1.5, "an integer", "1.5"),
    ("arm", pd.array([0, None] * 3, dtype="Int64"), "an integer", "<NA>"),
    ("experiment", None, "a string", "None"),
    ("init", ["a", None] * 3, "a string", "nan"),
    ("loss", 3, "a string", "3"),
    ("diverged", 0, "True or False", "0"),
    ("test_loss_average_0.9", "x", "a number", "'x'"),
]


@pytest.mark.parametrize(("name", "values", "condition", "got"), WRONG_COLUMNS)
def test_read_curves_refuses_a_column_of_another_type(pieces, tmp_path, name, values, condition, got):
    path = tmp_path / "curves.parquet"
    make_curves(*pieces).assign(**{name: values}).to_parquet(path)
    with pytest.raises(InputError) as error:
        read_curves(tmp_path)
    said = f"{path} must hold {condition} in every row of {name}, got {got}. Restore the file, or run again."
    assert str(error.value) == said


def test_read_curves_gives_each_column_its_type(pieces, tmp_path):
    curves = make_curves(*pieces)
    other = curves.astype({"depth": "int32", "tau": "Float64", "experiment": "category", "diverged": "boolean"})
    other.to_parquet(tmp_path / "curves.parquet")
    pd.testing.assert_frame_equal(read_curves(tmp_path), curves)
