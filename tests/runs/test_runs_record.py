"""The record: roundtrip, refusals, and writing that cannot leave a half."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from toydepth.errors import InputError
from toydepth.runs import SCHEMA_VERSION, RunRecord, find_versions, read_record, utc_now

GOOD = {"schema_version": 1, "experiment": "demo", "config": {}, "config_hash": "a1b2", "status": "complete"}


def test_roundtrip(tmp_path):
    record = RunRecord(
        "demo",
        {"student": {"depths": [3, 6]}, "rho": None},
        "a1b2",
        overrides=["seed=1"],
        versions=find_versions(),
        git={"commit": "f00", "dirty": True},
        device={"platform": "cpu", "count": 2},
        precision="highest",
        seeds={"teacher": 0},
        started=utc_now(),
        wall_seconds=1.5,
        steps_done=10,
        steps_per_second=6.5,
        status="diverged",
        diverged=[{"arm": 1, "last_finite_step": 5, "first_non_finite_step": 6}],
        noise_floor=[{"loss": "mse", "temperature": None, "floor": 1e-12}],
        segments=[{"started": utc_now(), "from_step": 0, "to_step": 10, "seconds": 1.5, "device_count": 2}],
        warnings=["slow disk"],
    )
    path = record.write(tmp_path)
    assert path == tmp_path / "record.json"
    assert read_record(tmp_path) == record
    assert next(iter(json.loads(path.read_text()))) == "schema_version"


def test_there_is_no_nan_in_the_file_and_numpy_becomes_plain(tmp_path):
    floor = [{"loss": "kl", "temperature": np.float32("nan"), "floor": np.float32(0.5), "depths": np.array([3, 6])}]
    RunRecord("demo", {"a": (1, float("inf")), "b": Path("x")}, "a1b2", noise_floor=floor).write(tmp_path)
    found = json.loads((tmp_path / "record.json").read_text(), parse_constant=pytest.fail)
    assert found["noise_floor"] == [{"loss": "kl", "temperature": None, "floor": 0.5, "depths": [3, 6]}]
    assert found["config"] == {"a": [1, None], "b": "x"}


def test_a_failed_write_leaves_the_old_record(tmp_path, monkeypatch):
    RunRecord("demo", {}, "a1b2").write(tmp_path)
    with pytest.raises(TypeError, match=r"^record\.config\.net must be a number, string, list, dict or None to be wr"):
        RunRecord("demo", {"net": object()}, "a1b2").write(tmp_path)

    def fail(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        RunRecord("demo", {}, "c3d4").write(tmp_path)
    assert read_record(tmp_path).config_hash == "a1b2"
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_an_unknown_status_is_refused(tmp_path):
    message = "status must be one of running, complete, diverged, interrupted, got 'completed'. Use one of them. Did y"
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        RunRecord("demo", {}, "a1b2", status="completed").write(tmp_path)


BAD_FILES = [
    ("{", r"got something else \(Expecting"),
    ("\xff", r"got something else \("),
    ("[1]", r"got a list\."),
    ("{}", r"got schema_version None\."),
    (json.dumps({**GOOD, "schema_version": "1"}), r"got schema_version '1'\."),
    (json.dumps({**GOOD, "config_hash": None}), r"got config_hash None\."),
    (json.dumps({key: GOOD[key] for key in GOOD if key != "config"}), r"got no config\."),
    (json.dumps({**GOOD, "status": "done"}), r"got status 'done'\."),
    ("[" * 100_000, r"got something nested too deeply to be read\."),
    (json.dumps({**GOOD, "schema_version": True}), r"got schema_version True\."),
]
# A value of the wrong type for every field of RunRecord.
WRONG = {
    **{"experiment": 3, "config": [], "config_hash": 1, "overrides": [1], "versions": {"jax": 1}, "git": "f00"},
    **{"device": None, "precision": None, "seeds": [0], "started": 0, "wall_seconds": "x", "steps_done": 1.5},
    **{"steps_per_second": True, "status": ["complete"], "diverged": {}, "noise_floor": [1], "segments": 3},
    **{"gradients": [20], "warnings": None, "schema_version": "1"},
}
BAD_FILES += [(json.dumps({**GOOD, k: v}), re.escape(f"got {k} {v!r}.")) for k, v in WRONG.items()]
BAD_FILES += [
    (json.dumps({**GOOD, "warnings": "slow"}), r"got warnings 'slow'\."),
    (json.dumps({**GOOD, "wall_seconds": float("nan")}), r"got wall_seconds nan\."),
    (json.dumps({**GOOD, "wall_seconds": 10**400}), r"got wall_seconds 1000\d*\.\.\."),
]


def test_every_field_has_a_wrong_type_here():
    assert set(WRONG) == {item.name for item in dataclasses.fields(RunRecord)}


@pytest.mark.parametrize(("text", "got"), BAD_FILES)
def test_a_corrupt_record_is_named(tmp_path, text, got):
    path = tmp_path / "record.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=f"^{re.escape(str(path))} must be the record of a run, {got}") as error:
        read_record(tmp_path)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith("Restore the file, or move the folder away.")


def test_a_missing_record_is_named(tmp_path):
    with pytest.raises(InputError, match=r"record\.json must be the record of a run, got no such file\. Give a run's"):
        read_record(tmp_path)


def test_a_newer_schema_is_refused_and_unknown_fields_of_this_one_are_ignored(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**GOOD, "schema_version": SCHEMA_VERSION + 1}))
    with pytest.raises(InputError, match=r"record\.json must be of schema version 1 or older, got 2\. Update toydepth"):
        read_record(tmp_path)
    path.write_text(json.dumps({**GOOD, "mood": "fine"}))
    assert read_record(tmp_path) == RunRecord("demo", {}, "a1b2", status="complete")
