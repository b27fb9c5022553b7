"""The record of a run: what ran, on what, how long and how it ended; one JSON file in the run's folder."""

from __future__ import annotations

import dataclasses
import json
import reprlib
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

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
    segments: {started, from_step, to_step, seconds, device_count, kernel}, one for each start of the run.
    gradients: {step, file} for each gradient snapshot written, in the order of steps.
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
    gradients: list[dict[str, Any]] = field(default_factory=list)
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

    Raises: InputError, naming the file, where it is missing, is no record (a field of the wrong type makes it none), or
        is of a newer schema version.
    """
    path = Path(folder) / RECORD_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} must be the record of a run, got no such file. Give a run's folder.") from None
    except (OSError, ValueError) as error:
        raise _corrupt(path, f"something else ({error})") from error
    except RecursionError:
        raise _corrupt(path, "something nested too deeply to be read") from None
    if not isinstance(found, dict):
        raise _corrupt(path, f"a {type(found).__name__}")
    _check_version(path, found.get("schema_version"))
    known = {name: found[name] for name in get_type_hints(RunRecord) if name in found}
    _check_fields(path, known)
    return RunRecord(**known)


def matches(value: Any, kind: Any) -> bool:
    """Says whether a value read from JSON is of the type that a field is annotated with.

    A bool is no number, and a float must be finite.

    >>> matches({"a": 1}, dict[str, int]), matches([1], list[str]), matches(None, float | None), matches(True, float)
    (True, False, True, False)
    """
    if kind is Any:
        return True
    if isinstance(kind, types.UnionType):
        return any(matches(value, one) for one in get_args(kind))
    if kind in (int, float):
        # By comparison: an integer beyond float64 cannot be converted, and NaN is not between any two.
        number = isinstance(value, int | kind) and not isinstance(value, bool)
        return number and (kind is int or -sys.float_info.max <= value <= sys.float_info.max)
    if not isinstance(value, get_origin(kind) or kind):
        return False
    inside = get_args(kind)
    if isinstance(value, dict) and inside:
        return all(matches(key, inside[0]) and matches(item, inside[1]) for key, item in value.items())
    return not inside or all(matches(item, inside[0]) for item in value)


def _check_version(path: Path, version: Any) -> None:
    if not matches(version, int) or version < 1:
        raise _corrupt(path, f"schema_version {reprlib.repr(version)}")
    if version > SCHEMA_VERSION:
        condition = f"of schema version {SCHEMA_VERSION} or older, got {version}"
        raise InputError(f"{path} must be {condition}. Update toydepth to read it.")


def _check_fields(path: Path, found: dict[str, Any]) -> None:
    for name in ("experiment", "config", "config_hash", "status"):
        if name not in found:
            raise _corrupt(path, f"no {name}")
    hints = get_type_hints(RunRecord)
    for name, value in found.items():
        if not matches(value, hints[name]) or (name == "status" and value not in STATUSES):
            # Shortened: what stands there instead may be long, or deeply nested.
            raise _corrupt(path, f"{name} {reprlib.repr(value)}")


def _corrupt(path: Path, got: str) -> InputError:
    return InputError(f"{path} must be the record of a run, got {got}. Restore the file, or move the folder away.")
