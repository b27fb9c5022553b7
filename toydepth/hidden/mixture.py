"""Gaussian mixtures: how many components points need, and which of them are separate heaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_STARTS, _SHORT, _LONG = 6, 10, 100  # places for a new component; steps of EM from each, and from the best
_ENOUGH = 0.05  # nats gained in a step of EM that end it: a component costs 3 ln n in two dimensions, 20 or more
_SEARCHES = 4
_SLACK = 0.5  # points: a heap of just `least` gives a hundredth of one away to its neighbours


@dataclass(frozen=True, eq=False)
class Mixture:
    """sum_j w_j N(m_j, C_j). weights (k,), means (k, d), covariances (k, d, d); log_likelihood of the points, nats."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    log_likelihood: float

    def log_parts(self, points: np.ndarray) -> np.ndarray:
        """Returns ln w_j N(x | m_j, C_j), (k, n), of points (d, n)."""
        parts = np.empty((len(self.weights), points.shape[1]))
        for j, (weight, mean, covariance) in enumerate(zip(self.weights, self.means, self.covariances, strict=True)):
            lower = np.linalg.cholesky(covariance)
            far = np.linalg.inv(lower) @ (points - mean[:, None])
            size = np.log(np.diag(lower)).sum() + 0.5 * len(mean) * np.log(2 * np.pi)
            parts[j] = np.log(weight) - size - 0.5 * (far * far).sum(axis=0)
        return parts

    def bic(self, num_points: int) -> float:
        """-2 ln L + p ln n, with p = k (1 + d + d (d + 1) / 2) - 1."""
        k, d = self.means.shape
        return -2 * self.log_likelihood + (k * (1 + d + d * (d + 1) // 2) - 1) * float(np.log(num_points))


def fit_mixture(
    points: np.ndarray, most: int, least: int, floor: float, seed: int = 0
) -> tuple[Mixture, dict[int, float]]:
    """Returns the mixture of least BIC, found by adding one component at a time, and the BIC of each k tried.

    A new component starts from the points around some drawn by their squared distance (Mahalanobis) from the component
    nearest, so that small far heaps are found, and from halves of components. The search ends when two more components
    in turn do not lower BIC, or at `most`.

    Args:
        points: (d, n).
        most: components.
        least: points that each component must have, by its weight.
        floor: least standard deviation of a component in any direction: points that coincide would else have any
            likelihood.
        seed: of the draws.

    Example:
        >>> heaps = np.random.default_rng(0).normal(size=(2, 400)) + np.repeat([[0, 9], [0, 0]], 200, axis=1)
        >>> best, _ = fit_mixture(heaps, most=4, least=10, floor=0.1)
        >>> len(best.weights)
        2

    Source: Fraley, Raftery, JASA 2002, for BIC; growing one by one, Verbeek, Vlassis, Kröse, Neural Computation 2003.
    """
    found = _search(points, most, least, floor, np.random.default_rng(seed))
    if len(found[0].weights) > 2:
        # Among many overlapping components a search may end in a poor optimum.
        generators = np.random.default_rng(seed).spawn(_SEARCHES - 1)
        found = min(
            [found, *(_search(points, most, least, floor, g) for g in generators)], key=lambda f: min(f[1].values())
        )
    return found


def _search(
    points: np.ndarray, most: int, least: int, floor: float, generator: np.random.Generator
) -> tuple[Mixture, dict[int, float]]:
    _, mean, covariance = _estimate(points, np.ones(points.shape[1]), floor)
    one = Mixture(np.ones(1), mean[None], covariance[None], 0.0)
    best = current = Mixture(one.weights, one.means, one.covariances, float(one.log_parts(points).sum()))
    tried = {1: best.bic(points.shape[1])}
    while len(current.weights) < most and len(current.weights) - len(best.weights) < 2:
        grown = _grow(points, current, least, floor, generator)
        if grown is None:
            break
        current = grown
        tried[len(current.weights)] = current.bic(points.shape[1])
        if tried[len(current.weights)] < tried[len(best.weights)]:
            best = current
    return best, tried


def _grow(
    points: np.ndarray, current: Mixture, least: int, floor: float, generator: np.random.Generator
) -> Mixture | None:
    """The best mixture found of one component more; None where none keeps `least` points in each."""
    parts = current.log_parts(points)
    before = _log_sum(parts)
    # Half the squared distance from a component is what its density falls by from its peak on.
    peaks = np.array([current.log_parts(mean[:, None])[j, 0] for j, mean in enumerate(current.means)])
    far = np.maximum((peaks[:, None] - parts).min(axis=0), 1e-12)
    places = generator.choice(points.shape[1], size=_STARTS, p=far / far.sum())
    starts = []
    for place in places:
        apart = ((points - points[:, [place]]) ** 2).sum(axis=0)
        for size in sorted({2 * least, max(2 * least, points.shape[1] // 20)}):
            near = np.zeros(points.shape[1], bool)
            near[np.argpartition(apart, size - 1)[:size]] = True
            starts.append(near)
    # Halves of components: one may hold a far heap and the tail of a near one, and few draws would fall there.
    nearest = parts.argmax(axis=0)
    for j, (mean, covariance) in enumerate(zip(current.means, current.covariances, strict=True)):
        beyond = np.linalg.eigh(covariance)[1][:, -1] @ (points - mean[:, None]) > 0
        starts += [(nearest == j) & beyond, (nearest == j) & ~beyond]
    begun = [_begin(points, before, start, least, floor) for start in starts]
    kept = [one for one in begun if one is not None]
    if not kept:
        return None
    ahead = max(kept, key=lambda one: one.log_likelihood)
    weights = np.append((1 - ahead.weights) * current.weights, ahead.weights)
    means = np.concatenate([current.means, ahead.means])
    covariances = np.concatenate([current.covariances, ahead.covariances])
    return _climb(points, Mixture(weights, means, covariances, -np.inf), least, floor)


def _begin(points: np.ndarray, before: np.ndarray, start: np.ndarray, least: int, floor: float) -> Mixture | None:
    """A new component (its weight, mean, covariance) beside the others as they are, from the points marked in `start`.

    Args: before (n,), ln of their density. Returns None where it loses its points.
    """
    own = start.astype(float)
    found = None
    for _ in range(_SHORT):
        if not least - _SLACK <= own.sum() < points.shape[1]:
            return None
        weight, mean, covariance = _estimate(points, own, floor)
        new = Mixture(np.array([weight]), mean[None], covariance[None], 0.0).log_parts(points)[0]
        both = np.logaddexp(new, before + np.log1p(-weight))
        found = Mixture(np.array([weight]), mean[None], covariance[None], float(both.sum()))
        own = np.exp(new - both)
    return found


def _climb(points: np.ndarray, start: Mixture, least: int, floor: float) -> Mixture | None:
    """EM of all components; None as soon as one has fewer than `least` points."""
    mixture, before = start, -np.inf
    for _ in range(_LONG):
        logs = mixture.log_parts(points)
        total = _log_sum(logs)
        reached = float(total.sum())
        mixture = Mixture(mixture.weights, mixture.means, mixture.covariances, reached)
        if reached - before < _ENOUGH:
            break
        before = reached
        belongs = np.exp(logs - total)
        if (belongs.sum(axis=1) < least - _SLACK).any():
            return None
        weights, means, covariances = zip(*(_estimate(points, own, floor) for own in belongs), strict=True)
        mixture = Mixture(np.array(weights), np.array(means), np.array(covariances), reached)
    return mixture


def _estimate(points: np.ndarray, own: np.ndarray, floor: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Weight, mean and covariance of points that belong to a component by `own` (n,); no direction below the floor."""
    mass = own.sum()
    mean = points @ own / mass
    centred = points - mean[:, None]
    variances, vectors = np.linalg.eigh((centred * own) @ centred.T / mass)
    # Raising small variances to the floor gives the likeliest covariance of those allowed.
    return float(mass / len(own)), mean, (vectors * np.maximum(variances, floor**2)) @ vectors.T


def find_heaps(mixture: Mixture, valley: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns the heap (k,) of each component, 0, 1, ..., and how far each heap is from being part of another (heaps,).

    Components belong together where no valley lies between. The second is the shallowest valley around a heap, density
    over the lower end: 0 for one that stands alone, near `valley` for one that hardly does, NaN for the only one.

    Between two components the density of the mixture is followed along their ridgeline, x(a) = S^-1 ((1 - a) C_1^-1 m_1
    + a C_2^-1 m_2), S = (1 - a) C_1^-1 + a C_2^-1, which passes through every peak and valley of the two. A valley is
    where it falls below `valley` of the lower end. So a skewed or long-tailed heap, that takes several components to
    describe, is one. Two equal round Gaussians are two from 3.3 standard deviations on, for `valley` = 1/2.

    Source: Ray, Lindsay, Annals of Statistics 2005, for the ridgeline; merging by it, Hennig, ADAC 2010.
    """
    k = len(mixture.weights)
    heaps = np.arange(k)
    ratios = np.zeros((k, k))
    inverses = np.linalg.inv(mixture.covariances)
    pulls = np.einsum("kij,kj->ki", inverses, mixture.means)
    way = np.linspace(0, 1, 101)[:, None, None]
    for first in range(k):
        for second in range(first + 1, k):
            both = (1 - way) * inverses[first] + way * inverses[second]
            pull = (1 - way[:, 0]) * pulls[first] + way[:, 0] * pulls[second]
            ridge = np.linalg.solve(both, pull[..., None])[..., 0].T
            density = _log_sum(mixture.log_parts(ridge))
            ratio = float(np.exp(density.min() - min(density[0], density[-1])))
            ratios[first, second] = ratios[second, first] = ratio
            if ratio >= valley:
                heaps[heaps == heaps[second]] = heaps[first]
    heaps = np.unique(heaps, return_inverse=True)[1]
    if heaps.max() == 0:
        return heaps, np.full(1, np.nan)
    own = heaps == np.arange(heaps.max() + 1)[:, None]
    return heaps, np.array([ratios[inside][:, ~inside].max() for inside in own])


def _log_sum(logs: np.ndarray) -> np.ndarray:
    """The ln of the sum of exp(logs) over the first axis; scipy's, more general, takes several times as long."""
    top = logs.max(axis=0)
    return top + np.log(np.exp(logs - top).sum(axis=0))
