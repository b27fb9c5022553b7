"""What causal tracing has found: each fact's probabilities, and their averages by role of the position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from toydepth.llm.facts import ROLES, Fact, Located


@dataclass(frozen=True, eq=False)
class Traced:
    """One fact. Probabilities are those of the answer's first token after the prompt.

    Attributes:
        fact, located: in words and in tokens.
        known: whether the answer's token is the model's most probable one. predicted: that one.
        clean: of the prompt as it is. corrupted: mean over draws of noise on the subject's embeddings.
        restored (L + 1, length): mean over the same draws, with h_k at one position put back to its clean value; empty
            for a fact that was left out.
    """

    fact: Fact
    located: Located
    known: bool
    predicted: int
    clean: float
    corrupted: float
    restored: np.ndarray


@dataclass(eq=False)
class Tracing:
    """What was found so far.

    Attributes:
        depth: blocks of the model.
        noise: its standard deviation, in units of the stream.
        facts: all, in order, those that were left out too.
        include_unknown: whether averages hold facts that the model does not know.
        confidence: of intervals.
    """

    depth: int
    noise: float
    facts: list[Traced]
    include_unknown: bool = False
    confidence: float = 0.95

    @property
    def used(self) -> list[Traced]:
        """The facts that averages are over."""
        return [one for one in self.facts if one.known or self.include_unknown]

    @property
    def num_unknown(self) -> int:
        """Facts whose answer is not the model's most probable token."""
        return sum(not one.known for one in self.facts)

    def total(self) -> tuple[float, float, float]:
        """Returns the mean over facts of clean - corrupted, and its interval: what restoring everything gives."""
        return _interval(np.array([one.clean - one.corrupted for one in self.used]), self.confidence)

    def table(self) -> pd.DataFrame:
        """Returns a row a role of positions and a layer 0 ... L.

        role; layer; relative_depth, layer / L; effect: the mean over facts of restored - corrupted, positions of one
        role in one fact averaged first; effect_low, effect_high: its interval (Student t over facts; NaN for one fact);
        facts, that have such a position. A role that no fact has is left out.
        """
        rows = []
        for role in ROLES:
            own = [
                (one.restored[:, np.array(one.located.roles) == role] - one.corrupted).mean(axis=1)
                for one in self.used
                if role in one.located.roles
            ]
            for layer in range(self.depth + 1) if own else ():
                effect, low, high = _interval(np.array([values[layer] for values in own]), self.confidence)
                row = {"role": role, "layer": layer, "relative_depth": layer / self.depth, "effect": effect}
                rows.append(row | {"effect_low": low, "effect_high": high, "facts": len(own)})
        return pd.DataFrame(rows)

    def positions(self) -> pd.DataFrame:
        """Returns a row a fact used, layer and position.

        fact (its number), layer, position, token (its text), role ("" before the subject), restored, corrupted, clean.
        """
        parts = []
        for number, one in enumerate(self.facts):
            if one.restored.size and (one.known or self.include_unknown):
                layers, places = np.indices(one.restored.shape).reshape(2, -1)
                texts = [one.fact.prompt[start:end] for start, end in one.located.spans]
                columns = {"fact": number, "layer": layers, "position": places}
                columns |= {"token": [texts[place] for place in places]}
                columns |= {"role": [one.located.roles[place] for place in places]}
                numbers = {"restored": one.restored.ravel(), "corrupted": one.corrupted, "clean": one.clean}
                parts.append(pd.DataFrame(columns | numbers))
        return pd.concat(parts, ignore_index=True)


def _interval(values: np.ndarray, confidence: float) -> tuple[float, float, float]:
    """Mean of (facts,), and its Student t interval.

    >>> [round(number, 3) for number in _interval(np.array([0.1, 0.2, 0.3]), 0.95)]
    [0.2, -0.048, 0.448]
    """
    mean = float(values.mean()) if len(values) else float("nan")
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    reach = float(stdtrit(len(values) - 1, 0.5 + confidence / 2) * values.std(ddof=1) / len(values) ** 0.5)
    return mean, mean - reach, mean + reach
