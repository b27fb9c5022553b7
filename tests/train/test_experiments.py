"""Every file of conf/ composes, and every experiment trains for 3 steps."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from toydepth.config import TrainConfig, conf_dir, register

CONF = Path(conf_dir())
OPTIONS = [(f.parent.name, f.stem) for f in sorted(CONF.glob("*/*.yaml")) if f.parent.name != "experiment"]
EXPERIMENTS = [f.stem for f in sorted((CONF / "experiment").glob("*.yaml"))]


def composed(*overrides):
    register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return OmegaConf.to_object(compose("train", list(overrides)))


@pytest.mark.parametrize("group, option", OPTIONS)
def test_every_option_composes(group, option):
    assert isinstance(composed(f"{group}={option}"), TrainConfig)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_composes_and_trains(train, record, tmp_path, name):
    config = composed(f"+experiment={name}")
    assert config.name == name
    small = ["steps=3", "replicates=1", "student.depths=0" if config.student.depths == (0,) else "student.depths=1"]
    if config.loss.name == "kl":
        small.append("target.temperatures=0.5")
    code, _, err = train(f"+experiment={name}", *small)
    assert code == 0, err
    assert record(tmp_path / "run")["steps_done"] == 3


def test_the_presets_are_the_published_scales():
    laptop, paper = composed("scale=laptop"), composed("scale=paper")
    assert (laptop.width, laptop.vocabulary, laptop.teacher.depth, laptop.batch_size) == (8, 32, 64, 256)
    assert laptop.student.depths == (3, 4, 6, 8, 12, 16)
    assert (paper.width, paper.vocabulary, paper.teacher.depth, paper.batch_size) == (32, 128, 128, 1024)
    assert (paper.student.depths, paper.steps) == ((6, 12, 16, 24, 32, 48), 80000)
