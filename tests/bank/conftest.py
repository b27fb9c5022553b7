"""Tiny configurations, and the model written a second time: batch first, plain numpy, float64, gradients by hand."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from toydepth.config import DeviceConfig, EvalConfig, TeacherConfig, TrainConfig

EPSILON = float(np.finfo(np.float32).eps)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(compile_each_program_once):
    """Every test of this folder."""


@pytest.fixture(scope="session")
def tiny():
    """tiny(student=..., ...): a config of width 4 with 16 examples a batch, on one device."""

    def make(teacher_depth=3, kind="tied", points=4, **changes):
        values = {
            "width": 4,
            "vocabulary": 5,
            "batch_size": 16,
            "steps": 3,
            "teacher": TeacherConfig(kind=kind, depth=teacher_depth),
            "eval": EvalConfig(points=points, samples=64),
            "device": DeviceConfig(count=1),
        }
        return TrainConfig(**(values | changes))

    return make


def _rms(x):
    scale = 1 / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + EPSILON)
    return x * scale, lambda dy: scale * dy - scale**3 * x * np.mean(dy * x, axis=1, keepdims=True)


def _mlp(w, x):
    h, back_rms = _rms(x)
    z = h @ w["w1"] + w["b1"]
    r = np.maximum(z, 0)

    def back(dy):
        dz = (dy @ w["w2"].T) * 2 * r
        return back_rms(dz @ w["w1"].T), {"w1": h.T @ dz, "b1": dz.sum(axis=0), "w2": (r**2).T @ dy}

    return (r**2) @ w["w2"], back


def _block(layer, x):
    if "mlp" in layer:
        y, back = _mlp(layer["mlp"], x)

        def back_euler(dy):
            dx, dw = back(dy)
            return dy + dx, {"mlp": dw}

        return x + y, back_euler
    k1, back_1 = _mlp(layer["mlp_1"], x)
    k2, back_2 = _mlp(layer["mlp_2"], x + k1 / 2)

    def back_midpoint(dy):
        dm, dw2 = back_2(dy)
        dx, dw1 = back_1(dm / 2)
        return dy + dm + dx, {"mlp_1": dw1, "mlp_2": dw2}

    return x + k2, back_midpoint


def _forward(layers, x):
    """Hidden state (B, m) of a list of layers, and its backward pass to a list of gradients."""
    x, _ = _rms(x)
    backs = []
    for layer in layers:
        x, back = _block(layer, x)
        backs.append(back)
    y, back_rms = _rms(x)

    def backward(dy):
        dx, gradients = back_rms(dy), []
        for back in reversed(backs):
            dx, dw = back(dx)
            gradients.insert(0, dw)
        return gradients

    return y, backward


def _log_softmax(logits):
    logits = logits - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def _mse(student, target):
    return np.mean((student - target) ** 2), 2 * (student - target) / student.size


def _kl(logits, log_p):
    log_q = _log_softmax(logits)
    p = np.exp(log_p)
    return np.mean(np.sum(p * (log_p - log_q), axis=1)), (np.exp(log_q) - p) / len(p)


def _float64(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), tree)


def _layers(block, depth=None):
    """Stacked parameters {mlp: {w1: (L, ...)}} as a list of layers; a tied block (no layer axis) is repeated."""
    block = _float64(block)
    if next(iter(block.values()))["b1"].ndim == 1:
        return [block] * depth
    return [jax.tree.map(lambda leaf, k=k: leaf[k], block) for k in range(len(jax.tree.leaves(block)[0]))]


def _loss(params, x, target, kind, head=None, temperature=1.0):
    """Loss and gradients (like params) of one student; `target`: hidden states (mse) or log p (kl)."""
    block, own = _float64(params["stack"]["block"]), params.get("head")
    layers = _layers(block)
    hidden, backward = _forward(layers, x)
    gradient = {}
    if kind == "mse":
        loss, d_hidden = _mse(hidden, target)
    else:
        w = np.asarray(head if own is None else own, float)
        loss, d_logits = _kl(hidden @ w / temperature, target)
        d_hidden = d_logits @ w.T / temperature
        if own is not None:
            gradient["head"] = hidden.T @ d_logits / temperature
    per_layer = backward(d_hidden)
    zeros = jax.tree.map(np.zeros_like, block)
    gradient["stack"] = {"block": jax.tree.map(lambda *g: np.stack(g), *per_layer) if per_layer else zeros}
    return loss, gradient


def _adam(params, moments, gradient, rate, count, b1=0.9, b2=0.999, eps=1e-8):
    """One Adam step, the count from 1."""
    first = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, moments[0], gradient)
    second = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, moments[1], gradient)
    step = lambda p, m, v: p - rate * (m / (1 - b1**count)) / (np.sqrt(v / (1 - b2**count)) + eps)  # noqa: E731
    return jax.tree.map(step, params, first, second), (first, second)


@pytest.fixture(scope="session")
def reference():
    """The numpy model: forward, log_softmax, layers, loss (with gradients), adam, float64."""
    return SimpleNamespace(
        forward=lambda layers, x: _forward(layers, x)[0],
        log_softmax=_log_softmax,
        layers=_layers,
        loss=_loss,
        adam=_adam,
        float64=_float64,
    )
