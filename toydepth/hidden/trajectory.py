"""What a residual stream does from block to block: angles, norms, progress, of every token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toydepth.errors import InputError
from toydepth.hidden.angles import angle

QUANTITIES = ("theta_states", "theta_updates", "theta_final", "norm", "update_norm", "progress")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Quantities of every token, (layers, tokens) each; row k is of the state after k blocks, or of what leaves it.

    Attributes:
        theta_states (depth, tokens): angle between h_k and h_k+1.
        theta_updates (depth - 1, tokens): angle between dh_k and dh_k+1, dh_k = h_k+1 - h_k.
        theta_final (depth + 1, tokens): angle between h_k and h_L; 0 in the last row.
        norm (depth + 1, tokens): |h_k|. update_norm (depth, tokens): |dh_k|.
        progress (depth + 1, tokens): (h_k - h_0).(h_L - h_0) / |h_L - h_0|^2: 0 in the first row, 1 in the last.
        num_zero, num_not_finite (depth + 1,): tokens whose state is the zero vector, or holds NaN or inf: they have no
            angle there.
    """

    theta_states: np.ndarray
    theta_updates: np.ndarray
    theta_final: np.ndarray
    norm: np.ndarray
    update_norm: np.ndarray
    progress: np.ndarray
    num_zero: np.ndarray
    num_not_finite: np.ndarray

    @property
    def depth(self) -> int:
        """How many blocks."""
        return len(self.theta_states)


def measure_states(hidden: np.ndarray) -> Trajectory:
    """Measures a residual stream.

    Args:
        hidden: (depth + 1, tokens, width): h_0 (embedding) ... h_L (after the last block, before any final norm).

    Raises:
        InputError: for another number of axes, or no block.

    Example:
        >>> stream = np.array([[[1.0, 0.0]], [[1.0, 1.0]], [[0.0, 2.0]]])
        >>> found = measure_states(stream)
        >>> (found.theta_states / np.pi).round(4).ravel().tolist(), found.progress.ravel().round(4).tolist()
        ([0.25, 0.25], [0.0, 0.4, 1.0])

    Source: arXiv 2602.05970 for the two angles; docs/notation.md, "Hidden states".
    """
    states = np.asarray(hidden)
    if states.ndim != 3 or states.shape[0] < 2:
        condition = "(depth + 1, tokens, width) with one block or more"
        raise InputError(f"hidden must be {condition}, got shape {states.shape}. Stack the states of all layers.")
    states = states.astype(np.float64)
    finite = np.asarray(np.isfinite(states).all(axis=-1))
    # A state that is not finite would make its neighbours' updates so, with warnings: it is NaN from here on.
    states = np.where(finite[..., None], states, np.nan)
    updates = np.diff(states, axis=0)
    whole = states[-1] - states[0]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        length = np.einsum("tw,tw->t", whole, whole)
        progress = np.einsum("ltw,tw->lt", states - states[0], whole) / np.where(length > 0, length, np.nan)
        norm, update_norm = np.linalg.norm(states, axis=-1), np.linalg.norm(updates, axis=-1)
    return Trajectory(
        theta_states=angle(states[:-1], states[1:]),
        theta_updates=angle(updates[:-1], updates[1:]),
        theta_final=angle(states, states[-1:]),
        norm=norm,
        update_norm=update_norm,
        progress=progress,
        num_zero=(finite & (norm == 0)).sum(axis=-1),
        num_not_finite=(~finite).sum(axis=-1),
    )
