"""The two losses, per example and features first, so that means and standard errors come from the same numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def per_example_mse(student: jax.Array, teacher: jax.Array) -> jax.Array:
    """Returns mean over coordinates of (net_s - net_t)^2: (width, batch) twice to (batch,).

    Example:
        >>> per_example_mse(jnp.array([[1.0], [3.0]]), jnp.zeros((2, 1))).tolist()
        [5.0]
    """
    return jnp.mean(jnp.square(student - teacher), axis=0)


def log_probabilities(hidden: jax.Array, head: jax.Array, temperature: jax.Array | float) -> jax.Array:
    """Returns log softmax(W_h^T hidden / T) over the vocabulary: (width, batch), (width, V) to (V, batch)."""
    return jax.nn.log_softmax(head.T @ hidden / temperature, axis=0)


def per_example_kl(log_student: jax.Array, log_teacher: jax.Array) -> jax.Array:
    """Returns KL(teacher || student) in nats: (V, batch) log probabilities twice to (batch,).

    Near zero the float32 sum of terms of both signs is noise, of either sign; see `noise.measure_noise_floor`.

    Example:
        >>> uniform, peaked = jnp.log(jnp.array([[0.5], [0.5]])), jnp.log(jnp.array([[0.75], [0.25]]))
        >>> per_example_kl(uniform, peaked).round(4).tolist()
        [0.1308]
    """
    return jnp.sum(jnp.exp(log_teacher) * (log_teacher - log_student), axis=0)
