"""Versions of packages, and the commit of the code that ran: of the package, not of the current folder."""

import re
import subprocess

import numpy as np
import pytest

from toydepth.runs import find_git, find_versions
from toydepth.runs.environment import PACKAGES


def test_versions_name_every_package_whether_installed_or_not(monkeypatch):
    monkeypatch.setattr("toydepth.runs.environment.PACKAGES", ("numpy", "no-such-package"))
    versions = find_versions()
    assert versions["numpy"] == np.__version__
    assert versions["no-such-package"] is None
    assert {"toydepth", "jax", "wandb", "orbax-checkpoint"} <= set(PACKAGES)


@pytest.fixture
def checkout(tmp_path):
    """The package inside a checkout with one commit."""
    package = tmp_path / "repo" / "pkg"
    package.mkdir(parents=True)
    (package / "a.py").write_text("a = 1\n")

    def git(*arguments):
        names = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
        command = ["git", *names, "-C", str(package.parent), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    return package


def test_git_gives_commit_and_whether_the_code_was_changed(checkout, monkeypatch):
    package = checkout
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as inside a hook
    commit = re.compile(r"[0-9a-f]{40}")
    found = find_git(package)
    assert found is not None and commit.fullmatch(found["commit"]) and found["dirty"] is False
    (package.parent / "results.txt").write_text("")
    assert find_git(package) == found
    (package / "new.py").write_text("")
    assert find_git(package) == {**found, "dirty": True}
    (package / "new.py").unlink()
    (package / "a.py").write_text("a = 2\n")
    assert find_git(package) == {**found, "dirty": True}


def test_git_is_none_where_the_package_is_not_tracked(checkout, tmp_path):
    package = checkout
    (package.parent / "env").mkdir()
    (package.parent / "env" / "b.py").write_text("")
    assert find_git(package.parent / "env") is None
    (tmp_path / "outside").mkdir()
    assert find_git(tmp_path / "outside") is None


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 2)])
def test_git_never_fails(monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("subprocess.run", fail)
    assert find_git() is None
