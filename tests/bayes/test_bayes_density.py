"""The density of a law's posterior, against scipy's; needs no numpyro."""

import jax
import numpy as np
import pytest
from scipy import stats

from toydepth.bayes.density import Data, Shape, from_straight, log_density, prepare, straight, unpack
from toydepth.fit.law import Law, LawFit, Objective, Term

pytestmark = pytest.mark.usefixtures("quick_compilation")


# One program for all tables of one shape.
many_densities = jax.jit(jax.vmap(log_density, in_axes=(0, None, None)), static_argnums=2)
many_unpacked = jax.jit(jax.vmap(unpack, in_axes=(0, None)))


def density_at(data: Data, shape: Shape, points: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(many_densities(points, data, shape))


def unpacked(data: Data, points: np.ndarray) -> list[tuple[np.ndarray, float, float]]:
    with jax.enable_x64(True):
        return [
            (theta, float(s), float(g))
            for theta, s, g in zip(*map(np.asarray, many_unpacked(points, data)), strict=True)
        ]


def log_prior(fit: LawFit, data: Data, theta: np.ndarray, log_sigma: float, typical: float) -> float:
    """Written out anew: normal of scale 3 around exponents 0.5, equal parts of the median loss, 1 % of noise."""
    loss = np.exp(fit.estimate.problem.log_loss)
    floor, names = 0.5 * loss.min(), fit.law.parameters
    # The median of ln L: of an even number of rows it is not quite that of L.
    part = np.log((np.exp(np.median(np.log(loss))) - floor) / len(fit.law.terms))
    means = [np.log(floor) if n == "L0" else part if n.startswith("c_") else 0.5 for n in names]
    value = stats.norm.logpdf(theta, means, 3).sum()
    return float(value + stats.norm.logpdf(log_sigma, np.log(0.01 * typical), 3))


@pytest.mark.parametrize("kind", ["log", "linear", "student"])
@pytest.mark.parametrize("weights", [None, "weight"])
def test_the_density_is_that_of_scipy(make_table, quick, kind: str, weights: str | None):
    fit = quick(make_table(), objective=Objective(kind, degrees=3.0), weights=weights)
    shape, data = prepare(fit, 3.0)
    points = np.random.default_rng(0).normal(size=(5, 6))
    problem, expected = fit.estimate.problem, []
    for theta, log_sigma, _ in unpacked(data, points):
        residuals, sigma = problem.residuals(theta), np.exp(log_sigma)
        one = stats.t(3, scale=sigma) if kind == "student" else stats.norm(scale=sigma)
        typical = float(np.exp(np.median(problem.log_loss))) if kind == "linear" else 1.0
        likelihood = np.sum(fit.estimate.weights * one.logpdf(residuals))
        expected.append(likelihood + log_prior(fit, data, theta, log_sigma, typical))
    constant = density_at(data, shape, points) - expected
    # Only float64 gets this far: the values are some hundreds.
    assert np.ptp(constant) < 1e-9


@pytest.mark.parametrize("kind", ["log", "linear"])
def test_intercepts_of_groups_are_integrated_out_exactly(make_table, quick, kind: str):
    fit = quick(make_table(), objective=kind, groups="group")
    shape, data = prepare(fit, 3.0)
    points = np.random.default_rng(0).normal(size=(5, 7))
    problem, expected = fit.estimate.problem, []
    together = np.equal.outer(fit.rows.groups, fit.rows.groups)
    typical = float(np.exp(np.median(problem.log_loss))) if kind == "linear" else 1.0
    for theta, log_sigma, log_std in unpacked(data, points):
        covariance = np.exp(2 * log_sigma) * np.eye(len(together)) + np.exp(2 * log_std) * together
        value = stats.multivariate_normal(cov=covariance).logpdf(problem.residuals(theta))
        value += stats.halfnorm.logpdf(np.exp(log_std), scale=typical) + log_std
        expected.append(value + log_prior(fit, data, theta, log_sigma, typical))
    assert np.ptp(density_at(data, shape, points) - expected) < 1e-9


@pytest.mark.parametrize("groups", [None, "group"])
def test_a_row_of_weight_two_is_two_rows(make_table, quick, groups: str | None):
    shape, data = prepare(quick(make_table(), groups=groups), 3.0)
    weights = np.ones(36)
    weights[[3, 20]] = 2
    places = np.r_[0:36, 3, 20]
    weighted = data._replace(weights=weights)
    repeated = data._replace(
        log_x=data.log_x[:, places], seen=data.seen[places], weights=np.ones(38), groups=data.groups[places]
    )
    points = np.random.default_rng(0).normal(size=(4, 7 if groups else 6))
    assert density_at(weighted, shape, points) == pytest.approx(density_at(repeated, shape, points), rel=1e-12)


@pytest.mark.parametrize("kind", ["log", "linear"])
def test_the_density_does_not_depend_on_units(make_table, quick, kind: str):
    table = make_table()
    other = table.assign(D=table.D / 1e9, m=table.m * 64, loss=table.loss / np.log(2))
    fits = [quick(one, objective=kind, groups="group") for one in (table, other)]
    (shape, data), (_, scaled) = (prepare(fit, 3.0) for fit in fits)
    scaled = scaled._replace(root=data.root)  # whose signs are a matter of rounding
    points = np.random.default_rng(0).normal(size=(5, 7))
    assert np.ptp(density_at(data, shape, points) - density_at(scaled, shape, points)) < 1e-6


@pytest.mark.parametrize(
    "law",
    [
        Law("two", (Term("m"), Term("D"))),
        Law("floor", (Term("m"), Term("D")), 0.0),
        Law("fixed", (Term("m", 1.0), Term("D")), 1.7),
        Law("shared", (Term("m"), Term("D", "alpha_m"))),
        Law("one", (Term("m"),), 0.0),
    ],
    ids=lambda law: law.name,
)
def test_straight_coordinates_keep_volumes(make_table, quick, law: Law):
    fit = quick(make_table(noise=0.02), law)
    _, data = prepare(fit, 3.0)
    theta = np.random.default_rng(1).normal(size=(4, len(law.parameters)))
    with jax.enable_x64(True):
        back, slopes = jax.jit(
            jax.vmap(lambda x: (from_straight(straight(x, data), data), jax.jacobian(straight)(x, data)))
        )(theta)
    assert np.asarray(back) == pytest.approx(theta, abs=1e-10)
    assert np.abs(np.linalg.det(np.asarray(slopes))) == pytest.approx(1, rel=1e-9)
