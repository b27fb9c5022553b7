"""Who may import whom: the rooms of docs/design.md, and the libraries that each room keeps away from.

Imports are read from the source, so those inside functions and under TYPE_CHECKING count too.
"""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import toydepth

PACKAGE = Path(toydepth.__file__).parent

# The table of docs/design.md. A room is a folder or a module right under toydepth/; `toydepth` is its __init__, which
# looks names up late.
MAY_IMPORT = {
    "errors": set(),
    "interrupt": set(),
    "intervals": set(),
    "cache": set(),
    "config": {"errors"},
    "kernel": {"cache"},
    "net": {"kernel", "errors"},
    "bank": {"net", "kernel", "cache", "config", "interrupt", "errors"},
    "runs": {"errors"},
    "fit": {"runs", "intervals", "errors"},
    "hidden": {"runs", "errors"},
    "transport": {"runs", "intervals", "cache", "errors"},
    "checkpoints": {"errors"},
    "report": {"fit", "runs", "intervals", "errors"},
    "weights": {"bank", "config", "runs", "errors"},
    "export": {"weights", "runs", "errors"},
    "states": {"weights", "hidden", "bank", "net", "config", "errors"},
    "snapshots": {"bank", "config", "runs", "errors"},
    "job": {"snapshots", "bank", "net", "config", "runs", "fit", "report", "errors"},
    "train": {"job", "config", "runs", "errors"},
    "bayes": {"fit", "errors"},
    "llm": {"hidden", "runs", "interrupt", "errors"},
    "cli": {"bayes", "llm", "states", "hidden", "transport", "checkpoints", "train", "job", "export"}
    | {"bank", "net", "config", "runs", "fit", "report", "interrupt", "errors"},
    "toydepth": {"config", "runs", "fit"},
}

# What can be read and fitted where there is no jax stays readable there.
WITHOUT_JAX = {"jax", "jaxlib", "flax", "optax", "orbax", "hydra", "torch"}
NEVER_IMPORTS = dict.fromkeys(("runs", "fit", "hidden", "transport", "report"), WITHOUT_JAX)
ONLY_IMPORTS = {"net": {"jax", "flax"}, "kernel": {"jax", "numpy"}, "cache": {"platformdirs"}}
TORCH = {"llm", "checkpoints"}  # lazily: importing them does not load it
TRACKERS = "toydepth.runs.trackers"


def module_name(path: Path) -> str:
    """toydepth/fit/depth.py -> toydepth.fit.depth; a package's __init__.py -> the package."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_by(source: str, module: str, is_package: bool) -> set[str]:
    """Every module that a source imports, by its full name; `from a import b` gives a.b, whatever b is."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parents = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parents, *filter(None, [node.module])])
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def room_of(name: str) -> str:
    """toydepth.fit.depth -> fit. A name that is no room was looked up in the package itself: `toydepth`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "toydepth"


def is_ours(name: str) -> bool:
    return name.split(".")[0] == "toydepth"


IMPORTS = {
    module_name(path): imported_by(path.read_text(), module_name(path), path.name == "__init__.py")
    for path in sorted(PACKAGE.rglob("*.py"))
}


def test_every_room_is_in_the_table():
    rooms = {module.split(".")[1] for module in IMPORTS if "." in module}
    assert rooms <= set(MAY_IMPORT), "a new room needs a line in MAY_IMPORT and in docs/design.md"


def test_rooms_import_only_what_lies_below():
    wrong = [
        f"{module} imports {name}"
        for module, names in IMPORTS.items()
        for name in sorted(filter(is_ours, names))
        if room_of(name) not in MAY_IMPORT[room_of(module)] | {room_of(module)} and name != "toydepth.__version__"
    ]
    assert not wrong, "\n".join(wrong)


def test_no_circle_between_rooms():
    # static_order raises CycleError, which names the circle.
    order = list(TopologicalSorter(MAY_IMPORT).static_order())
    assert set(order[:3]) == {"errors", "interrupt", "intervals"}


def test_the_design_page_says_the_same():
    """docs/design.md holds one line a room: `fit -> runs, errors`, and `errors -> nothing`."""
    page = (PACKAGE.parent / "docs" / "design.md").read_text()
    lines = re.findall(r"^\s*(\w+)\s+-> +([\w, ]+?)\s*$", page, flags=re.MULTILINE)
    table = {room: set() if below == "nothing" else set(re.split(r",\s*", below)) for room, below in lines}
    assert table == MAY_IMPORT


def test_rooms_keep_away_from_libraries():
    wrong = []
    for module, names in IMPORTS.items():
        room = room_of(module)
        libraries = {name.split(".")[0] for name in names if not is_ours(name)} - set(sys.stdlib_module_names)
        refused = libraries & (NEVER_IMPORTS.get(room, set()) | ({"torch"} if room not in TORCH else set()))
        if room in ONLY_IMPORTS:
            refused |= libraries - ONLY_IMPORTS[room]
        if not (module == TRACKERS or module.startswith(f"{TRACKERS}.")):
            refused |= libraries & {"wandb"}
        wrong.extend(f"{module} imports {library}" for library in sorted(refused))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "module",
    [
        "toydepth",
        *(f"toydepth.{room}" for room in ("fit", "hidden", "transport", "checkpoints", "llm", "report", "cli")),
    ],
)
def test_importing_loads_no_heavy_library(module: str):
    code = f"import sys, {module}; print(*{{'torch', 'wandb', 'jax', 'hydra'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_public_names_are_looked_up_late():
    assert set(toydepth.__all__) <= set(dir(toydepth))
    from toydepth.fit import fit_depth_exponent

    assert toydepth.fit_depth_exponent is fit_depth_exponent
    with pytest.raises(AttributeError, match="no attribute 'fit_width'"):
        toydepth.fit_width  # noqa: B018


@pytest.mark.parametrize("name", sorted(toydepth.__all__))
def test_each_public_name_exists(name: str):
    assert getattr(toydepth, name) is not None


@pytest.mark.parametrize(
    ("source", "module", "is_package", "expected"),
    [
        ("import jax.numpy as jnp", "toydepth.net.blocks", False, {"jax.numpy"}),
        ("def f():\n    import wandb", "toydepth.runs.trackers", False, {"wandb"}),
        ("from .depth import fit", "toydepth.fit.curves", False, {"toydepth.fit.depth.fit"}),
        ("from .. import bank", "toydepth.fit.curves", False, {"toydepth.bank"}),
        ("from .depth import fit", "toydepth.fit", True, {"toydepth.fit.depth.fit"}),
        ("from ..bank import arms", "toydepth.fit", True, {"toydepth.bank.arms"}),
        ("from toydepth import bank", "toydepth.fit.curves", False, {"toydepth.bank"}),
    ],
)
def test_imports_are_read_as_python_reads_them(source: str, module: str, is_package: bool, expected: set[str]):
    assert imported_by(source, module, is_package) == expected
