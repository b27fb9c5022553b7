"""What one would write in jax at first: layers scanned, batch first, one teacher, one device, differentiated by jax."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from benchmarks.cases import CASES


def set_up(case: str) -> tuple[Callable[[], float], dict[str, Any]]:
    """Returns a repetition, which gives its seconds a step of one set of students, and what it runs on."""
    config, steps = CASES[case].config(), max(CASES[case].steps // 4, 2)
    if config.loss.name != "mse":
        raise ValueError("the plain row is written for mse")
    jax.config.update("jax_default_matmul_precision", config.device.precision)
    width, key = config.width, jax.random.key(0)
    teacher = jax.tree.map(lambda leaf: leaf[0], _layers(key, width, 1))
    teacher["w2"] *= config.teacher.depth**-0.5
    students = {depth: _layers(jax.random.fold_in(key, depth), width, depth) for depth in config.student.depths}
    optimizer = optax.adam(config.learning_rate)

    def loss(student: dict[str, jax.Array], x: jax.Array, target: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(_network(student, x) - target))

    @jax.jit
    def train(students, moments, step):
        def body(step, carry):
            students, moments = carry
            x = jax.random.normal(jax.random.fold_in(key, step), (config.batch_size, width))
            shared = jax.lax.scan(lambda h, _: (_layer(h, teacher), None), _rms(x), None, length=config.teacher.depth)
            target = _rms(shared[0])
            new = {}
            for depth, student in students.items():
                gradient = jax.grad(loss)(student, x, target)
                update, moment = optimizer.update(gradient, moments[depth])
                new[depth] = optax.apply_updates(student, update), moment
            return {d: pair[0] for d, pair in new.items()}, {d: pair[1] for d, pair in new.items()}

        return jax.lax.fori_loop(step, step + steps, body, (students, moments))

    moments = {depth: optimizer.init(student) for depth, student in students.items()}
    state = jax.block_until_ready(train(students, moments, 0))
    done = 0

    def repeat() -> float:
        nonlocal state, done
        begun = time.perf_counter()
        done += steps
        state = jax.block_until_ready(train(*state, done))
        return (time.perf_counter() - begun) / steps

    return repeat, {"device": f"1 x {jax.devices()[0].device_kind}", "device_count": 1}


def _layers(key: jax.Array, width: int, depth: int) -> dict[str, jax.Array]:
    keys = jax.random.split(key, 3)
    draw = lambda k, shape, fan: jax.random.uniform(k, (depth, *shape), minval=-(fan**-0.5), maxval=fan**-0.5)  # noqa: E731
    return {
        "w1": draw(keys[0], (width, 4 * width), width),
        "b1": draw(keys[1], (4 * width,), width),
        "w2": draw(keys[2], (4 * width, width), 4 * width),
    }


def _rms(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + jnp.finfo(jnp.float32).eps)


def _layer(x: jax.Array, layer: dict[str, jax.Array]) -> jax.Array:
    return x + jnp.square(jax.nn.relu(_rms(x) @ layer["w1"] + layer["b1"])) @ layer["w2"]


def _network(layers: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return _rms(jax.lax.scan(lambda h, layer: (_layer(h, layer), None), _rms(x), layers)[0])
