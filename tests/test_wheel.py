"""What is shipped: the sdist, the wheel built from it, and the command as installed, far from the checkout."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest


def call(*command: str | Path, **options) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def dist(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist and with the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, repository)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("toydepth-*.whl")
    return path


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed by itself; its dependencies are those of the running environment."""
    folder = tmp_path_factory.mktemp("site")
    call(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-index"),
        *("--target", folder, wheel),
    )
    return folder


@pytest.fixture
def elsewhere(site: Path, tmp_path: Path) -> dict:
    """A folder that has nothing to do with the checkout, and the installed wheel ahead of it on the path."""
    return {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(site)}}


def files(folder: Path, pattern: str) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob(pattern)}


def test_the_wheel_holds_the_package_and_its_config_files(wheel: Path, repository: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    dist_info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    shipped = {name.removeprefix("toydepth/") for name in names if name.startswith("toydepth/")}
    # Every room: an ignored folder named like one (`runs/`) would drop it without a word.
    assert {name for name in shipped if name.endswith(".py")} == files(repository / "toydepth", "*.py")
    configs = {name.removeprefix("conf/") for name in shipped if name.endswith(".yaml")}
    assert configs == files(repository / "conf", "*.yaml")
    assert "train.yaml" in configs
    assert "py.typed" in shipped
    assert {name.split("/")[0] for name in names} == {"toydepth", dist_info}


def test_the_sdist_holds_what_it_takes_to_build_and_to_test(dist: Path, repository: Path):
    (path,) = dist.glob("toydepth-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = {"conf/train.yaml", "toydepth/cli/command.py", "tests/conftest.py"}
    wanted |= {"pyproject.toml", "README.md", "LICENSE"}
    assert wanted <= names
    assert {f"toydepth/{name}" for name in files(repository / "toydepth", "*.py")} <= names
    assert not [name for name in names if name.startswith(("runs/", ".venv"))]


def test_the_installed_package_is_the_one_that_runs(site: Path, elsewhere: dict):
    found = call(sys.executable, "-c", "import toydepth; print(toydepth.__file__)", **elsewhere).stdout.strip()
    assert Path(found) == site / "toydepth" / "__init__.py"


@pytest.mark.parametrize("how", ["console script", "toydepth.cli", "toydepth.train"])
def test_the_installed_command_composes_its_config_from_any_folder(how: str, site: Path, elsewhere: dict):
    commands = {
        "console script": [site / "bin" / "toydepth", "train"],
        "toydepth.cli": [sys.executable, "-m", "toydepth.cli", "train"],
        "toydepth.train": [sys.executable, "-m", "toydepth.train"],
    }
    shown = call(*commands[how], "+experiment=tied", "steps=7", "--cfg", "job", **elsewhere).stdout
    assert "\nsteps: 7\n" in f"\n{shown}"
