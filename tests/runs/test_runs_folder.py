"""Who may write into a folder: a new run, or one of the same config."""

import re

import pytest

from toydepth.errors import InputError
from toydepth.runs import claim_folder, lock_folder


def test_a_new_folder_is_made_and_claimed(tmp_path):
    folder = tmp_path / "a" / "b"
    assert claim_folder(folder, "a1b2") is None
    assert folder.is_dir()
    (folder / ".hydra").mkdir()
    (folder / "train.log").write_text("")
    (folder / "checkpoints").mkdir()  # empty: what a start that was cut short leaves
    assert claim_folder(folder, "a1b2") is None


def test_a_folder_of_the_same_config_gives_its_record(tmp_path, write_run):
    write_run(tmp_path, status="interrupted")
    record = claim_folder(tmp_path, "a1b2")
    assert record is not None and record.status == "interrupted"


def test_a_folder_of_another_config_is_refused(tmp_path, write_run):
    write_run(tmp_path)
    with pytest.raises(InputError) as error:
        claim_folder(tmp_path, "c3d4")
    assert str(error.value) == (
        f"{tmp_path} must be empty or hold a run of this config, got a record of another config (hash a1b2, this one "
        "c3d4). Choose another hydra.run.dir (hydra.sweep.dir in a sweep), or move the folder away."
    )


@pytest.mark.parametrize("name", ["curves.parquet", "checkpoints/5"])
def test_results_without_a_record_are_refused(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    message = f"{tmp_path} must be empty or hold a run of this config, got {name.split('/')[0]} without a record.json."
    with pytest.raises(InputError, match=f"^{re.escape(message)} Choose another hydra.run.dir"):
        claim_folder(tmp_path, "a1b2")


def test_a_corrupt_record_is_not_overwritten(tmp_path):
    (tmp_path / "record.json").write_text("{")
    with pytest.raises(InputError, match=r"record\.json must be the record of a run, got something else"):
        claim_folder(tmp_path, "a1b2")


def test_a_folder_that_cannot_be_made_or_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file must be a folder that can be made, got: File exists\. Choose another"):
        claim_folder(tmp_path / "file", "a1b2")
    monkeypatch.setattr("os.access", lambda path, kind: False)
    with pytest.raises(InputError, match="must be a folder that can be written to, got one that cannot"):
        claim_folder(tmp_path, "a1b2")


def test_one_process_at_a_time(tmp_path):
    with (
        lock_folder(tmp_path),
        pytest.raises(InputError, match="another process is training in"),
        lock_folder(tmp_path),
    ):
        pass
    with lock_folder(tmp_path):
        pass
    assert not list(tmp_path.iterdir())
