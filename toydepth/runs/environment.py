"""What a result may depend on besides its config: versions of packages, and the commit of the code."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = (
    "toydepth", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "hydra-core", "numpy", "pandas", "wandb"
)  # fmt: skip
_GIT_SECONDS = 2.0  # a command; a checkout on a slow network disk must not hold up a run


def find_versions() -> dict[str, str | None]:
    """Returns the versions of Python and of the packages a run may use; None for one that is not installed.

    Read from the packages' metadata, so that nothing is imported.

    >>> versions = find_versions()
    >>> list(versions)[:3], versions["numpy"] is not None
    (['python', 'toydepth', 'jax'], True)
    """
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def find_git(package: Path | None = None) -> dict[str, Any] | None:
    """Returns {commit, dirty} of the checkout that holds the package, whatever the current folder; or None.

    dirty: a tracked file was changed, or the package holds a file that is not tracked. None where there is no git, no
    checkout, or one that does not track the package (an environment inside another project's checkout): its commit
    would say nothing about this code. Never raises.

    Args:
        package: folder of the package; default: that of toydepth.

    Example:
        >>> find_git(Path("/"))
    """
    folder = package or Path(__file__).resolve().parents[1]
    try:
        if not _git(folder, "ls-files", "--", "."):
            return None
        commit, prefix = (_git(folder, "rev-parse", "HEAD", "--show-prefix") + "\n").split("\n")[:2]
        changes = _git(folder, "status", "--porcelain").splitlines()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    # Results and notes that lie about in the checkout do not change what ran; a new module in the package does.
    changed = [line for line in changes if not line.startswith("??") or line[3:].strip('"').startswith(prefix)]
    return {"commit": commit, "dirty": bool(changed)}


def utc_now() -> str:
    """Returns the time now in UTC as ISO 8601, to the second.

    >>> utc_now().endswith("+00:00")
    True
    """
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(folder: Path, *arguments: str) -> str:
    # GIT_DIR and the like (set inside hooks) would point to another checkout; status need not refresh the index.
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environ |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_GIT_SECONDS,
        check=True,
    )
    return done.stdout.rstrip("\n")
