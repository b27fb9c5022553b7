"""Angle profiles of a stream of tokens: their components, a sample of them, and the clusters that it falls into."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from toydepth.hidden.clusters import ClusterRule, Clusters, find_clusters
from toydepth.hidden.covariance import Components, ProfileCovariance
from toydepth.hidden.reservoir import Reservoir
from toydepth.hidden.trajectory import Trajectory


class Profiles:
    """What a stream leaves of its profiles, theta(h_k, h_k+1) over k: a covariance and a sample, in constant memory.

    All positions are in it, the first ones too: who stands apart is the question.

    Args:
        depth: blocks of the network.
        capacity: tokens of the sample.
        seed: of the sample.
    """

    def __init__(self, depth: int, capacity: int = 20_000, seed: int = 0):
        self.covariance = ProfileCovariance(depth)
        self.reservoir = Reservoir(depth, capacity, seed)

    def add(self, part: Trajectory, *, document: Any, position: Any, token: Any) -> Profiles:
        """Adds tokens, (tokens,) each; a token's norm in the sample is its largest over all layers. Returns itself."""
        norm = part.norm.max(axis=0)
        self.reservoir.add(part.theta_states, document=document, position=position, token=token, norm=norm)
        self.covariance.add(part.theta_states)
        return self

    def components(self, count: int = 2) -> Components:
        """Returns the first components, or as many as there are layers."""
        return self.covariance.components(min(count, len(self.covariance.mean)))

    def clusters(self, rule: ClusterRule | None = None, count: int = 2, seed: int = 0) -> Clusters:
        """Returns the clusters in the space of `count` components.

        Where BIC still falls at `rule.most`, twice as many components are tried, once: `Clusters.rule` says so.
        """
        rule = rule or ClusterRule()
        sample, components = self.reservoir.sample(), self.components(count)
        found = find_clusters(sample, components, rule, seed)
        if not found.capped:
            return found
        return find_clusters(sample, components, dataclasses.replace(rule, most=2 * rule.most), seed)

    def state(self) -> dict[str, Any]:
        """Returns what `restore` needs: numbers and arrays."""
        return {"covariance": self.covariance.state(), "reservoir": self.reservoir.state()}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Profiles:
        """Returns the profiles that `state` was taken of; they go on as if they had never stopped."""
        restored = cls(1)
        restored.covariance = ProfileCovariance.restore(state["covariance"])
        restored.reservoir = Reservoir.restore(state["reservoir"])
        return restored
