"""The library is compiled once, found again, made anew where it must be; and why not, in one line."""

import os
import subprocess
import sys

import pytest

from toydepth.kernel import build

ASK = "from toydepth.kernel import build; print(build.why_not())"


@pytest.fixture
def ask(tmp_path):
    """ask(code, **environment): what a new process prints that has a cache of its own."""

    def run(code=ASK, **environment):
        environment = {"TOYDEPTH_CACHE": str(tmp_path / "cache")} | environment
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def libraries(tmp_path):
    """libraries(): what the cache holds."""
    return lambda: sorted((tmp_path / "cache" / "kernel").glob("*"))


@pytest.mark.usefixtures("native")
def test_it_is_compiled_once_and_kept(ask, libraries):
    assert ask() == ""
    found = libraries()
    made = next(path for path in found if path.suffix == ".so")
    whole, before = made.read_bytes(), made.stat().st_mtime_ns
    assert ask() == "" and libraries() == found and made.stat().st_mtime_ns == before
    # Damaged, or cut short, which would end the process that loads it: made anew.
    for damaged in (b"no library", whole[: len(whole) // 2]):
        made.write_bytes(damaged)
        assert ask() == "" and libraries() == found and made.stat().st_size > 10000


@pytest.mark.usefixtures("native")
def test_a_cache_that_cannot_be_written_is_no_fault(ask, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert ask() == ""


def test_without_a_compiler(ask, libraries):
    nothing = ask(ASK.replace("print", "build._COMPILERS = ('no-such-compiler',); print"), CXX="")
    assert nothing == "no C++ compiler was found: set CXX, or install g++ or clang++"
    assert ask(CXX="/no/such/compiler -O2") == "the C++ compiler that CXX names, /no/such/compiler, was not found"
    assert ask(CXX="g++ -DX='a") == "CXX, the C++ compiler, cannot be read (No closing quotation)"
    assert ask(CXX="/bin/false") == "/bin/false does not compile it (it does not say why)"
    assert libraries() == []


def test_a_compiler_that_fails(ask, libraries, tmp_path):
    (tmp_path / "broken").write_text("#!/bin/sh\necho ignored >&2\necho 'x.cc:1:  error: no such thing' >&2\nexit 1\n")
    (tmp_path / "broken").chmod(0o755)
    told = ask(CXX=str(tmp_path / "broken"))
    assert told == f"{tmp_path / 'broken'} does not compile it (x.cc:1: error: no such thing)"
    assert libraries() == []


def test_a_compiler_that_makes_nothing_of_use(ask, tmp_path):
    script = '#!/bin/sh\nfor last; do :; done\n[ "$1" = --version ] || echo no library > "$last"\n'
    (tmp_path / "odd").write_text(script)
    (tmp_path / "odd").chmod(0o755)
    assert ask(CXX=str(tmp_path / "odd")).startswith("it cannot be compiled or loaded (")


def test_another_source_compiler_or_processor_is_another_library(monkeypatch, tmp_path):
    names = [build._digest(["c++"])]
    with monkeypatch.context() as patch:
        patch.setattr(build, "_instructions", lambda: "flags : another")
        names.append(build._digest(["c++"]))
    with monkeypatch.context() as patch:
        patch.setattr(build, "_FLAGS", ("-O1",))
        names.append(build._digest(["c++"]))
    (tmp_path / "layers.cc").write_text("// another")
    monkeypatch.setattr(build, "_SOURCE", tmp_path)
    names.append(build._digest(["c++"]))
    assert len(set(names)) == 4


# Other processors have other vectors: 8 and 4 numbers wide, which this one can run too.
NARROWER = """
from toydepth.kernel import build, run_layers
build._FOR_THIS_PROCESSOR = ({!r},)
reason = build.why_not()
import jax, jax.numpy as jnp, numpy as np
from toydepth.net import functional, make_student, parameters
worst = 0.0
for width, batch, block in ((8, 70, "euler"), (5, 9, "rk2")):
    new = lambda: make_student(2, width=width, key=jax.random.key(0), block=block)
    params = jax.tree.map(lambda a: a + 0.2 * jax.random.normal(jax.random.key(a.size), a.shape), parameters(new()))
    x = jax.random.normal(jax.random.key(1), (width, batch))
    network = functional(new)
    of = lambda kernel: jax.jit(jax.grad(lambda p: jnp.sum(network.apply(p, x, kernel) * x)))(params)
    for one, other in zip(jax.tree.leaves(of("native")), jax.tree.leaves(of("xla"))):
        worst = max(worst, float(abs(one - other).max() / abs(other).max()))
print(reason or worst)
"""


@pytest.mark.usefixtures("native")
@pytest.mark.skipif("x86_64" not in os.uname().machine, reason="names of x86 processors")
@pytest.mark.parametrize("processor", ["-march=haswell", "-march=x86-64"])
def test_narrower_vectors(ask, processor):
    assert float(ask(NARROWER.format(processor))) < 3e-5
