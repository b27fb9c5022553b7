"""The record of a run: what ran, on what, how long and how it ended; one JSON file in the run's folder."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toydepth.errors import InputError, did_you_mean
from toydepth.runs.files import write_json

SCHEMA_VERSION = 1  # raise it when a field changes its meaning; readers refuse what is newer than themselves
RECORD_FILE = "record.json"
STATUSES = ("running", "complete", "diverged", "interrupted")


@dataclass
class RunRecord:
    """Everything about a run that is not a curve. Filled as the run goes, written at its start and after each part.

    experiment: its name. config: resolved, a plain dict; config_hash: its hash; overrides: as given at the command
    line. versions, git, device, precision: what it ran on (`find_versions`, `find_git`). seeds: by stream. started:
    ISO 8601, UTC. wall_seconds: of all segments; steps_done; steps_per_second: of the last segment, compilation left
    out. status: running | complete | diverged | interrupted.
    diverged: {arm, last_finite_step, first_non_finite_step} for each arm that diverged.
    noise_floor: {loss, temperature, replicate (where they differ), floor} for each kind of loss.
    segments: {started, from_step, to_step, seconds, device_count}, one for each time the run was started or resumed.
    warnings: what a reader of the results should know, a line each.

    Example:
        >>> import tempfile
        >>> record = RunRecord("demo", config={"steps": 10}, config_hash="a1b2")
        >>> record.status = "complete"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = record.write(folder)
        ...     read_record(folder) == record
        True
    """

    experiment: str
    config: dict[str, Any]
    config_hash: str
    overrides: list[str] = field(default_factory=list)
    versions: dict[str, str | None] = field(default_factory=dict)
    git: dict[str, Any] | None = None
    device: dict[str, Any] = field(default_factory=dict)
    precision: str = ""
    seeds: dict[str, Any] = field(default_factory=dict)
    started: str = ""
    wall_seconds: float = 0.0
    steps_done: int = 0
    steps_per_second: float | None = None
    status: str = "running"
    diverged: list[dict[str, Any]] = field(default_factory=list)
    noise_floor: list[dict[str, Any]] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION

    def write(self, folder: str | Path) -> Path:
        """Writes record.json into `folder`, atomically, and returns its path; NaN and infinities are null.

        Raises: InputError for an unknown status, TypeError for a value that JSON cannot hold. The old file then stands.
        """
        if self.status not in STATUSES:
            hint = did_you_mean(str(self.status), STATUSES)
            advice = f"Use one of them.{hint}"
            raise InputError(f"status must be one of {', '.join(STATUSES)}, got {self.status!r}. {advice}")
        path = Path(folder) / RECORD_FILE
        # The version first, so that a person and a later reader meet it before anything it governs.
        write_json(path, {"schema_version": self.schema_version, **dataclasses.asdict(self)})
        return path


def read_record(folder: str | Path) -> RunRecord:
    """Reads the record of the run in `folder`.

    Raises: InputError, naming the file, where it is missing, is no record, or is of a newer schema version.
    """
    path = Path(folder) / RECORD_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} must be the record of a run, got no such file. Give a run's folder.") from None
    except (OSError, ValueError) as error:
        raise _corrupt(path, f"something else ({error})") from error
    if not isinstance(found, dict):
        raise _corrupt(path, f"a {type(found).__name__}")
    version = found.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _corrupt(path, f"schema_version {version!r}")
    if version > SCHEMA_VERSION:
        condition = f"of schema version {SCHEMA_VERSION} or older, got {version}"
        raise InputError(f"{path} must be {condition}. Update toydepth to read it.")
    for name, kind in (("experiment", str), ("config", dict), ("config_hash", str), ("status", str)):
        if not isinstance(found.get(name), kind):
            raise _corrupt(path, f"{name} {found[name]!r}" if name in found else f"no {name}")
    if found["status"] not in STATUSES:
        raise _corrupt(path, f"status {found['status']!r}")
    known = {item.name for item in dataclasses.fields(RunRecord)}
    return RunRecord(**{name: value for name, value in found.items() if name in known})


def _corrupt(path: Path, got: str) -> InputError:
    return InputError(f"{path} must be the record of a run, got {got}. Restore the file, or move the folder away.")
