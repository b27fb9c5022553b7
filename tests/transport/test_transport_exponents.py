"""Exponents of known laws; intervals that hold the truth as often as they say, under both kinds of replicates."""

import numpy as np
import pytest
from scipy.stats import linregress

from toydepth.errors import InputError
from toydepth.transport import fit_exponents, make_graph, null_field, run_cascade

SIZES = np.array([100, 300, 1000, 3000, 10_000])


def simulate(generator, *, sizes=SIZES, replicates=6, own=0.02, shared=0.0, bend=0.0):
    """ln s = ln 0.2 + 0.95 ln N + bend (ln N)^2 / 2, ln n = 0.3 + 0.15 ln N; noise of replicates, and of each size."""
    nodes = np.repeat(sizes, replicates)
    x = np.log(nodes)
    # Small fields scatter more.
    noise = own * generator.normal(size=(2, len(nodes))) * (sizes.max() / nodes) ** 0.3
    noise = noise + np.repeat(shared * generator.normal(size=(2, len(sizes))), replicates, axis=1)
    return nodes, np.exp(np.log(0.2) + 0.95 * x + bend * x**2 / 2 + noise[0]), np.exp(0.3 + 0.15 * x + noise[1])


def test_exact_laws():
    fit = fit_exponents(SIZES, 0.2 * SIZES**0.9, 2 * SIZES**0.25)
    values = [fit.D.slope, fit.z.slope, fit.beta.slope, fit.delta.slope]
    assert values == pytest.approx([0.9, 0.25, 0.65, -0.35], abs=1e-12)
    assert fit.closure_error < 1e-13
    assert fit.D.r_squared == pytest.approx(1) and fit.D.standard_error < 1e-12
    assert (fit.num_sizes, fit.num_cascades, fit.num_capped, fit.capped_sizes) == (5, 5, 0, ())


def test_one_cascade_a_size_is_ordinary_least_squares():
    nodes, s, n = simulate(np.random.default_rng(0), replicates=1)
    fit = fit_exponents(nodes, s, n)
    for slope, y in ((fit.D, np.log(s)), (fit.z, np.log(n)), (fit.delta, np.log(s / nodes / n))):
        expected = linregress(np.log(nodes), y)
        assert slope.slope == pytest.approx(expected.slope, rel=1e-10)
        assert slope.standard_error == pytest.approx(expected.stderr, rel=1e-8)
        assert slope.r_squared == pytest.approx(expected.rvalue**2, rel=1e-8)
        assert slope.degrees == 3


def test_unequal_numbers_of_replicates_weigh_sizes_alike():
    nodes, s, n = simulate(np.random.default_rng(1), replicates=2)
    once = fit_exponents(nodes, s, n)
    again = fit_exponents(
        np.append(nodes, [100] * 20), np.append(s, [s[0], s[1]] * 10), np.append(n, [n[0], n[1]] * 10)
    )
    assert again.D.slope == pytest.approx(once.D.slope, rel=1e-12)


@pytest.mark.parametrize(
    ("replicates", "shared", "least", "most"),
    [
        ("independent", 0.0, 0.92, 0.975),  # as it is meant
        ("shared", 0.05, 0.92, 0.975),
        (
            "shared",
            0.0,
            0.85,
            0.99,
        ),  # holds as well; small N scatter more, which a scatter about the line takes for even
        ("independent", 0.05, 0.0, 0.8),  # the reason why it is not the default
    ],
)
def test_intervals_hold_the_truth(replicates, shared, least, most):
    generator, hits = np.random.default_rng(5), []
    for _ in range(500):
        fit = fit_exponents(*simulate(generator, shared=shared), replicates=replicates)
        for slope, truth in ((fit.D, 0.95), (fit.z, 0.15), (fit.beta, 0.8), (fit.delta, -0.2)):
            hits.append(slope.interval[0] <= truth <= slope.interval[1])
    assert least <= np.mean(hits) <= most


@pytest.mark.parametrize(("replicates", "shared"), [("independent", 0.0), ("shared", 0.05)])
def test_curvature_is_found_and_not_made_up(replicates, shared):
    generator = np.random.default_rng(6)
    straight = [
        fit_exponents(*simulate(generator, shared=shared), replicates=replicates).D.is_curved for _ in range(600)
    ]
    assert np.mean(straight) == pytest.approx(0.05, abs=0.03)
    bent = [fit_exponents(*simulate(generator, shared=shared, bend=0.3), replicates=replicates).D for _ in range(50)]
    assert np.mean([slope.is_curved for slope in bent]) > 0.9
    assert np.mean([slope.curvature for slope in bent]) == pytest.approx(0.3, abs=0.03)


def test_what_has_no_error_says_so():
    three = fit_exponents(SIZES[:3], SIZES[:3], SIZES[:3] ** 0.5)
    assert three.D.curvature_p is None and three.D.is_curved is None
    flat = fit_exponents(SIZES, SIZES, np.full(5, 4.0))
    assert flat.z.slope == pytest.approx(0) and flat.z.r_squared is None
    twice = np.repeat(SIZES, 2)
    same = fit_exponents(twice, twice, np.full(10, 4.0), replicates="independent")
    assert same.z.standard_error is None and same.z.interval is None and same.z.curvature_p is None


def test_capped_cascades_are_named():
    nodes, s, n = simulate(np.random.default_rng(2), replicates=2)
    capped = np.zeros(10, bool)
    capped[[2, 3, 8]] = True
    fit = fit_exponents(nodes, s, n, capped)
    assert fit.num_capped == 3 and fit.capped_sizes == (300, 10_000)


def gaussian(sizes, seeds, m=2):
    rows = []
    for size in sizes:
        for seed in range(seeds):
            cascade = run_cascade(make_graph(size, m, seed), null_field("N0", np.zeros(size), seed))
            assert not cascade.capped
            rows.append((size, cascade.size, cascade.duration))
    return np.array(rows).T


def test_gaussian_fields_at_the_sizes_of_the_source():
    """D = 0.99 +- 0.01 for N = 81 ... 2001 (arXiv 2605.02968)."""
    fit = fit_exponents(*gaussian([81, 161, 321, 641, 1281, 2001], 20), replicates="independent")
    assert fit.D.slope == pytest.approx(0.99, abs=0.02) and fit.D.r_squared > 0.999
    assert fit.closure_error < 1e-12 and fit.delta.slope == pytest.approx(fit.D.slope - fit.z.slope - 1, abs=1e-12)


@pytest.mark.parametrize(
    ("m", "share", "z"),
    [
        (1, 0.188, 0.202),
        (2, 0.143, 0.144),
        pytest.param(3, 0.134, 0.120, marks=pytest.mark.slow),
        pytest.param(5, 0.124, 0.147, marks=pytest.mark.slow),
    ],
)
def test_gaussian_fields_up_to_fifty_thousand_nodes(m, share, z):
    """D is 1 whatever m_BA; a fixed share of nodes moves; duration grows slowly, and more slowly the larger N is."""
    nodes, s, n = gaussian([200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000], 10, m)
    fit = fit_exponents(nodes, s, n, replicates="independent")
    assert fit.D.slope == pytest.approx(0.99, abs=0.02)
    assert np.mean((s / nodes)[nodes >= 5000]) == pytest.approx(share, abs=0.002)
    assert fit.z.slope == pytest.approx(z, abs=0.04)
    assert fit.closure_error < 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SIZES[[0, 0, 1]], [1, 1, 1], [1, 1, 1]), "num_nodes must have 3 distinct sizes or more, got 2"),
        ((SIZES, [1, 1, 0, 1, 1], [1] * 5), "size must be above 0, got 0"),
        ((SIZES, [1] * 5, [1, 1, np.nan, 1, 1]), "duration must be above 0, got nan"),
        ((SIZES, [1] * 4, [1] * 5), "num_nodes, size, duration and capped must be of one length"),
    ],
)
def test_what_cannot_be_used(arguments, message):
    with pytest.raises(InputError, match=message):
        fit_exponents(*arguments)


def test_options_that_cannot_be_used():
    with pytest.raises(InputError, match="replicates must be two or more of each size, got one at N = 100"):
        fit_exponents(SIZES, SIZES, SIZES, replicates="independent")
    with pytest.raises(InputError, match=r"Did you mean 'shared'\?"):
        fit_exponents(SIZES, SIZES, SIZES, replicates="share")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="confidence must be between 0 and 1, got 95"):
        fit_exponents(SIZES, SIZES, SIZES, confidence=95)
