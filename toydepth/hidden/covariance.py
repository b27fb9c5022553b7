"""Principal components of angle profiles: the mean and the scatter of a stream of tokens, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toydepth.errors import InputError


@dataclass(frozen=True, eq=False)
class Components:
    """Directions in which profiles differ most.

    Attributes:
        mean (layers,): rad, that scores are counted from.
        axes (components, layers): orthonormal rows, by falling variance. The largest entry of each is positive (the
            first of several that are equal to a millionth), so that another machine does not mirror the plane.
        variances (components,): rad^2, with n - 1.
        shares (components,): of the variance of all layers; NaN where there is none at all.
        num_tokens: how many profiles they rest on.
    """

    mean: np.ndarray
    axes: np.ndarray
    variances: np.ndarray
    shares: np.ndarray
    num_tokens: int

    def project(self, profiles: np.ndarray) -> np.ndarray:
        """Returns the scores (components, tokens), rad, of profiles (layers, tokens)."""
        return self.axes @ (check_profiles(profiles, len(self.mean)) - self.mean[:, None])


class ProfileCovariance:
    """Mean and scatter matrix, sum of (p - mean)(p - mean)^T, of the profiles p (layers,) of all tokens added.

    Parts are added up by their means and scatters, in float64: the result depends on how the stream was cut to rounding
    alone. A profile in which an angle is missing (NaN) is left out whole, and counted.

    Args:
        layers: angles of a profile.

    Example:
        >>> found = ProfileCovariance(2).add(np.array([[0.0, 3.0, 6.0], [0.0, 4.0, 8.0]])).components(1)
        >>> found.axes.round(6).tolist(), found.shares.round(6).tolist(), found.mean.tolist()
        ([[0.6, 0.8]], [1.0], [3.0, 4.0])

    Source: Chan, Golub, LeVeque, The American Statistician 1983, for the sums; arXiv 2602.05970 for the components.
    """

    def __init__(self, layers: int):
        self.count = 0
        self.num_left_out = 0
        self.mean = np.zeros(layers)
        self.scatter = np.zeros((layers, layers))

    def add(self, profiles: np.ndarray) -> ProfileCovariance:
        """Adds profiles (layers, tokens), rad. Returns itself.

        Raises:
            InputError: for another shape.
        """
        values = check_profiles(profiles, len(self.mean))
        whole = np.isfinite(values).all(axis=0)
        kept = values[:, whole]
        part = ProfileCovariance(len(self.mean))
        part.count, part.num_left_out = kept.shape[1], int((~whole).sum())
        part.mean = kept.sum(axis=1) / max(part.count, 1)
        centred = kept - part.mean[:, None]
        part.scatter = centred @ centred.T
        return self.merge(part)

    def merge(self, other: ProfileCovariance) -> ProfileCovariance:
        """Adds what another has seen. Returns itself.

        Raises:
            InputError: for another number of layers.
        """
        if len(other.mean) != len(self.mean):
            condition = f"those of one network, of {len(self.mean)} angles each"
            raise InputError(f"profiles must be {condition}, got {len(other.mean)}. Keep a covariance a network.")
        total = self.count + other.count
        share = other.count / max(total, 1)
        apart = other.mean - self.mean
        self.scatter = self.scatter + other.scatter + np.outer(apart, apart) * (self.count * share)
        self.mean = self.mean + apart * share
        self.count = total
        self.num_left_out += other.num_left_out
        return self

    @property
    def covariance(self) -> np.ndarray:
        """(layers, layers), rad^2, with n - 1; NaN below two profiles."""
        return self.scatter / (self.count - 1) if self.count > 1 else np.full_like(self.scatter, np.nan)

    def components(self, count: int = 2) -> Components:
        """Returns the first `count` principal components.

        Raises:
            InputError: for fewer than 1 or more than there are layers; before two whole profiles were added.
        """
        layers = len(self.mean)
        if not 1 <= count <= layers:
            raise InputError(f"count must be 1 ... {layers}, got {count}. There is one component an angle at most.")
        if self.count < 2:
            got = f"{self.count}, and {self.num_left_out} with a missing angle"
            raise InputError(f"whole profiles must be 2 or more, got {got}. Give more text, or a network without NaN.")
        variances, vectors = np.linalg.eigh(self.covariance)
        # Rounding leaves variances of -1e-20 where there is none.
        variances, axes = np.maximum(variances[::-1], 0.0), vectors.T[::-1]
        size = np.abs(axes)
        leading = (size >= (1 - 1e-6) * size.max(axis=1, keepdims=True)).argmax(axis=1)
        axes = axes * np.where(axes[np.arange(layers), leading] < 0, -1.0, 1.0)[:, None]
        total = variances.sum()
        shares = variances / total if total > 0 else np.full(layers, np.nan)
        return Components(self.mean.copy(), axes[:count], variances[:count], shares[:count], self.count)

    def state(self) -> dict[str, Any]:
        """Returns what `restore` needs: numbers and arrays."""
        return {name: getattr(self, name) for name in ("count", "num_left_out", "mean", "scatter")}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> ProfileCovariance:
        """Returns the covariance that `state` was taken of; it goes on as if it had never stopped."""
        restored = cls(len(state["mean"]))
        restored.count, restored.num_left_out = int(state["count"]), int(state["num_left_out"])
        restored.mean, restored.scatter = np.array(state["mean"]), np.array(state["scatter"])
        return restored


def check_profiles(profiles: np.ndarray, layers: int) -> np.ndarray:
    """Returns profiles in float64, or raises InputError where they are not (layers, tokens)."""
    values = np.asarray(profiles, np.float64)
    if values.ndim != 2 or len(values) != layers:
        raise InputError(f"profiles must be ({layers}, tokens), got shape {values.shape}. Put layers first.")
    return values
