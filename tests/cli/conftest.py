"""A job small enough to compile in seconds; programs compiled by one test are read by the next."""

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

TINY = (
    *("width=4", "vocabulary=5", "teacher.depth=4", "batch_size=16", "eval.samples=64", "eval.points=4"),
    *("device.count=1", "tracker=none", "checkpoint.every_seconds=0"),
)


@pytest.fixture(scope="session", autouse=True)
def compile_each_program_once(tmp_path_factory):
    names = {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in names}
    for name, value in names.items():
        jax.config.update(name, value)
    # Compilation is most of the time, and is not what is tested here.
    jax.config.update("jax_disable_most_optimizations", True)
    compilation_cache.reset_cache()
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(scope="session")
def tiny():
    """Overrides of a job of a few seconds on one device."""
    return TINY
