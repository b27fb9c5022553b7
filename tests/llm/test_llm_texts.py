"""Texts out of files, and out of a stream that breaks."""

import json

import pandas as pd
import pytest

from toydepth.errors import InputError, RunError
from toydepth.llm.texts import read_documents, stream_fineweb


def test_files_of_three_kinds(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo é\n", encoding="utf-8")
    lines = [json.dumps({"text": text, "id": 1}) for text in ("three", "")]
    (tmp_path / "b.jsonl").write_text("\n".join([lines[0], "", lines[1]]))
    pd.DataFrame({"id": range(600), "text": [f"row {row}" for row in range(600)]}).to_parquet(tmp_path / "c.parquet")
    found = list(read_documents([tmp_path / name for name in ("a.txt", "b.jsonl", "c.parquet")]))
    assert found == ["one\n\ntwo é\n", "three", "", *(f"row {row}" for row in range(600))]
    assert list(read_documents(str(tmp_path / "a.txt"))) == ["one\n\ntwo é\n"]


def test_another_field(tmp_path):
    (tmp_path / "b.jsonl").write_text('{"content": "x"}')
    assert list(read_documents(tmp_path / "b.jsonl", field="content")) == ["x"]
    with pytest.raises(InputError, match=r"line 1, must have a field text, got content"):
        list(read_documents(tmp_path / "b.jsonl"))
    pd.DataFrame({"content": ["x"]}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(InputError, match="must have a column text, got content"):
        list(read_documents(tmp_path / "c.parquet"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"\xff\xfe", "must be UTF-8, got other bytes at 0"),
        ("a.jsonl", b'{"text": "x"}\n{"text": ', "line 2, must be JSON"),
        ("a.jsonl", b'{"text": null}', "line 1, must hold text in text, got NoneType"),
        ("a.jsonl", b'["x"]', "line 1, must hold text in text, got list"),
        ("a.jsonl", b'"\xff"', "line 1, must be JSON"),
        ("a.parquet", b"none", "must be a parquet file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_documents(tmp_path / name))


def test_wrong_files_are_told_before_any_is_read(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InputError, match=r"must be a file that exists, got .*none.txt"):
        read_documents([tmp_path / "a.txt", tmp_path / "none.txt"])
    with pytest.raises(InputError, match=r"must be fineweb or .txt, .jsonl, .parquet files, got fineweb2"):
        read_documents("fineweb2")
    with pytest.raises(InputError, match="got none"):
        read_documents([])


class Stream:
    """100 documents; the connection breaks before those in `breaks`, as often as it says."""

    def __init__(self, breaks):
        self.breaks, self.waits, self.opened = dict(breaks), [], []

    def open_at(self, first):
        self.opened.append(first)
        for document in range(first, 100):
            if self.breaks.get(document, 0) > 0:
                self.breaks[document] -= 1
                raise ConnectionError("gone\nfar")
            yield {"text": str(document)}

    def read(self, tries):
        return stream_fineweb(open_at=self.open_at, tries=tries, sleep=self.waits.append)


def test_a_stream_that_breaks_goes_on_where_it_was():
    stream = Stream({0: 2, 30: 1, 31: 3})
    assert list(stream.read(tries=4)) == [str(document) for document in range(100)]
    assert stream.opened == [0, 0, 0, 30, 31, 31, 31]
    assert stream.waits == [2, 4, 2, 2, 4, 8]


def test_a_stream_that_stays_broken():
    reader = Stream({30: 9}).read(tries=3)
    assert [next(reader) for _ in range(30)] == [str(document) for document in range(30)]
    with pytest.raises(RunError, match=r"broke off after 30 documents, 3 tries: ConnectionError: gone. Try later"):
        next(reader)
    with pytest.raises(InputError, match=r"must be within reach, got ConnectionError: gone. Give local files"):
        next(Stream({0: 9}).read(tries=3))


def test_fineweb_without_its_library(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="datasets must be installed to read fineweb, got none"):
        read_documents("fineweb")
