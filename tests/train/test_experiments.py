"""Every file of conf/ composes, every experiment trains for 3 steps, and the paper's have the published values."""

from pathlib import Path

import numpy as np
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


# The published runs: the teacher, its depth, the distribution of its head; the loss, the student's head, the
# temperature of its logits; steps; the factor of 6e-4 and the power of depth that divides it; the schedule.
LINEAR = ("stable_then_linear", 0.2, 0.1)
PUBLISHED = {
    "paper_fig3b": ("independent", 128, "uniform", "kl", "learned", 1.0, 40000, 1, 0, "constant"),
    "paper_fig4c": ("tied", 128, "uniform", "kl", "learned", 1.0, 40000, 1, 0, "constant"),
    "paper_fig4a": ("tied", 128, "normal", "kl", "teacher", "the target's", 80000, 4, 0.5, LINEAR),
    "paper_fig5_independent": ("independent", 128, None, "mse", "none", None, 80000, 2, 0.5, LINEAR),
    "paper_fig5_tied": ("tied", 128, None, "mse", "none", None, 80000, 2, 0.5, LINEAR),
    "paper_shallow_independent": ("independent", 24, None, "mse", "none", None, 40000, 2, 0.5, LINEAR),
    "paper_shallow_tied": ("tied", 24, None, "mse", "none", None, 40000, 2, 0.5, LINEAR),
    "paper_rk2_independent": ("independent", 128, None, "mse", "none", None, 80000, 2, 0.5, LINEAR),
    "paper_rk2_tied": ("tied", 128, None, "mse", "none", None, 80000, 2, 0.5, LINEAR),
}


def test_every_paper_recipe_is_in_the_table():
    assert sorted(PUBLISHED) == [name for name in EXPERIMENTS if name.startswith("paper_")]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_paper_recipes_are_the_published_runs(name):
    config = composed(f"+experiment={name}")
    teacher, student, optimizer, schedule = config.teacher, config.student, config.optimizer, config.schedule
    kl = config.loss.name == "kl"
    temperature = None
    if kl:
        seen = [config.student_temperature(t) for t in config.target.temperatures]
        temperature = 1.0 if set(seen) == {1.0} else "the target's" if seen == [*config.target.temperatures] else seen
    falls = (schedule.name, schedule.decay_fraction, schedule.final_fraction)
    assert PUBLISHED[name] == (
        teacher.kind,
        teacher.depth,
        teacher.head_init if kl else None,
        config.loss.name,
        student.head,
        temperature,
        config.steps,
        optimizer.learning_rate_factor,
        optimizer.depth_power,
        "constant" if schedule.name == "constant" else falls,
    )
    assert (config.width, config.vocabulary, config.batch_size, config.replicates) == (32, 128, 1024, 3)
    assert (optimizer.name, optimizer.options, config.learning_rate) == ("adam", {}, 6e-4)
    blocks = ("rk2", (3, 6, 8, 12, 16, 24)) if "rk2" in name else ("euler", (6, 12, 16, 24, 32, 48))
    assert (student.block, student.depths) == blocks
    assert (student.init, teacher.rho, teacher.seed) == (("zero",), None, None)
    if kl:
        # Sixteen in equal ratios, in the three digits they are written with.
        np.testing.assert_allclose(config.target.temperatures, np.logspace(-2, 0, 16), rtol=5e-3)
        assert (config.target.temperatures[0], config.target.temperatures[-1]) == (0.01, 1.0)
