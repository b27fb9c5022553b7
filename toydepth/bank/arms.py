"""Arms: the students of a bank, and their stacks."""

from __future__ import annotations

from dataclasses import dataclass

from toydepth.config import TrainConfig
from toydepth.net import Block, MidpointBlock


@dataclass(frozen=True)
class Arm:
    """One student: (depth, temperature, init, block, replicate); temperature None where the loss reads none.

    Arms of one depth are stacked: their parameters lie side by side on one leading axis, in the order of `make_arms`.
    """

    depth: int
    temperature: float | None
    init: str
    block: str
    replicate: int

    @property
    def mlp_evaluations(self) -> int:
        """How many MLPs a forward pass runs: depth, or twice that for rk2 blocks."""
        return self.depth * (MidpointBlock if self.block == "rk2" else Block).mlp_evaluations

    @property
    def name(self) -> str:
        """For example 'depth=12,init=zero,replicate=0', with the temperature where there is one.

        Example:
            >>> Arm(12, 0.1, "zero", "euler", 0).name
            'depth=12,temperature=0.1,init=zero,replicate=0'
        """
        temperature = "" if self.temperature is None else f"temperature={shortest(self.temperature)},"
        return f"depth={self.depth},{temperature}init={self.init},replicate={self.replicate}"


def shortest(value: float) -> str:
    """Writes a number as people do, with as many digits as tell it from any other.

    Example:
        >>> shortest(1.0), shortest(0.1), shortest(0.10000001)
        ('1', '0.1', '0.10000001')
    """
    text = f"{value:g}"
    return text if float(text) == value else repr(value)


def make_arms(config: TrainConfig) -> list[Arm]:
    """Returns the arms in the order of every result: by depth, replicate, temperature, init.

    Example:
        >>> from toydepth.config import StudentConfig
        >>> len(make_arms(TrainConfig(replicates=3, student=StudentConfig(depths=(3, 6), init=("zero", "euler")))))
        12
    """
    temperatures = config.target.temperatures if config.loss.name == "kl" else (None,)
    return [
        Arm(depth, temperature, init, config.student.block, replicate)
        for depth in config.student.depths
        for replicate in range(config.replicates)
        for temperature in temperatures
        for init in config.student.init
    ]
