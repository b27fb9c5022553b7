"""The fast way gives the numbers of the exact one; where it cannot, the exact one is taken."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra llm is not installed")

from toydepth.hidden import QUANTITIES, measure_states  # noqa: E402
from toydepth.llm import trajectory  # noqa: E402
from toydepth.llm.trajectory import measure_stream, select  # noqa: E402


def stream(depth=6, tokens=300, width=96, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(depth + 1, tokens, width, generator=generator)
    steps[0] *= 5
    return list(steps.cumsum(dim=0).to(dtype))


def exact(states):
    return measure_states(np.stack([state.double().numpy() for state in states]))


def agree(found, expected, tolerance=2e-6):
    for name in QUANTITIES:
        one, other = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=name)
    for name in ("num_zero", "num_not_finite"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.fixture
def no_exact(monkeypatch):
    monkeypatch.setattr(trajectory, "measure_states", lambda *_: pytest.fail("the exact way was taken"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("depth", [1, 2, 6])
def test_the_same_numbers(dtype, depth, no_exact):
    states = stream(depth=depth, dtype=dtype)
    agree(measure_stream(states), exact(states), 1e-12 if dtype == torch.float64 else 2e-6)


def test_tokens_are_cut_into_pieces_that_fit(no_exact, monkeypatch):
    states = stream()
    whole = measure_stream(states)
    monkeypatch.setitem(trajectory._BYTES_AT_ONCE, "cpu", 4 * 96 * 7)
    agree(measure_stream(states), whole)


@pytest.mark.parametrize("theta", [1e-3, 0.05, 1.0, np.pi / 2, 2.8, np.pi - 1e-3])
def test_known_angles_to_a_thousandth(theta, no_exact):
    generator = np.random.default_rng(0)
    a, b = np.linalg.qr(generator.normal(size=(50, 768, 2)))[0].transpose(2, 0, 1)
    turned = np.cos(theta) * a + np.sin(theta) * b
    states = [torch.as_tensor(3 * a, dtype=torch.float32), torch.as_tensor(200 * turned, dtype=torch.float32)]
    np.testing.assert_allclose(measure_stream(states).theta_states, theta, rtol=1e-3)


@pytest.mark.parametrize("theta", [0.05, 0.3, 1.5])
def test_known_angles_of_bfloat16_to_two_per_cent(theta, no_exact):
    generator = np.random.default_rng(0)
    a, b = np.linalg.qr(generator.normal(size=(50, 768, 2)))[0].transpose(2, 0, 1)
    turned = np.cos(theta) * a + np.sin(theta) * b
    states = [torch.as_tensor(each, dtype=torch.bfloat16) for each in (3 * a, 200 * turned)]
    np.testing.assert_allclose(measure_stream(states).theta_states, theta, rtol=0.02)


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf"), 1e-20, 1e25])
def test_states_that_float32_cannot_hold(value):
    states = stream()
    states[2][17] = value
    states[5][40:42] = value
    agree(measure_stream(states), exact(states))


def test_an_update_of_nothing():
    states = stream()
    states[3][5] = states[2][5]
    found = measure_stream(states)
    agree(found, exact(states))
    assert np.isnan(found.theta_updates[1:3, 5]).all() and found.update_norm[2, 5] == 0


def test_a_stream_that_ends_where_it_began():
    states = stream()
    states[-1][9] = states[0][9]
    agree(measure_stream(states), exact(states))


def test_some_tokens_of_many():
    states = stream()
    states[2][17], states[3][18] = 0.0, float("nan")
    chosen = np.zeros(300, bool)
    chosen[10:18] = True
    agree(select(exact(states), chosen), exact([state[10:18] for state in states]))
