"""Angles that are known: small, large, in every precision; and vectors that have none."""

import numpy as np
import pytest

from toydepth.hidden import angle


def pair(theta, width, seed=0, scale=(3.0, 0.2)):
    """Two float64 vectors of a given angle, in a random plane."""
    generator = np.random.default_rng(seed)
    first, second = np.linalg.qr(generator.normal(size=(width, 2)))[0].T
    return scale[0] * first, scale[1] * (np.cos(theta) * first + np.sin(theta) * second)


@pytest.mark.parametrize("theta", [1e-3, 0.01, 0.3, 1.0, np.pi / 2, 2.5, np.pi - 0.01, np.pi - 1e-3])
@pytest.mark.parametrize("width", [8, 768])
def test_float32_states_to_a_thousandth(theta, width):
    for seed in range(20):
        a, b = (v.astype(np.float32) for v in pair(theta, width, seed))
        assert angle(a, b) == pytest.approx(theta, rel=1e-3)


@pytest.mark.parametrize("theta", [0.05, 0.3, 1.5, 3.0])
def test_bfloat16_states_to_two_per_cent(theta):
    """Rounded to 8 bits, as a bfloat16 has them."""

    def rounded(v):
        mantissa, exponent = np.frexp(v)
        return np.ldexp(np.rint(mantissa * 2**8) / 2**8, exponent)

    found = [float(angle(*map(rounded, pair(theta, 768, seed)))) for seed in range(20)]
    assert found == pytest.approx([theta] * 20, rel=0.02)


def test_an_arc_cosine_would_not_do():
    a, b = (v.astype(np.float32) for v in pair(1e-4, 64))
    a32, b32 = a / np.linalg.norm(a), b / np.linalg.norm(b)
    with np.errstate(invalid="ignore"):
        assert np.arccos(a32 @ b32) != pytest.approx(1e-4, rel=0.1)
    assert angle(a, b) == pytest.approx(1e-4, rel=0.02)


def test_scale_plays_no_part():
    a, b = pair(0.7, 16)
    for scale in (1e-300, 1e-30, 1e30, 1e300):
        assert angle(scale * a, b) == pytest.approx(0.7, rel=1e-12)
    assert angle(a.astype(np.float16) * np.float16(100), b) == pytest.approx(0.7, rel=1e-2)


def test_vectors_without_an_angle():
    one = np.ones(3)
    for other in (np.zeros(3), np.array([1, np.nan, 1]), np.array([np.inf, 1, 1])):
        assert np.isnan(angle(one, other)) and np.isnan(angle(other, one))
    assert angle(one, one) == 0 and angle(one, -one) == pytest.approx(np.pi)
