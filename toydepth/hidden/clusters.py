"""Clusters of angle profiles in the plane of their first principal components, and who is in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from toydepth.errors import InputError
from toydepth.hidden.covariance import Components
from toydepth.hidden.mixture import Mixture, find_heaps, fit_mixture
from toydepth.hidden.reservoir import Sample
from toydepth.hidden.rules import ClusterRule

_QUARTER = 0.6373  # length of the shortest interval with a quarter of a normal distribution, in standard deviations
_RESOLUTION = 1e-5  # rad, that float32 states leave of an angle: what is closer together is one
_TYPICAL = 8


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters by falling size: 0 is the bulk.

    Attributes:
        table: a row a cluster: cluster; tokens (of the sample); share, share_low, share_high, of all tokens
            (Clopper-Pearson); mean_position; first_share, of its tokens, at position 0; share_of_first, of the sampled
            tokens at position 0, in this cluster (NaN where there are none); valley, the shallowest around it: density
            over the lower peak, 0 where it stands alone, near `rule.valley` where another seed or more text may join
            it to the next (NaN for one cluster); median_norm; norm_rank, the chance that a token
            of it has a larger norm than one outside (0.5: norms tell nothing; NaN for one cluster); centre_1, centre_2
            ... (mean scores, rad); typical_tokens, (id, count in the cluster, count in the sample), those that tell
            most that a token belongs to it: by n ln(n N / (n_token n_cluster)), n of the id in the cluster.
        points: a row a sampled token: document, position, token, norm, component_1, component_2 ... (rad), cluster.
        profiles: a row a cluster and layer: cluster, layer, relative_depth (halfway between the two states), theta
            (mean), theta_q05, theta_q95 (of its tokens).
        mixture_components: Gaussians behind the clusters.
        bic: of each number of Gaussians tried.
        rule: that was applied.
    """

    table: pd.DataFrame
    points: pd.DataFrame
    profiles: pd.DataFrame
    mixture_components: int
    bic: dict[int, float]
    rule: ClusterRule

    @property
    def capped(self) -> bool:
        """Whether BIC still fell at `rule.most`: a small cluster may be hidden yet; raise it and compare."""
        return self.mixture_components >= self.rule.most


def find_clusters(sample: Sample, components: Components, rule: ClusterRule | None = None, seed: int = 0) -> Clusters:
    """Returns the clusters of a uniform sample of tokens in the space of its components (two: the plane).

    Shares are of the stream that was sampled; dependent tokens of a document do not harm their intervals, since the
    sample is drawn at random. As a statement on other text they hold for tokens taken as independent. A cluster that
    lies apart only in components left out, or has fewer than `least_tokens` in the sample, is not seen.

    Args:
        sample: of `Reservoir.sample`.
        components: of `ProfileCovariance.components`, of the same stream.
        rule: thresholds.
        seed: of the search for the mixture.

    Raises:
        InputError: for fewer than twice `least_tokens` tokens.

    Example:
        >>> from toydepth.hidden.covariance import ProfileCovariance
        >>> from toydepth.hidden.reservoir import Reservoir
        >>> position = np.arange(1000) % 100
        >>> profiles = 0.3 + 0.01 * np.random.default_rng(0).normal(size=(4, 1000)) + 1.0 * (position == 0)
        >>> stream = Reservoir(4).add(profiles, document=np.arange(1000) // 100, position=position, token=1, norm=1.0)
        >>> found = find_clusters(stream.sample(), ProfileCovariance(4).add(profiles).components())
        >>> found.table[["tokens", "share", "first_share"]].to_numpy().tolist()
        [[990.0, 0.99, 0.0], [10.0, 0.01, 1.0]]

    Source: arXiv 2602.05970 (99.6 % of tokens in one bulk, the rest mostly first tokens); the rule is ours.
    """
    rule = rule or ClusterRule()
    scores = components.project(sample.profiles)
    count = scores.shape[1]
    if count < 2 * rule.least_tokens:
        raise InputError(f"sampled tokens must be {2 * rule.least_tokens} or more, got {count}. Give more text.")
    # One scale for all components: they share a unit, and one that hardly varies must not be blown up.
    scale = max(max(_scale(row) for row in scores), _RESOLUTION)
    places = (scores - np.median(scores, axis=1, keepdims=True)) / scale
    mixture, bic = fit_mixture(places, rule.most, rule.least_tokens, rule.floor, seed)
    labels, valleys = _label(mixture, places, rule)
    points = sample.table.reset_index(drop=True)
    for number, row in enumerate(scores, start=1):
        points[f"component_{number}"] = row
    points["cluster"] = labels
    table = pd.DataFrame([_describe(points, cluster, rule.confidence) for cluster in range(labels.max() + 1)])
    table["valley"] = valleys
    profiles = pd.concat([_profile(sample.profiles, labels, cluster) for cluster in table["cluster"]])
    return Clusters(table, points, profiles.reset_index(drop=True), len(mixture.weights), bic, rule)


def share_interval(successes: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Returns the Clopper-Pearson interval of a share: it holds the true one at least as often as `confidence` says.

    Its ends p solve P(X >= x | p) = P(X <= x | p) = (1 - confidence) / 2, X binomial.

    Example:
        >>> low, high = share_interval(19920, 20000)
        >>> round(low, 5), round(high, 5)
        (0.99502, 0.99683)

    Source: Clopper, Pearson, Biometrika 1934.
    """
    if not 0 <= successes <= total or total < 1:
        got = f"{successes} of {total}"
        raise InputError(f"successes must be 0 ... total, and total 1 or more, got {got}. Count the tokens again.")
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, total - successes + 1, tail))
    high = 1.0 if successes == total else float(betaincinv(successes + 1, total - successes, 1 - tail))
    return low, high


def _scale(row: np.ndarray) -> float:
    """Standard deviation of the densest quarter's distribution, were it normal: blind to far clusters."""
    ordered = np.sort(row)
    reach = max(len(row) // 4, 1)
    shortest = float((ordered[reach:] - ordered[:-reach]).min()) / _QUARTER
    # More than a quarter at one place has no width.
    return shortest if shortest > _RESOLUTION else float(row.std())


def _label(mixture: Mixture, places: np.ndarray, rule: ClusterRule) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest cluster of each token, by falling size, and their valleys; one with too few tokens is dropped."""
    heaps, valleys = find_heaps(mixture, rule.valley)
    parts = mixture.log_parts(places)
    parts = np.exp(parts - parts.max(axis=0))
    chances = np.stack([parts[heaps == heap].sum(axis=0) for heap in range(heaps.max() + 1)])
    while True:
        sizes = np.bincount(chances.argmax(axis=0), minlength=len(chances))
        if len(chances) == 1 or sizes.min() >= rule.least_tokens:
            break
        chances, valleys = (np.delete(values, sizes.argmin(), axis=0) for values in (chances, valleys))
    order = np.argsort(-sizes, kind="stable")
    alone = np.full(1, np.nan)
    return np.argsort(order)[chances.argmax(axis=0)], valleys[order] if len(order) > 1 else alone


def _describe(points: pd.DataFrame, cluster: int, confidence: float) -> dict[str, object]:
    columns = {name: points[name].to_numpy() for name in points.columns}
    inside, first = columns["cluster"] == cluster, columns["position"] == 0
    size = int(inside.sum())
    low, high = share_interval(size, len(points), confidence)
    told: dict[str, object] = {"cluster": cluster, "tokens": size, "share": size / len(points)}
    told |= {"share_low": low, "share_high": high, "mean_position": float(columns["position"][inside].mean())}
    told["first_share"] = float(first[inside].mean())
    told["share_of_first"] = float(inside[first].mean()) if first.any() else float("nan")
    told["median_norm"] = float(np.median(columns["norm"][inside]))
    for name, values in columns.items():
        if name.startswith("component_"):
            told[name.replace("component", "centre")] = float(values[inside].mean())
    told["norm_rank"] = _rank(columns["norm"][inside], columns["norm"][~inside])
    told["typical_tokens"] = _typical(columns["token"], inside)
    return told


def _rank(inside: np.ndarray, outside: np.ndarray) -> float:
    """P(a > b) + P(a = b) / 2, a drawn from inside, b from outside (Mann, Whitney 1947)."""
    if not len(outside):
        return float("nan")
    ordered = np.sort(outside)
    below, upto = (np.searchsorted(ordered, inside, side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * len(outside)))


def _typical(tokens: np.ndarray, inside: np.ndarray) -> list[tuple[int, int, int]]:
    known = tokens >= 0
    ids, places, total = np.unique(tokens[known], return_inverse=True, return_counts=True)
    own = np.bincount(places[inside[known]], minlength=len(ids))
    size = max(int(own.sum()), 1)
    told = own * np.log(np.maximum(own, 1) * (known.sum() / size) / total)
    # Ties by count, then by id, so that the list is the same each time.
    most = [place for place in np.lexsort((ids, -own, -told.round(9))) if own[place] > 0][:_TYPICAL]
    return [(int(ids[i]), int(own[i]), int(total[i])) for i in most]


def _profile(profiles: np.ndarray, labels: np.ndarray, cluster: int) -> pd.DataFrame:
    own = profiles[:, labels == cluster]
    layers = np.arange(len(own))
    low, high = np.quantile(own, [0.05, 0.95], axis=1)
    columns = {"cluster": cluster, "layer": layers, "relative_depth": (layers + 0.5) / len(own)}
    return pd.DataFrame(columns | {"theta": own.mean(axis=1), "theta_q05": low, "theta_q95": high})
