"""Documents into rows: none lost, none twice, on either side."""

import numpy as np
import pytest

from toydepth.llm.batches import token_batches


def spell(text, **_):
    return {"input_ids": [ord(letter) for letter in text]}


TEXTS = ["abc", "", "defgh", "i", "", "jk", "lmnopq", ""]


def rows(batches):
    return ["".join(map(chr, ids[mask])) for each in batches for ids, mask in zip(each.ids, each.mask, strict=True)]


@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 9])
def test_every_document_once(padding, batch_size):
    batches = list(token_batches(TEXTS, spell, batch_size=batch_size, max_length=4, padding=padding))
    assert rows(batches) == ["abc", "defg", "i", "jk", "lmno"]
    assert batches[-1].documents == 8
    assert (sum(each.empty for each in batches), sum(each.shortened for each in batches)) == (3, 2)
    for each in batches:
        assert len(each.ids) <= batch_size
        for positions, mask in zip(each.positions, each.mask, strict=True):
            np.testing.assert_array_equal(positions[mask], np.arange(mask.sum()))
            assert (positions[~mask] == -1).all()
        column = 0 if padding == "right" else -1
        assert not len(each.ids) or each.mask[:, column].all()


@pytest.mark.parametrize("stop", [1, 2])
def test_go_on_after_a_batch(stop):
    whole = list(token_batches(TEXTS, spell, batch_size=2))
    rest = token_batches(TEXTS, spell, batch_size=2, done=whole[stop - 1].documents)
    assert rows(whole[:stop]) + rows(rest) == rows(whole)


def test_documents_are_read_one_batch_ahead_at_most():
    read = []
    source = (read.append(text) or text for text in ["ab"] * 100)
    next(token_batches(source, spell, batch_size=4))
    assert len(read) == 4


def test_a_tokenizer_that_keeps_the_end_is_not_asked_to_cut():
    def keeps_the_end(text, truncation=False, max_length=None, **_):
        return {"input_ids": spell(text)["input_ids"][-max_length if truncation else 0 :]}

    assert rows(token_batches(["abcdef"], keeps_the_end, max_length=2)) == ["ab"]
