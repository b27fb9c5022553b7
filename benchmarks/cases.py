"""The banks that are timed."""

from __future__ import annotations

from dataclasses import dataclass

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from toydepth.config import TrainConfig, conf_dir, register

# Sixteen, evenly spaced in ln T from 0.01 to 1: those of the paper.
_TEMPERATURES = f"target.temperatures={[float(f'{0.01 ** (1 - k / 15):.3g}') for k in range(16)]}"


@dataclass(frozen=True)
class Case:
    """A bank: overrides of the training command, and how many of its steps make a repetition."""

    title: str
    overrides: tuple[str, ...]
    steps: int

    def config(self) -> TrainConfig:
        """Composes and checks the configuration."""
        register()
        with initialize_config_dir(conf_dir(), version_base="1.3"):
            config = OmegaConf.to_object(compose("train", list(self.overrides)))
        assert isinstance(config, TrainConfig)
        return config


CASES = {
    "paper_mse": Case("paper scale, mse, 3 teachers", ("scale=paper", "teacher=tied", "replicates=3"), 6),
    "paper_mse_one": Case("paper scale, mse, 1 teacher", ("scale=paper", "teacher=tied"), 12),
    "paper_kl": Case(
        "paper scale, kl, 16 temperatures, 1 teacher", ("scale=paper", "teacher=tied", "loss=kl", _TEMPERATURES), 2
    ),
    "laptop": Case("laptop scale, mse, 4 teachers", ("scale=laptop", "teacher=tied", "replicates=4"), 200),
}
