"""A run's own folder: who may write into it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from toydepth.errors import InputError
from toydepth.runs.curves import CURVES_FILE
from toydepth.runs.gradients import GRADIENTS_FOLDER
from toydepth.runs.record import RECORD_FILE, RunRecord, read_record

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None


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
    for name in (CURVES_FILE, "checkpoints", GRADIENTS_FOLDER):
        found = path / name
        # An empty folder is what a start that was cut short leaves; it holds no result.
        if found.is_file() or (found.is_dir() and any(found.iterdir())):
            raise _refuse(path, f"be empty or hold a run of this config, got {name} without a {RECORD_FILE}")
    return None


@contextlib.contextmanager
def lock_folder(folder: str | Path) -> Iterator[None]:
    """Keeps a second process out of a run's folder for as long as the context, or this process, lasts.

    Raises:
        InputError: where another process holds the folder.
    """
    if fcntl is None:
        yield
        return
    path = Path(folder) / ".lock"
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refuse(Path(folder), "be free, got one that another process is training in") from None
        except OSError:
            pass  # a file system without locks: nothing can be known
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _refuse(path: Path, condition: str) -> InputError:
    return InputError(
        f"{path} must {condition}. Choose another hydra.run.dir (hydra.sweep.dir in a sweep), or move the folder away."
    )
