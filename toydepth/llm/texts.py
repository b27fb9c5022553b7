"""Documents out of files, or out of FineWeb as a stream."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from toydepth.errors import InputError, RunError

_FINEWEB = "HuggingFaceFW/fineweb"
_SUFFIXES = (".txt", ".jsonl", ".parquet")
_FILES_INSTEAD = "Give local files instead: txt, jsonl or parquet."


def read_documents(source: str | Path | Iterable[str | Path], field: str = "text") -> Iterator[str]:
    """Yields documents in the order of the files; one at a time is held.

    Args:
        source: `fineweb`, or one file or several. A .txt file is one document; a .jsonl has one a line, a .parquet one
            a row.
        field: the field of a line, or the column, that holds the text.

    Raises:
        InputError: at once, for no file, a missing one or one of another kind; on reading, for a line or row without
            text, naming it.
    """
    if source == "fineweb":
        return stream_fineweb()
    given = [source] if isinstance(source, str | Path) else list(source)
    files = [Path(each).expanduser() for each in given]
    if not files:
        raise InputError("text must be fineweb or files, got none. Give txt, jsonl or parquet files.")
    for path in files:
        if path.suffix not in _SUFFIXES:
            raise InputError(f"text must be fineweb or {', '.join(_SUFFIXES)} files, got {path}. Convert it to jsonl.")
        if not path.is_file():
            raise InputError(f"text must be a file that exists, got {path}. Check the path.")
    readers = {".txt": _read_txt, ".jsonl": _read_jsonl, ".parquet": _read_parquet}
    return (text for path in files for text in readers[path.suffix](path, field))


def _read_txt(path: Path, _field: str) -> Iterator[str]:
    try:
        yield path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be UTF-8, got other bytes at {error.start}. Convert it.") from error


def _read_jsonl(path: Path, field: str) -> Iterator[str]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InputError(f"{path}, line {number}, must be JSON, got {error}. Mend the line.") from error
            yield _text_of(row, field, f"{path}, line {number},")


def _read_parquet(path: Path, field: str) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} must be a parquet file, got {str(error).splitlines()[0]} Check the file.") from error
    with table:
        names = table.schema_arrow.names
        if field not in names:
            raise InputError(
                f"{path} must have a column {field}, got {', '.join(names)}. Name the one that holds text."
            )
        number = 0
        for batch in table.iter_batches(batch_size=256, columns=[field]):
            for value in batch.column(0).to_pylist():
                number += 1
                yield _text_of({field: value}, field, f"{path}, row {number},")


def is_unicode(text: str) -> bool:
    """Returns whether a text can be written: JSON may hold halves of surrogate pairs, that no tokenizer takes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _text_of(row: Any, field: str, where: str) -> str:
    text = row.get(field) if isinstance(row, dict) else None
    if isinstance(text, str):
        if not is_unicode(text):
            raise InputError(f"{where} must hold Unicode text, got half of a surrogate pair. Mend or leave it out.")
        return text
    if isinstance(row, dict) and field not in row:
        raise InputError(
            f"{where} must have a field {field}, got {', '.join(row) or 'none'}. Name the one with the text."
        )
    got = type(row if not isinstance(row, dict) else text).__name__
    raise InputError(f"{where} must hold text in {field}, got {got}. Leave the line out, or name another field.")


def stream_fineweb(
    subset: str = "sample-10BT",
    *,
    open_at: Callable[[int], Iterable[dict[str, Any]]] | None = None,
    tries: int = 5,
    wait: float = 2.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """Yields documents of FineWeb in its order; a broken connection is opened again at the document it broke at.

    Args:
        subset: of the dataset.
        open_at: opens the stream at a document; the hub's, where None.
        tries: how often in a row it may fail before it is given up.
        wait: seconds before the second try; doubled each time.
        sleep: waits so many seconds.

    Raises:
        InputError: where the library `datasets` is not installed, or the first document cannot be had.
        RunError: where the stream breaks later and stays broken.

    Source: Penedo et al., FineWeb, arXiv 2406.17557.
    """
    if open_at is None:
        if importlib.util.find_spec("datasets") is None:
            raise InputError(f"datasets must be installed to read fineweb, got none. Install it, or: {_FILES_INSTEAD}")
        open_at = _open_fineweb(subset)
    return _retried(open_at, tries, wait, sleep)


def _open_fineweb(subset: str) -> Callable[[int], Iterable[dict[str, Any]]]:
    def open_at(first: int) -> Iterable[dict[str, Any]]:
        import datasets  # pyright: ignore[reportMissingImports]

        return datasets.load_dataset(_FINEWEB, name=subset, split="train", streaming=True).skip(first)

    return open_at


def _retried(
    open_at: Callable[[int], Iterable[dict[str, Any]]], tries: int, wait: float, sleep: Callable[[float], None]
) -> Iterator[str]:
    done = failed = 0
    while True:
        try:
            for row in open_at(done):
                text = _text_of(row, "text", f"fineweb, document {done},")
                done, failed = done + 1, 0
                yield text
            return
        except InputError:
            raise
        except Exception as error:  # the hub, the network and the decoder each have errors of their own
            failed += 1
            if failed < tries:
                sleep(wait * 2 ** (failed - 1))
                continue
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            if done == 0:
                raise InputError(f"fineweb must be within reach, got {reason}. {_FILES_INSTEAD}") from error
            raise RunError(f"fineweb broke off after {done} documents, {tries} tries: {reason}. Try later.") from error
