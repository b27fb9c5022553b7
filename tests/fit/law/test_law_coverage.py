"""95 % intervals hold the truth about 95 times in 100 (benchmarks/law_coverage.py prints the long study)."""

import pytest

from benchmarks.law_coverage import CASES, coverage


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_intervals_cover(case):
    tables = 40
    shares = coverage(case, tables, num_bootstrap=200)
    print(f"\n{case.name}\n{(100 * shares).round(1).to_string()}")
    # 7 parameters x 40 tables, correlated: pooled within 4 of 95 per cent; no parameter alone below 80.
    assert shares["all"].between(0.89, 0.995).all(), shares
    assert (shares.drop(columns="all") > 0.8).all(axis=None), shares


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_intervals_cover_to_the_per_cent(case):
    shares = coverage(case, 300)
    assert shares["all"].between(0.92, 0.98).all(), shares
