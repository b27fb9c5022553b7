"""Each refusal of the depth fit and of the drift, word for word where the words matter."""

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.fit import fit_depth_exponent, fit_drift

GOOD = [4.0, 2.0, 1.0, 0.5]
DEPTHS = [3, 6, 12, 24]

DEPTH_CASES = [
    ({"losses": [4, 0, 1, 0.5]}, "losses must be greater than 0, got 0 at depth 6. Give a noise_floor"),
    ({"losses": [4, -1, 1, 0.5]}, "losses must be greater than 0, got -1 at depth 6."),
    ({"losses": [4, np.inf, 1, 0.5]}, "losses must be finite, or NaN where missing, got inf."),
    (
        {"losses": [4, 2, 1]},
        r"losses must be of shape (depths,) or (replicates, depths) with 4 depths, got shape (3,).",
    ),
    ({"losses": np.ones((2, 2, 4))}, "got shape (2, 2, 4)."),
    ({"losses": ["a", 2, 1, 3]}, "losses must be a rectangular array of numbers, got list of str."),
    ({"losses": ["4", "2", "1", "3"]}, "losses must be a rectangular array of numbers, got list of str."),
    ({"losses": [4, True, 1, 0.5]}, "losses must be a rectangular array of numbers, got list of bool."),
    ({"losses": np.ones(4, bool)}, "losses must be a rectangular array of numbers, got ndarray of bool."),
    ({"losses": [4, 2j, 1, 0.5]}, "losses must be a rectangular array of numbers, got list of complex."),
    ({"losses": np.ones(4, complex)}, "losses must be a rectangular array of numbers, got ndarray of complex128."),
    ({"losses": np.ones(4, "m8[ns]")}, "losses must be a rectangular array of numbers, got ndarray of timedelta64."),
    ({"losses": [np.ones(4, "m8[ns]")]}, "losses must be a rectangular array of numbers, got list of timedelta64."),
    ({"depths": np.arange(4).astype("M8[Y]")}, "depths must be a rectangular array of numbers, got ndarray of datet"),
    ({"losses": [10**400, 1, 2, 3]}, "losses must be a rectangular array of numbers, got list with one beyond float64"),
    ({"depths": np.ma.array(DEPTHS, mask=[0, 1, 0, 0])}, "depths must be finite and 0 or more, got nan."),
    ({"losses": [[1, 2], [3]]}, "losses must be a rectangular array of numbers, got list."),
    ({"depths": [3, 6, 6, 24]}, "depths must be distinct, got 6 twice. Give repeats of a depth as replicates"),
    ({"depths": [3, -6, 12, 24]}, "depths must be finite and 0 or more, got -6."),
    ({"depths": [3, np.nan, 12, 24]}, "depths must be finite and 0 or more, got nan."),
    ({"depths": 3}, "depths must be a list of numbers, got shape ()."),
    ({"offset": 3}, "offset must be less than every depth used (lowest 3), got 3."),
    ({"offset": np.inf}, "offset must be a finite number, got inf."),
    ({"offset": 10**400}, "offset must be a finite number, got 1000"),
    ({"offset": np.timedelta64(1, "s")}, "offset must be a finite number, got np.timedelta64(1,'s')."),
    (
        {"offset": -1e308},
        "offset must be such that depths - offset still tells the depths apart (relative spread 1e-06",
    ),
    ({"offset": -1.7e308, "depths": [1, 2, 3, 1.7e308]}, "offset must be such that depths - offset still tells"),
    ({"offset": -1e18, "depths": [1, 2, 3, 1e20]}, "offset must be such that depths - offset still tells"),
    ({"window": (6, 3)}, "window must be a pair with lowest <= highest, got (6, 3)."),
    ({"window": ("3", "6")}, "window must be a pair (lowest, highest) of depths, got ('3', '6')."),
    ({"window": (3, 10**400)}, "window must be a pair (lowest, highest) of depths, got (3, 1000"),
    ({"noise_factor": 10**400}, "noise_factor must be a finite number, 0 or more, got 1000"),
    ({"window": 6}, "window must be a pair (lowest, highest) of depths, got 6."),
    ({"noise_floor": -1}, "noise_floor must be finite and 0 or more, got -1."),
    ({"noise_floor": [1, 2]}, "noise_floor must be broadcastable to the losses' shape (4,), got shape (2,)."),
    ({"noise_factor": -1}, "noise_factor must be a finite number, 0 or more, got -1."),
    ({"confidence": 95}, "confidence must be a number between 0 and 1, got 95. Give 0.95 for 95 %."),
    ({"confidence": 0}, "confidence must be a number between 0 and 1, got 0."),
    ({"num_bootstrap": 2.5}, "num_bootstrap must be an integer, 10 or more, got 2.5."),
    ({"seed": -1}, "seed must be an integer, 0 or more, got -1."),
    (
        {"window": (3, 6)},
        "depths must be at least 3 distinct depths after exclusions, got 3, 6 (2 points left out: 2",
    ),
    (
        {"noise_floor": 0.1},
        "got 3, 6 (2 points left out: 2 within 10x of the noise floor). Fewer than 3",
    ),
    ({"window": (3, 12), "floor": True}, "depths must be at least 4 distinct depths after exclusions, got 3, 6, 12"),
    ({"window": (90, 99)}, "got none (4 points left out"),
    (
        {"losses": [[4, 2, np.nan, np.nan], [np.nan, np.nan, 1, 0.5]]},
        "depths must be at least 3 distinct depths within one replicate after exclusions, got fewer in each, of 3, 6",
    ),
]


@pytest.mark.parametrize(("change", "message"), DEPTH_CASES)
def test_depth_fit_refuses(change, message):
    given = {"losses": GOOD, "depths": DEPTHS, **change}
    with pytest.raises(InputError) as error:
        fit_depth_exponent(given.pop("losses"), given.pop("depths"), **given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_predict_refuses_depths_up_to_the_offset():
    with pytest.raises(InputError, match=r"^depths must be greater than the offset 2, got 1\. "):
        fit_depth_exponent(GOOD, DEPTHS, offset=2).predict([1, 5])


DRIFT_CASES = [
    ({"steps": [[1, 2]]}, "steps must be a list of numbers, got shape (1, 2)."),
    ({"steps": [1, -2, 3]}, "steps must be finite and 0 or more, got -2."),
    ({"steps": [1, 2, 2]}, "steps must be distinct, got a step twice."),
    ({"alpha": [1, 2]}, "alpha_by_replicate must be of shape (3,) or (3, replicates), got shape (2,)."),
    ({"alpha": [1, 2, np.inf]}, "alpha_by_replicate must be finite, or NaN where there was no fit, got inf."),
    ({"window_factor": 1}, "window_factor must be greater than 1, got 1."),
    ({"tolerance": -1}, "tolerance must be 0 or more, got -1."),
    ({"confidence": 1}, "confidence must be a number between 0 and 1, got 1."),
]


@pytest.mark.parametrize(("change", "message"), DRIFT_CASES)
def test_drift_refuses(change, message):
    given = {"steps": [1, 2, 3], "alpha": [1, 1, 1], **change}
    with pytest.raises(InputError) as error:
        fit_drift(given.pop("steps"), given.pop("alpha"), **given)
    assert message in str(error.value)
