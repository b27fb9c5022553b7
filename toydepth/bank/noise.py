"""The float32 noise floor: how small a loss can be and still mean something."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from toydepth.bank.bank import Bank
from toydepth.bank.losses import log_probabilities, per_example_kl
from toydepth.bank.streams import make_streams
from toydepth.net import Params, rms

_NEAR = 1e-4


def measure_noise_floor(bank: Bank, samples: int = 2048) -> np.ndarray:
    """Returns the noise floor of the test loss, (replicates, temperatures).

    kl: mean |KL in float32 - KL in float64| over examples, for a student whose final hidden state is within 1e-4 of the
    teacher's: the float32 sum of near-cancelling terms is noise, of either sign. Signs cancel in a mean over examples,
    so this bounds the noise of a test loss from above.
    mse: mean squared difference between the teacher in float32 and in float64, which no float32 student can undercut.

    Args:
        bank: whose teachers, heads and temperatures are measured, on its own device and precision.
        samples: of the bank's test inputs, at most.

    Source: ours; docs/notation.md, "Noise floor".
    """
    inputs = np.asarray(jax.device_get(bank.test_inputs))[:, :samples]
    config = bank.config
    teachers = jax.device_get(bank.teachers)
    final_hidden = jax.jit(bank.problem.teacher.apply)
    floors = []
    for replicate in range(config.replicates):
        teacher = jax.tree.map(lambda leaf, r=replicate: leaf[r], teachers)
        hidden = np.asarray(final_hidden(teacher, inputs))
        if bank.heads is None:
            exact = _forward64(teacher, inputs, config.teacher.depth)
            floors.append([np.mean((hidden - exact) ** 2)] * len(config.target.temperatures))
            continue
        head = np.asarray(jax.device_get(bank.heads))[replicate]
        key = jax.random.fold_in(make_streams(config.seed).test, 1)
        near = np.asarray(rms(jnp.asarray(hidden) + _NEAR * jax.random.normal(key, hidden.shape)))
        floors.append([_kl_noise(near, hidden, head, t) for t in config.target.temperatures])
    return np.array(floors, float)


def _kl_noise(student: np.ndarray, teacher: np.ndarray, head: np.ndarray, temperature: float) -> float:
    log_student, log_teacher = (
        log_probabilities(jnp.asarray(h), jnp.asarray(head), temperature) for h in (student, teacher)
    )
    measured = np.asarray(per_example_kl(log_student, log_teacher), float)
    p, q = (_log_probabilities64(h, head, temperature) for h in (teacher, student))
    return float(np.mean(np.abs(measured - np.sum(np.exp(p) * (p - q), axis=0))))


def _log_probabilities64(hidden: np.ndarray, head: np.ndarray, temperature: float) -> np.ndarray:
    logits = head.T.astype(float) @ hidden.astype(float) / temperature
    logits -= logits.max(axis=0)
    return logits - np.log(np.exp(logits).sum(axis=0))


def _forward64(teacher: Params, inputs: np.ndarray, depth: int) -> np.ndarray:
    mlp: dict[str, Any] = teacher["stack"]["block"]["mlp"]
    weights = [np.asarray(mlp[name], float) for name in ("w1", "b1", "w2")]
    tied = weights[0].ndim == 2
    x = _rms64(inputs.astype(float))
    for layer in range(depth):
        w1, b1, w2 = weights if tied else [w[layer] for w in weights]
        x = x + w2.T @ np.maximum(w1.T @ _rms64(x) + b1[:, None], 0) ** 2
    return _rms64(x)


def _rms64(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.mean(x**2, axis=0) + np.finfo(np.float32).eps)
