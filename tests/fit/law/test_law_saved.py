"""Laws as files: there and back, by hand, and every way in which a file can be wrong."""

import json

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.fit.law import fit_law
from toydepth.fit.law.saved import as_saved, load_law, write_law

ALL = {"m": "m", "ell": "ell", "D": "D"}


@pytest.fixture
def fit(make_table):
    return fit_law(make_table(), "decomposed", ALL, fixed={"alpha_D": 0.3, "alpha_ell": "alpha_m"}, offsets={"ell": 1})


def test_there_and_back(fit, tmp_path):
    path = write_law(fit, tmp_path / "new" / "fit.json", extra={"comparison": {"rows": 3}})
    saved = load_law(path)
    assert saved.law == fit.law and saved.values == fit.values
    assert saved.labels == ALL and saved.offsets == {"ell": 1.0}
    assert saved.residual_std == fit.residual_std and saved.residuals_of == "ln L"
    assert saved.covariance is not None
    assert saved.covariance == pytest.approx(fit.covariance.to_numpy(), rel=1e-15)
    points = {"m": [100.0, 2000], "ell": [3.0, 12], "D": [1e9, 1e10]}
    assert saved.loss(points) == pytest.approx(fit.predict(points)["loss"].to_numpy(), rel=1e-12)
    assert json.loads(path.read_text())["comparison"] == {"rows": 3}
    assert [file.name for file in path.parent.iterdir()] == ["fit.json"]


def test_what_to_json_writes_is_read(fit, tmp_path):
    path = tmp_path / "line.json"
    path.write_text(fit.to_json())
    assert load_law(str(path)).values == fit.values


def test_extra_replaces_nothing(fit, tmp_path):
    path = write_law(fit, tmp_path / "fit.json", extra={"parameters": {}})
    assert load_law(path).values == fit.values


def test_a_failed_write_leaves_the_old_file(fit, tmp_path):
    path = write_law(fit, tmp_path / "fit.json")
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_law(fit, path, extra={"bad": object()})
    assert path.read_bytes() == before
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a file that can be written"):
        write_law(fit, tmp_path / "file" / "fit.json")


def test_a_law_of_linear_residuals_says_so(make_table, tmp_path):
    fit = fit_law(make_table(), "decomposed", {"m": "m", "D": "D"}, objective="linear", intervals="covariance")
    assert (
        load_law(write_law(fit, tmp_path / "fit.json", show_all=True)).residuals_of == as_saved(fit).residuals_of == "L"
    )


def test_by_hand(tmp_path):
    path = tmp_path / "law.json"
    terms = {"m": {"c": 40, "alpha": 1, "column": "width"}, "ell": {"c": 2, "alpha": 1.5, "offset": 2}}
    path.write_text(json.dumps({"terms": terms, "L0": 1.7}))
    saved = load_law(path)
    assert saved.values == {"c_m": 40.0, "c_ell": 2.0, "alpha_m": 1.0, "alpha_ell": 1.5, "L0": 1.7}
    assert saved.labels == {"m": "width", "ell": "ell"} and saved.offsets == {"ell": 2.0}
    assert saved.residual_std is None and saved.covariance is None
    assert saved.loss({"m": [20.0], "ell": [6.0]}) == pytest.approx([40 / 20 + 2 / 4**1.5 + 1.7], rel=1e-15)
    path.write_text(json.dumps({"terms": {"m": {"c": 40, "alpha": 1}}}))
    assert load_law(path).values["L0"] == 0 and load_law(path).law.parameters == ("c_m", "alpha_m")


def test_numbers_that_were_not_identified_are_named(tmp_path):
    width = np.geomspace(64, 4096, 12)
    table = pd.DataFrame({"m": width, "ell": width / 32})
    table["loss"] = 40 / table.m + 2 / table.ell + 1.7
    fit = fit_law(table, "decomposed", {"m": "m", "ell": "ell"}, intervals="covariance")
    assert fit.unidentified
    with pytest.raises(InputError) as error:
        load_law(write_law(fit, tmp_path / "fit.json"))
    message = str(error.value)
    assert "null for c_m, c_ell" in message and "move together" in message and "--show-all" in message
    assert load_law(write_law(fit, tmp_path / "fit.json", show_all=True)).values == fit.values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a JSON file, got a damaged one"),
        ("", "a JSON file, got a damaged one"),
        ("[1]", "a law, got a list"),
        ("{}", "with law and parameters, got one with nothing"),
        ('{"rows": [], "refused": []}', "got the depth exponents of runs"),
        ('{"law": {}, "parameters": {}}', "the schema of"),
        ('{"schema": 2, "law": {}, "parameters": {}}', "must be 1, got 2"),
        ('{"schema": 1, "law": {}, "parameters": {}}', "a part missing or of another kind"),
        ('{"terms": {}}', "a dict of symbol to c and alpha"),
        ('{"terms": {"m": 3}}', "a dict of symbol to c and alpha"),
        ('{"terms": {"m": {"c": 4}}}', "with c and alpha, got no alpha"),
        ('{"terms": {"m": {"c": 4, "alpa": 1}}}', "Did you mean 'alpha'"),
        ('{"terms": {"m": {"c": "4", "alpha": 1}}}', "c of m of"),
        ('{"terms": {"m": {"c": -4, "alpha": 1}}}', "greater than 0, got -4"),
        ('{"terms": {"m": {"c": 4, "alpha": NaN}}}', "a finite number, got nan"),
        ('{"terms": {"m": {"c": 4, "alpha": 1}}, "L0": -1}', "0 or more, got -1"),
        ('{"terms": {"m": {"c": 4, "alpha": 1}}, "L0": null}', "L0 of"),
    ],
)
def test_wrong_files_in_one_line(tmp_path, text, message):
    path = tmp_path / "law.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load_law(path)
    assert message in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("key", ["terms", "columns", "offsets", "name", "irreducible_loss"])
def test_a_part_that_is_missing(fit, tmp_path, key):
    data = fit.to_dict()
    del data["law"][key]
    (tmp_path / "fit.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=key):
        load_law(tmp_path / "fit.json")


def test_a_parameter_that_is_missing_or_spoilt(fit, tmp_path):
    path = tmp_path / "fit.json"
    data = fit.to_dict()
    del data["parameters"]["alpha_m"]
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="got none for alpha_m"):
        load_law(path)
    data = fit.to_dict()
    data["parameters"]["c_m"]["value"] = "forty"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"c_m of .* a finite number, got 'forty'"):
        load_law(path)


def test_no_such_file(tmp_path):
    (tmp_path / "fit.json").write_text("{}")
    with pytest.raises(InputError, match=r"Did you mean 'fit\.json'"):
        load_law(tmp_path / "fot.json")
    with pytest.raises(InputError, match="got a folder"):
        load_law(tmp_path)


def test_as_saved(fit):
    saved = as_saved(fit)
    assert saved.values == fit.values and as_saved(saved) is saved
    with pytest.raises(InputError, match="a LawFit"):
        as_saved({"c_m": 1})  # pyright: ignore[reportArgumentType]
