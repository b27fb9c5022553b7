"""The recipes of sweeps/ name keys, metrics and commands that exist."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from toydepth.config import conf_dir, register

SWEEPS = Path(__file__).parent.parent / "sweeps"


@pytest.mark.parametrize("path", sorted(SWEEPS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_job_of_a_wandb_sweep_is_a_job(path):
    sweep = yaml.safe_load(path.read_text())
    given = [word for word in sweep["command"] if "=" in word]
    grid = {key: entry.get("values") or [entry["value"]] for key, entry in sweep["parameters"].items()}
    register()
    for values in itertools.product(*grid.values()):
        words = [*given, *(f"{key}={value}" for key, value in zip(grid, values, strict=True))]
        with initialize_config_dir(conf_dir(), version_base="1.3"):
            config = OmegaConf.to_object(compose("train", words))
    kind, _, arm = sweep["metric"]["name"].partition("/")
    arm = dict(part.split("=") for part in arm.split(","))
    assert kind in ("test_loss", "test_loss_average")
    assert int(arm.pop("depth")) in config.student.depths and arm.pop("init") in config.student.init and not arm


_SMALL = ["steps=3", "teacher.depth=4", "batch_size=16", "eval.samples=64"]
_OF_DEPTHS = [*_SMALL, "width=4", "student.depths=[1,2,3]"]
# What a recipe is made small by, where its widths are what it is about, and the figure that it ends with.
_OWN = {"transport": ([*_SMALL, "student.depths=[1]", "gradients.points=2", "replicates=1"], "transport_sizes.png")}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(SWEEPS.glob("*.sh")), ids=lambda path: path.stem)
def test_every_shell_recipe_runs(path, tmp_path, repository):
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    env = os.environ | {"PATH": os.pathsep.join(folders), "PYTHONPATH": str(repository)}
    small, figure = _OWN.get(path.stem, (_OF_DEPTHS, "alpha_against_step.png"))
    done = subprocess.run(["bash", path, *small], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob(figure))
