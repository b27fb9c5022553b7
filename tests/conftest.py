"""The shared rig: one device, one thread a worker, no window, no account, and the command line as a person has it."""

import os

# Before jax and numpy are imported, here or by a subprocess. Each xdist worker stays on one thread where it can, since
# there are as many workers as cores.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["MPLBACKEND"] = "Agg"
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[_name] = "1"
# Whatever account, mode or resumed run the person has, no test may use it.
for _name in [name for name in os.environ if name.startswith("WANDB_")]:
    del os.environ[_name]

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import toydepth

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def isolated_wandb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Gives W&B folders and an empty list of keys of its own; yields their parent."""
    home = tmp_path_factory.mktemp("wandb")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
            folder = home / name.removeprefix("WANDB_").removesuffix("_DIR").lower()
            folder.mkdir()
            patch.setenv(name, str(folder))
        patch.setenv("NETRC", str(home / "netrc"))
        yield home


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What was measured on this machine before is not read, and nothing is added to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOYDEPTH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def native() -> None:
    """Skips where native layers cannot be had: without a C++ compiler."""
    from toydepth.kernel import why_not

    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root: conf/, docs/, toydepth/."""
    return ROOT


@pytest.fixture(scope="session")
def public() -> Callable[[str], Any]:
    """public(name): a public table of losses; skips where the environment variable TOYDEPTH_DATA names no folder."""

    def read(name: str) -> Any:
        from toydepth.fit.law import read_table

        folder = os.environ.get("TOYDEPTH_DATA")
        if not folder:
            pytest.skip("the public tables are not here: set TOYDEPTH_DATA to their folder")
        return read_table(Path(folder) / name)

    return read


@pytest.fixture
def run_cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own, with an empty folder to work in.

    run_cli("train", "+experiment=tied", "steps=3") returns the CompletedProcess, output as text; a failure does not
    raise, since exit codes are part of what is tested. `env` is added to the environment (None removes a variable).
    """

    def run(
        *arguments: str, env: Mapping[str, str | None] | None = None, cwd: Path = tmp_path, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        # The package under test comes first, be it installed or not.
        variables: dict[str, str | None] = {
            **os.environ,
            "PYTHONPATH": str(Path(toydepth.__file__).parents[1]),
            **(env or {}),
        }
        return subprocess.run(
            [sys.executable, "-m", "toydepth.cli", *arguments],
            cwd=cwd,
            env={name: value for name, value in variables.items() if value is not None},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture(scope="session")
def compile_each_program_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A program compiled by one test is read by the next: compilation is most of the time of tiny banks."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    names = {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in names}
    for name, value in names.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """Leaves out most of the compiler's optimisations, for one file of tests."""
    import jax

    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
