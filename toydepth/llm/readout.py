"""What each layer would predict: the cross-entropy of its states, read out in two ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toydepth.errors import InputError
from toydepth.hidden.moments import Moments
from toydepth.llm.adapters import Parts
from toydepth.llm.batches import TokenBatch
from toydepth.llm.capture import Stream, capture, evaluating

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

READOUTS = ("lens", "last_block")
_COLUMNS = {"lens": "cross_entropy", "last_block": "cross_entropy_last_block"}
_LOGITS_AT_ONCE = 2**26  # numbers: tokens times vocabulary


class Readout:
    """Cross-entropy by layer, in nats per token, of any number of batches.

    Of a state h_k at position t, the token at t + 1 being known:

        lens          -ln softmax(head(norm(h_k)))                   norm and head as after the last block
        last_block    -ln softmax(head(norm(block_L(h_k)))), k < L   blocks k + 1 ... L - 1 are skipped

    last_block of k = L - 1 is the model itself, as is the lens of k = L: it is not computed again.

    Args:
        depth: blocks of the model.
        kinds: lens, last_block or both.
        skip_first: positions t below it are left out.
        allow_non_finite: leave out cross-entropies with NaN or inf, rather than fail; `_tokens` counts the others.

    Raises:
        InputError: for another kind, or none.

    Source: nostalgebraist, interpreting GPT: the logit lens, 2020; arXiv 2602.05970 reads through the last block.
    """

    def __init__(
        self, depth: int, kinds: Iterable[str] = READOUTS, skip_first: int = 1, allow_non_finite: bool = False
    ):
        self.depth, self.kinds, self.skip_first = depth, tuple(kinds), skip_first
        self.allow_non_finite = allow_non_finite
        self.num_tokens = 0
        if not self.kinds or set(self.kinds) - set(READOUTS):
            got = ", ".join(self.kinds) or "none"
            raise InputError(f"readouts must be of {', '.join(READOUTS)}, got {got}. lens is the cheaper one.")
        self.moments = {kind: Moments(depth + (kind == "lens")) for kind in self.kinds}

    def measure(
        self, parts: Parts, batch: TokenBatch, stream: Stream | None = None, most: int | None = None
    ) -> dict[str, np.ndarray]:
        """Returns the cross-entropies of a batch, (layers, tokens) of each kind, to be added.

        Args:
            parts: of the model.
            batch: the tokens.
            stream: of all tokens of the batch, with padding, where it is known; otherwise the model is run.
            most: tokens read out in all; those of a batch that go beyond are left out, in reading order.

        Raises:
            InputError: where a cross-entropy is not finite.
        """
        import torch  # pyright: ignore[reportMissingImports]

        # Padding may stand on either side: the next token is in the next column all the same.
        known = batch.mask[:, :-1] & batch.mask[:, 1:] & (batch.positions[:, :-1] >= self.skip_first)
        if most is not None:
            known &= (known.ravel().cumsum() <= most - self.num_tokens).reshape(known.shape)
        if not known.any():
            return {}
        stream = stream or capture(parts, batch.ids, batch.mask)
        keep, target = torch.as_tensor(known), torch.as_tensor(batch.ids[:, 1:][known])
        states, found = stream.states, {}
        with torch.inference_mode(), evaluating(parts):
            final = cross_entropies(parts, states[-1], keep, target)
            if "lens" in self.kinds:
                rows = [cross_entropies(parts, state, keep, target) for state in states[:-1]]
                found["lens"] = np.stack([*rows, final])
            if "last_block" in self.kinds:
                through = (_through_last(parts, stream, state) for state in states[:-2])
                rows = [cross_entropies(parts, state, keep, target) for state in through]
                found["last_block"] = np.stack([*rows, final])
        for kind, values in found.items():
            finite = np.isfinite(values).all(axis=1)
            if not finite.all() and not self.allow_non_finite:
                got = f"NaN or inf ({kind}, layer {int(np.argmin(finite))})"
                advice = "Load the model in a wider type (float32), allow them, or read nothing out."
                raise InputError(f"cross-entropy must be finite, got {got}. {advice}")
        return found

    def add(self, found: Mapping[str, np.ndarray]) -> Readout:
        """Adds what `measure` has found; num_tokens counts the tokens that were read out. Returns itself."""
        for kind, values in found.items():
            self.moments[kind].add(values)
        self.num_tokens += max((values.shape[1] for values in found.values()), default=0)
        return self

    def table(self) -> pd.DataFrame:
        """Returns a row a layer 0 ... depth: layer; the columns of each kind, their _error and _tokens.

        cross_entropy is that of the lens, cross_entropy_last_block the other.
        _error is that of the mean, tokens taken as independent. No last_block in the row of the last layer: NaN.
        """
        columns: dict[str, Any] = {"layer": np.arange(self.depth + 1)}
        for kind, moments in self.moments.items():
            mean = np.where(moments.count > 0, moments.mean, np.nan)
            for name, values in (("", mean), ("_error", moments.standard_error), ("_tokens", moments.count)):
                missing = 0 if name == "_tokens" else np.nan
                rest = [missing] * (self.depth + 1 - len(values))
                columns[f"{_COLUMNS[kind]}{name}"] = np.concatenate([values, rest]).astype(values.dtype)
        return pd.DataFrame(columns)

    def state(self) -> dict[str, Any]:
        """Returns what `restore` needs: numbers, words and arrays."""
        state: dict[str, Any] = {"depth": self.depth, "kinds": list(self.kinds), "skip_first": self.skip_first}
        state |= {"allow_non_finite": self.allow_non_finite, "num_tokens": self.num_tokens}
        return state | {"moments": {kind: moments.state() for kind, moments in self.moments.items()}}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Readout:
        """Returns the readout that `state` was taken of; it goes on as if it had never stopped."""
        restored = cls(int(state["depth"]), state["kinds"], int(state["skip_first"]), bool(state["allow_non_finite"]))
        restored.num_tokens = int(state["num_tokens"])
        restored.moments = {kind: Moments.restore(one) for kind, one in state["moments"].items()}
        return restored


def _through_last(parts: Parts, stream: Stream, state: torch.Tensor) -> torch.Tensor:
    """block_L of a state of all tokens, with the mask and the positions that it was given."""
    args, named = stream.last_call
    output = parts.blocks[-1](state, *args, **named)
    return output[0] if isinstance(output, tuple) else output


def cross_entropies(parts: Parts, state: torch.Tensor, keep: torch.Tensor, target: torch.Tensor) -> np.ndarray:
    """Of the kept tokens, in nats: (tokens,); logits in the model's dtype, what follows in float32."""
    import torch  # pyright: ignore[reportMissingImports]

    # A token too few: the last column has no next token.
    rows = state[:, :-1][keep.to(state.device)]
    step = max(1, _LOGITS_AT_ONCE // parts.head.weight.shape[0])
    found = []
    for first in range(0, len(rows), step):
        logits = parts.head(parts.norm(rows[first : first + step])).float()
        right = target[first : first + step].to(logits.device)
        found.append(torch.nn.functional.cross_entropy(logits, right, reduction="none").double().cpu())
    return torch.cat(found).numpy()
