"""A run's own folder: who may write into it."""

from __future__ import annotations

import os
from pathlib import Path

from toydepth.errors import InputError
from toydepth.runs.curves import CURVES_FILE
from toydepth.runs.record import RECORD_FILE, RunRecord, read_record


def claim_folder(folder: str | Path, config_hash: str) -> RunRecord | None:
    """Makes sure that `folder` exists and holds nothing of another run.

    A folder that holds other files (Hydra writes its own before the run starts) is fine; results without a readable
    record are not, as nobody could say what made them.

    Args:
        folder: the run's folder; made where it does not exist.
        config_hash: hash of the resolved config of the run to come.

    Returns:
        RunRecord | None: the record of an earlier start of the same config, or None for a new run.

    Raises:
        InputError: where the folder holds a record of another config, one that cannot be read, or results without any.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     claim_folder(folder, "a1b2") is None
        ...     _ = RunRecord("demo", {}, "a1b2").write(folder)
        ...     claim_folder(folder, "a1b2").status
        True
        'running'
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refuse(path, f"be a folder that can be made, got: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise _refuse(path, "be a folder that can be written to, got one that cannot")
    if (path / RECORD_FILE).exists():
        record = read_record(path)
        if record.config_hash != config_hash:
            hashes = f"hash {record.config_hash}, this one {config_hash}"
            got = f"a record of another config ({hashes})"
            raise _refuse(path, f"be empty or hold a run of this config, got {got}")
        return record
    for name in (CURVES_FILE, "checkpoints"):
        found = path / name
        # An empty checkpoints folder is what a start that was cut short leaves; it holds no result.
        if found.is_file() or (found.is_dir() and any(found.iterdir())):
            raise _refuse(path, f"be empty or hold a run of this config, got {name} without a {RECORD_FILE}")
    return None


def _refuse(path: Path, condition: str) -> InputError:
    return InputError(f"{path} must {condition}. Choose another hydra.run.dir, or move the folder away.")
