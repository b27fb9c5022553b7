"""Thresholds of the verdicts, by themselves: an option's help needs them, and no library for it."""

from __future__ import annotations

from dataclasses import dataclass

from toydepth.errors import InputError


@dataclass(frozen=True)
class RegimeRule:
    """Thresholds of the verdict (ours); the numbers they are held against are printed beside it.

    Args:
        middle: relative depths between which layers count as the middle.
        orthogonal: updates whose mean angle is at least this part of pi/2 are near-orthogonal.
        aligned: at most this part of pi/2: aligned.
        even: states' angles whose standard deviation over middle layers is at most this part of their mean are even.
        stopped: middle layers that turn a state by less than this part of what the others do at most have stopped.
        stopped_share: part of the middle layers that must have stopped for compositional.
    """

    middle: tuple[float, float] = (0.25, 0.75)
    orthogonal: float = 0.8
    aligned: float = 0.5
    even: float = 0.5
    stopped: float = 0.1
    stopped_share: float = 0.5

    def __post_init__(self) -> None:
        low, high = self.middle
        if not 0 <= low < high <= 1:
            raise InputError(f"middle must be two relative depths, 0 <= low < high <= 1, got {self.middle}.")
        if not 0 < self.stopped_share <= 1:
            raise InputError(f"stopped_share must be in (0, 1], got {self.stopped_share}. 0.5 is half of the middle.")
        if not 0 < self.aligned < self.orthogonal <= 1:
            got = f"{self.aligned} and {self.orthogonal}"
            raise InputError(f"aligned must be below orthogonal, both in (0, 1], got {got}.")


@dataclass(frozen=True)
class ClusterRule:
    """How the number of clusters is chosen (thresholds ours), and how sure intervals are.

    Components of a Gaussian mixture are added while BIC falls; those without a valley between them are one cluster.

    Args:
        most: components of the mixture tried at most.
        least_tokens: sampled tokens of a cluster; fewer cannot be told from outliers.
        valley: density between two clusters, over the lower of their peaks, below which they are two.
        floor: least standard deviation of a component, in those of the densest quarter of tokens: equal first tokens
            have equal profiles, and a heap of them is one cluster only if it stands out at this scale.
        confidence: of the intervals of shares.
    """

    most: int = 8
    least_tokens: int = 10
    valley: float = 0.5
    floor: float = 0.2
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.most < 1:
            raise InputError(f"most must be 1 or more, got {self.most}. 8 is the default.")
        if self.least_tokens < 3:
            raise InputError(f"least_tokens must be 3 or more, got {self.least_tokens}. 10 is the default.")
        for name in ("valley", "floor", "confidence"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise InputError(f"{name} must be in (0, 1), got {value}. {getattr(type(self), name)} is the default.")
