"""What has no posterior is refused in one line; needs no numpyro."""

import re
import sys

import pytest

from toydepth.bayes import sample_law
from toydepth.errors import InputError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "huber"}, "objective must be log, linear or student for a posterior, got huber"),
        ({"objective": "student", "groups": "group"}, "log or linear for a posterior with groups, got student"),
        ({"groups": "two"}, "the number of groups must be 6 or more for 5 parameters, got 2"),
    ],
)
def test_fits_without_a_posterior_are_refused(make_table, quick, options: dict, message: str):
    table = make_table()
    table["two"] = table.group % 2
    with pytest.raises(InputError, match=message) as caught:
        sample_law(quick(table, **options))
    assert "\n" not in str(caught.value)


def test_a_table_without_noise_is_refused(make_table, quick):
    with pytest.raises(InputError, match="of losses with noise"):
        sample_law(quick(make_table(noise=0.0)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_draws": 10}, "num_draws must be an integer, 100 or more, got 10"),
        ({"num_chains": 1}, "num_chains must be an integer, 2 or more, got 1"),
        ({"num_warmup": 0}, "num_warmup must be an integer, 100 or more, got 0"),
        ({"seed": -1}, "seed must be an integer, 0 or more, got -1"),
        ({"prior_scale": 0}, "prior_scale must be a positive number, got 0"),
        ({"prior_scale": float("inf")}, "prior_scale must be a positive number, got inf"),
    ],
)
def test_options_out_of_range_are_refused(make_table, quick, options: dict, message: str):
    with pytest.raises(InputError, match=re.escape(message)):
        sample_law(quick(make_table()), **options)


def test_without_numpyro_the_extra_is_named(make_table, quick, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(InputError, match=re.escape("pip install 'toydepth[bayes]'")) as caught:
        sample_law(quick(make_table()))
    assert "\n" not in str(caught.value)
