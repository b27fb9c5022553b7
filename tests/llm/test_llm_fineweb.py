"""FineWeb through the library `datasets`, its stream read from a local file that breaks once."""

import json
from types import SimpleNamespace

import pytest

datasets = pytest.importorskip("datasets", reason="the extra llm is not installed")

from toydepth.errors import InputError  # noqa: E402
from toydepth.llm.texts import read_documents, stream_fineweb  # noqa: E402


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Stands for the hub: 90 documents in 3 files. hub.breaks holds numbers of documents, each to fail once."""
    files = []
    for first in (0, 30, 60):
        rows = [{"text": f"document {number}", "id": number} for number in range(first, first + 30)]
        files.append(tmp_path / f"{first}.jsonl")
        files[-1].write_text("\n".join(map(json.dumps, rows)))
    load = datasets.load_dataset

    found = SimpleNamespace(breaks=[], asked=[], read=[])

    def fail(row):
        found.read.append(row["id"])
        if row["id"] in found.breaks:
            found.breaks.remove(row["id"])
            raise ConnectionError("gone")
        return row

    def load_dataset(path, name, split, streaming):
        found.asked.append((path, name, split, streaming))
        local = load("json", data_files=[str(file) for file in files], split=split, streaming=streaming)
        return local.map(fail)

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    return found


def test_a_broken_stream_goes_on_at_the_same_document(hub):
    hub.breaks = [37, 61]
    waits = []
    found = list(stream_fineweb("sample-10BT", sleep=waits.append))
    assert found == [f"document {number}" for number in range(90)]
    assert hub.asked == [("HuggingFaceFW/fineweb", "sample-10BT", "train", True)] * 3
    assert (hub.breaks, waits) == ([], [2, 2])


def test_only_what_is_asked_for_is_read(hub):
    reader = read_documents("fineweb")
    assert [next(reader) for _ in range(3)] == ["document 0", "document 1", "document 2"]
    assert max(hub.read) < 10


def test_a_hub_that_does_not_answer(monkeypatch):
    def load_dataset(*_, **__):
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    with pytest.raises(InputError, match=r"must be within reach, got ConnectionError: no route to the hub. Give local"):
        list(stream_fineweb(sleep=lambda _: None))
