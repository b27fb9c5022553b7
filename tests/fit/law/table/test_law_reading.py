"""How a file becomes a table, and a cell of it a number."""

import gzip
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from toydepth.errors import InputError
from toydepth.fit.law.table.reading import as_table, read_table


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def message(call) -> str:
    """The one line of an InputError."""
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.csv", bytes),
        ("a.CSV", bytes),
        ("a.csv.gz", gzip.compress),
        ("v1.2.csv", bytes),
        ("bom.csv", b"\xef\xbb\xbf".__add__),
    ],
)
def test_csv_gives_numbers_and_counts_data_rows_from_1(tmp_path: Path, name: str, pack):
    path = write(tmp_path / name, pack(b"\nd_model, loss ,run\n512,3.25,a\n\n1024, 3e0,b\n"))
    table = read_table(path)
    assert list(table.columns) == ["d_model", "loss", "run"]
    assert table["d_model"].tolist() == [512, 1024]
    assert table["loss"].tolist() == [3.25, 3.0]
    assert table["run"].tolist() == ["a", "b"]
    assert table.index.tolist() == [1, 2]


def test_every_format_gives_the_same_numbers(tmp_path: Path):
    rows = [{"m": 64, "loss": 0.1, "run": "a"}, {"m": 128, "loss": 1 / 3, "run": "b"}]
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.jsonl", "t.ndjson"):
        write(tmp_path / name, "\n".join(map(json.dumps, rows)))
    for name in ("t.csv", "t.tsv", "t.parquet", "t.jsonl", "t.ndjson"):
        table = read_table(str(tmp_path / name))
        assert table.to_dict("records") == rows, name
        assert table.index.tolist() == [1, 2], name


def test_text_stays_where_it_is_no_number(tmp_path: Path):
    path = write(tmp_path / "t.csv", 'm,loss,group\n"12,288",NA,NA\n64,nan,None\nabc,3,x\n')
    table = read_table(path)
    assert table["m"].tolist() == ["12,288", "64", "abc"]
    assert table["group"].tolist() == ["NA", "None", "x"]
    assert np.isnan(table["loss"].tolist()[:2]).all()
    assert table["loss"].tolist()[2] == 3


def test_thousands_are_taken_out_of_well_formed_numbers_only(tmp_path: Path):
    text = 'm,tokens,tag\n"12,288","1,234,567.5","1,2"\n64,"-1,000e3","12,34"\n'
    table = read_table(write(tmp_path / "t.csv", text), thousands=",")
    assert table["m"].tolist() == [12288, 64]
    assert table["tokens"].tolist() == [1234567.5, -1e6]
    assert table["tag"].tolist() == ["1,2", "12,34"]
    spaced = read_table(write(tmp_path / "t.tsv", "m\tloss\n1 024\t3\n2 048 000\t2\n"), thousands=" ")
    assert spaced["m"].tolist() == [1024, 2048000]
    lines = read_table(write(tmp_path / "t.jsonl", '{"m": "12,288"}\n{"m": 64}\n'), thousands=",")
    assert lines["m"].tolist() == [12288, 64]


@pytest.mark.parametrize("thousands", [".", ",,", "", "1", "e", "-", 3])
def test_thousands_is_one_character_that_no_number_has(tmp_path: Path, thousands):
    path = write(tmp_path / "t.csv", "m\n1\n")
    assert message(lambda: read_table(path, thousands=thousands)).startswith("thousands must be one character")


def test_jsonl_takes_no_column_for_a_date_and_keeps_bools(tmp_path: Path):
    lines = '{"date": 3, "updated_at": "2020-01-01", "ok": true}\n\n{"date": 4, "ok": 1, "new": NaN}\n'
    table = read_table(write(tmp_path / "t.jsonl", lines))
    assert table["date"].tolist() == [3, 4]
    assert table["updated_at"].tolist()[0] == "2020-01-01"
    assert table["ok"].tolist() == [True, 1]
    assert table["ok"].tolist()[0] is True
    assert table.index.tolist() == [1, 2]


def test_parquet_keeps_a_named_index_and_makes_no_columns_of_folders(tmp_path: Path):
    folder = tmp_path / "width=5"
    folder.mkdir()
    frame = pd.DataFrame({"m": [64, 128], "loss": [3.0, 2.0], "cost": [Decimal("1.5"), None]}).set_index("m")
    frame.to_parquet(folder / "t.parquet")
    table = read_table(folder / "t.parquet")
    assert list(table.columns) == ["m", "loss", "cost"]
    assert table["m"].tolist() == [64, 128]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("e.csv", "", "got an empty file"),
        ("e.csv", "\n  \n", "got an empty file"),
        ("e.jsonl", "", "got an empty file"),
        ("e.parquet", "", "got an empty file"),
        ("e.csv", "m,loss\n", "got 2 columns and no rows"),
        ("e.jsonl", "{}\n", "no rows"),
        ("t.xlsx", "x", "got .xlsx"),
        ("t.json", "{}", ".csv, .tsv, .jsonl, .ndjson"),
        ("table", "m\n1\n", "got no suffix"),
        ("t.parquet.gz", "x", "got .gz"),
        ("t.csv", "m,m\n1,2\n", "'m' 2 times"),
        ("t.csv", "m, m\n1,2\n", "'m' 2 times"),
        ("t.jsonl", '{"m": 1, "m": 2}\n', "'m' stands twice"),
        ("t.csv", "m,loss\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        ("t.csv", "m,loss\n1,2,3\n1,2,3\n", "2 in the header and 3 in the first row"),
        ("t.csv", "m,loss\n0,2,3\n", "2 in the header and 3 in the first row"),
        ("t.csv", 'm,loss\n1,"2\n', "EOF inside string"),
        ("t.csv", "m;loss\n1;2\n", "must be separated by commas, got a header with ';'"),
        ("t.tsv", "m,loss\n1,2\n", "must be separated by tabs"),
        ("t.csv", b"m,loss\n1,2\n1,\xe9\n", "must be text in UTF-8, got the byte 0xe9 in line 3"),
        ("t.jsonl", "m,loss\n".encode("utf-16"), "must be text in UTF-8"),
        ("t.jsonl", '{"m": 1}\n\n{"m": 1\n', "line 3: Expecting ',' delimiter in column 8"),
        ("t.jsonl", "[1, 2]\n", "got list in line 1"),
        ("t.jsonl", '{"m": ' + "9" * 5000 + "}\n", "line 1"),
        ("t.jsonl", '{"m": ' + "[" * 100000 + "\n", "line 1"),
        ("t.parquet", "m,loss\n1,2\n", "must be a table that can be read"),
        ("t.csv.gz", "m,loss\n1,2\n", "give it without .gz"),
        ("t.csv.gz", gzip.compress(b"m,loss\n1,2\n", mtime=0)[:-9], "give it without .gz"),
        ("t.csv.xz", "x", "give it without .xz"),
        ("t.csv.bz2", "x", "give it without .bz2"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, name: str, content, says: str):
    path = write(tmp_path / name, content)
    text = message(lambda: read_table(path))
    assert text.startswith(str(path))
    assert says in text


def test_damaged_parquet(tmp_path: Path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"m": [1, 2]}).to_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert "must be a table that can be read" in message(lambda: read_table(path))
    path.write_bytes(whole[:8] + b"z" * 32 + whole[40:])
    assert "must be a table that can be read" in message(lambda: read_table(path))
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table([[1], [2]], names=["m", "m"]), path)
    assert "distinct column names, got 'm' 2 times" in message(lambda: read_table(path))


def test_missing_files_and_folders(tmp_path: Path):
    write(tmp_path / "runs.csv", "m\n1\n")
    assert "Did you mean 'runs.csv'?" in message(lambda: read_table(tmp_path / "run.csv"))
    assert "got none" in message(lambda: read_table(tmp_path / "no" / "run.csv"))
    (tmp_path / "folder.csv").mkdir()
    for folder in (tmp_path, tmp_path / "folder.csv"):
        assert "must be a file, got a folder" in message(lambda folder=folder: read_table(folder))
    assert message(lambda: read_table(3)).startswith("path must be the path of a table, got int")  # pyright: ignore


def test_the_index_is_kept_where_it_numbers_the_rows():
    frame = pd.DataFrame({"m": [1, 2, 3]}, index=[1, 2, 3])
    assert as_table(frame[frame["m"] != 2]).index.tolist() == [1, 3]
    assert as_table(frame.set_axis(["a", "b", "c"])).index.tolist() == [1, 2, 3]
    assert as_table(frame.set_axis([5, 5, 6])).index.tolist() == [1, 2, 3]
    assert frame.index.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (3, "table must be a pandas DataFrame, got int"),
        (None, "table must be a pandas DataFrame, got NoneType"),
        ([{"m": 1}], "table must be a pandas DataFrame, got list"),
        ({}, "table must be one with rows"),
        ({"m": 1}, "table must be a dict of columns"),
        ({"m": [1], "loss": [1, 2]}, "table must be a dict of columns of one length"),
        (pd.DataFrame({"m": []}), "table must be one with rows"),
        (pd.DataFrame([[1, 2]]), "column names must be text, got 0 (int)"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("m", "a")])), "column names must be of one level"),
        (pd.DataFrame({"m": [1], "a": [2], "b": [3]}).set_index(["a", "b"]), "Call table.reset_index()"),
    ],
)
def test_what_is_no_table_is_refused(table, says: str):
    assert says in message(lambda: as_table(table))
