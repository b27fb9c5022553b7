"""Tokens in parquet parts: all of them, once, in order, and none twice after a stop."""

import numpy as np
import pandas as pd
import pytest

from toydepth.errors import InputError
from toydepth.hidden import QUANTITIES, measure_states
from toydepth.hidden.tokens import TokenParts


def stream(tokens, depth=3, seed=0):
    return measure_states(np.random.default_rng(seed).normal(size=(depth + 1, tokens, 6)))


def add(parts, found, document):
    tokens = found.norm.shape[1]
    parts.add(found, document=np.full(tokens, document), position=np.arange(tokens), token=np.arange(tokens) + 7)


def test_every_token_of_every_part(tmp_path):
    parts, batches = TokenParts(tmp_path, part_bytes=3000), [stream(n, seed=n) for n in (5, 30, 1, 12)]
    for number, found in enumerate(batches):
        add(parts, found, number)
    assert parts.flush() == parts.flush() == len(list(tmp_path.glob("*.parquet"))) > 1
    table = pd.read_parquet(tmp_path)
    assert table["document"].tolist() == np.repeat([0, 1, 2, 3], [5, 30, 1, 12]).tolist()
    assert table["position"][:5].tolist() == [0, 1, 2, 3, 4] and table["token"][4] == 11
    for name in QUANTITIES:
        expected = np.concatenate([getattr(found, name) for found in batches], axis=1).T
        np.testing.assert_allclose(np.stack(table[name]), expected, rtol=1e-6)


def test_parts_of_a_pass_that_was_cut_off_are_removed(tmp_path):
    first = TokenParts(tmp_path, part_bytes=1)
    for number in range(3):
        add(first, stream(4, seed=number), number)
    again = TokenParts(tmp_path, num_parts=1)  # as the state that was saved after the first one says
    add(again, stream(4, seed=9), 1)
    assert again.flush() == 2
    assert pd.read_parquet(tmp_path)["document"].unique().tolist() == [0, 1]


@pytest.mark.parametrize("depth", [1, 2])
def test_shallow_networks(tmp_path, depth):
    parts = TokenParts(tmp_path)
    add(parts, stream(4, depth), 0)
    parts.flush()
    table = pd.read_parquet(tmp_path)
    assert len(table) == 4 and ("theta_updates" in table) == (depth > 1)


def test_no_token_no_file(tmp_path):
    assert TokenParts(tmp_path / "tokens").flush() == 0 and not (tmp_path / "tokens").exists()


def test_nothing_is_removed_before_something_is_written(tmp_path):
    first = TokenParts(tmp_path, part_bytes=1)
    add(first, stream(4), 0)
    again = TokenParts(tmp_path)  # begun anew, and stopped before any token
    assert again.flush() == 0 and len(list(tmp_path.glob("*.parquet"))) == 1


def test_a_part_that_is_gone_is_named(tmp_path):
    with pytest.raises(InputError, match=r"part-00001.parquet must be there"):
        add(TokenParts(tmp_path, part_bytes=1), stream(4), 0)
        TokenParts(tmp_path, num_parts=2)
