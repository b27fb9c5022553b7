"""From the C++ source to a library on this machine: compiled once, for its own processor, and kept.

As with the measured layouts (`bank/remember.py`), what was made is found again in TOYDEPTH_CACHE or the user's cache
folder, under a name made of all that it depends on.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

import jax

from toydepth.cache import cache_folder, keep

TARGETS = ("toydepth_apply", "toydepth_forward", "toydepth_backward")
"""The calls of the library, by the names under which XLA knows them too."""

_SOURCE = Path(__file__).parent / "source"
_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-shared", "-fPIC", "-w")
# Names of the processor that compiles, in the words of different compilers.
_FOR_THIS_PROCESSOR = ("-march=native", "-mcpu=native")


@functools.cache
def why_not() -> str:
    """Makes the library ready for XLA, once a process; returns why it cannot be, or nothing.

    The first call on a machine compiles it, in a few seconds.

    Example:
        >>> reason = why_not()
        >>> not reason or "compile" in reason
        True
    """
    try:
        library = _load()
        for name in TARGETS:
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")
    except _NotBuilt as error:
        return str(error)
    except (OSError, AttributeError, ValueError) as error:
        return f"it cannot be compiled or loaded ({_line(str(error))})"
    return ""


class _NotBuilt(Exception):
    """Why there is no library."""


def _load() -> ctypes.CDLL:
    """Returns the library, compiled now unless it was before; where the cache cannot be written, for this process."""
    compiler = _compiler()
    kept = cache_folder() / "kernel" / f"layers-{_digest(compiler)}.so"
    if _is_whole(kept):
        return ctypes.CDLL(str(kept))
    with tempfile.TemporaryDirectory() as own:
        made = _compile(compiler, Path(own))
        try:
            # The sum first: a file that is cut short must never be loaded, as that ends the process.
            keep(_sum_of(kept), _sum(made).encode())
            keep(kept, made.read_bytes())
        except OSError:
            return ctypes.CDLL(str(made))
    return ctypes.CDLL(str(kept))


def _is_whole(library: Path) -> bool:
    try:
        return _sum_of(library).read_text() == _sum(library)
    except (OSError, ValueError):
        return False


def _sum_of(library: Path) -> Path:
    return library.with_suffix(".sha256")


def _sum(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()


def _compile(compiler: list[str], folder: Path) -> Path:
    to, said = folder / "layers.so", ""
    for processor in _FOR_THIS_PROCESSOR:
        files = ["-I", jax.ffi.include_dir(), str(_SOURCE / "layers.cc"), "-o", str(to)]
        done = _run([*compiler, *_FLAGS, processor, *files])
        if done.returncode == 0:
            return to
        said = said or next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
    raise _NotBuilt(f"{compiler[0]} does not compile it ({_line(said) or 'it does not say why'})")


def _compiler() -> list[str]:
    """The words that begin the command: of CXX where it is set, as for make."""
    try:
        told = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        raise _NotBuilt(f"CXX, the C++ compiler, cannot be read ({_line(str(error))})") from None
    for words in [told] if told else [[name] for name in _COMPILERS]:
        if shutil.which(words[0]):
            return words
    if told:
        raise _NotBuilt(f"the C++ compiler that CXX names, {told[0]}, was not found")
    raise _NotBuilt("no C++ compiler was found: set CXX, or install g++ or clang++")


def _digest(compiler: list[str]) -> str:
    """What the library depends on: the source, the compiler and its flags, the headers of jaxlib, the processor."""
    parts = [path.read_text() for path in sorted(_SOURCE.iterdir()) if path.suffix in (".cc", ".h")]
    parts += [*compiler, _run([*compiler, "--version"]).stdout, *_FLAGS, *_FOR_THIS_PROCESSOR]
    parts += [version("jaxlib"), platform.machine(), _instructions()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _instructions() -> str:
    """What the processor can do: a cache folder may be shared by machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor()


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
