"""What a Posterior says: numbers in the units of the table, no number where the draws are bad, the report and JSON."""

import dataclasses
import importlib.util
import json

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numpyro") is None, reason="numpyro is not installed: pip install 'toydepth[bayes]'"
)


def test_draws_are_in_the_units_of_the_table(truth, well_known):
    names = well_known.fit.law.parameters
    medians = np.median(well_known.draws, axis=0)
    for name, median in zip(names, medians, strict=True):
        value = np.exp(median) if name == "L0" or name.startswith("c_") else median
        low, high = well_known.intervals[name]
        assert low < truth[name] < high and low < value < high
        assert value == pytest.approx(well_known.quantiles[name][1])


def test_draws_that_are_not_to_be_used_give_no_number(well_known):
    bad = dataclasses.replace(well_known, divergences=3)
    assert bad.verdict == "do not use: 3 divergences"
    assert set(bad.intervals.values()) == {None}
    assert "do not use: 3 divergences" in bad.report()
    assert bad.caveats[-1] == "the posterior: do not use: 3 divergences"
    assert "[" not in bad.report() and "[" in bad.report(show_all=True)
    assert {one["median"] for one in bad.to_dict()["parameters"].values()} == {None}
    few = dataclasses.replace(well_known, effective_sizes={**well_known.effective_sizes, "L0": float("nan")})
    assert few.verdict is not None and "L0" in few.verdict


def test_the_report_and_json_say_what_was_done(well_known):
    report = well_known.report()
    assert "95 % posterior" in report and "ln L normal around the law" in report and "deviation 3 " in report
    assert "4000 in 4 chains" in report and "divergences: 0; rows: 36 of 36" in report
    assert well_known.caveats == (
        f"the posterior takes ln L normal around the law, of unknown scale; prior: {well_known.prior}",
    )
    assert json.loads(json.dumps(well_known.to_dict(), allow_nan=False)) == well_known.to_dict()
    assert well_known.to_dict()["parameters"]["L0"]["low"] == well_known.intervals["L0"][0]
