"""Every device has its run of the arms, and the teachers that these need."""

import jax
import numpy as np
import pytest

from toydepth.bank.share import Share


@pytest.mark.parametrize(
    ("replicates", "temperatures", "inits", "parts", "teachers"),
    [
        (1, 1, 1, 1, 1),
        (3, 1, 2, 1, 3),
        (3, 1, 2, 2, 2),
        (3, 4, 2, 8, 2),
        (3, 4, 2, 2, 2),
        (5, 2, 2, 4, 2),
        (1, 16, 1, 2, 1),
        (9, 1, 4, 12, 2),
        (7, 3, 2, 3, 3),
        (5, 6, 1, 2, 3),
    ],
)
def test_the_shares_of_all_devices_are_all_arms_in_order(monkeypatch, replicates, temperatures, inits, parts, teachers):
    share = Share(replicates, temperatures, inits, parts, batches=1)
    assert share.arms * parts == replicates * temperatures * inits and share.teachers == teachers
    found = []
    for part in range(parts):
        monkeypatch.setattr(jax.lax, "axis_index", lambda name, part=part: part)
        teacher = share.of_teachers({"name": np.arange(replicates)})["name"]
        assert teacher.shape == (share.teachers,)
        of_teacher = share.of_arms(jax.numpy.asarray(teacher)[:, None])
        temperature = share.of_arms(jax.numpy.arange(temperatures)[None])
        both = share.of_arms(jax.numpy.asarray(teacher)[:, None, None] * 100 + jax.numpy.arange(temperatures)[:, None])
        np.testing.assert_array_equal(both[:, 0], of_teacher * 100 + temperature)
        found += [(int(a), int(b)) for a, b in zip(of_teacher, temperature, strict=True)]
    assert found == [(a, b) for a in range(replicates) for b in range(temperatures) for _ in range(inits)]
