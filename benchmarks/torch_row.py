"""What a researcher would write in PyTorch: one student, one temperature at a time, the teacher run again for each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.cases import CASES


class Block(nn.Module):
    """x + W2 relu(W1 rms(x) + b1)^2."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.RMSNorm(width, elementwise_affine=False)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, width) to the same."""
        return x + self.down(torch.relu(self.up(self.norm(x))) ** 2)


class Network(nn.Module):
    """A stack of blocks between two norms; a tied one applies its single block `depth` times."""

    def __init__(self, width: int, depth: int, tied: bool = False):
        super().__init__()
        self.norm = nn.RMSNorm(width, elementwise_affine=False)
        blocks = [Block(width)] * depth if tied else [Block(width) for _ in range(depth)]
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, width) to the same."""
        x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def set_up(case: str) -> tuple[Callable[[], float], dict[str, str]]:
    """Returns a repetition, which gives its seconds for one set of students a temperature, and what it runs on."""
    config = CASES[case].config()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    width, kl = config.width, config.loss.name == "kl"
    teacher = Network(width, config.teacher.depth, tied=config.teacher.kind == "tied").to(device)
    for weights in {id(b): b.down.weight for b in teacher.modules() if isinstance(b, Block)}.values():
        weights.data *= config.teacher.depth**-0.5
    head = torch.randn(width, config.vocabulary, device=device) * width**-0.5
    temperatures = config.target.temperatures if kl else (1.0,)
    students: list[tuple[float, Any, Any]] = []
    for temperature in temperatures:
        for depth in config.student.depths:
            student = Network(width, depth).to(device)
            students.append((temperature, student, torch.optim.Adam(student.parameters(), lr=config.learning_rate)))

    def step(temperature: float, student: Network, optimizer: torch.optim.Optimizer) -> None:
        x = torch.randn(config.batch_size, width, device=device)
        with torch.no_grad():
            target = teacher(x)
        hidden = student(x)
        if kl:
            log_student = F.log_softmax(hidden @ head / temperature, dim=-1)
            log_teacher = F.log_softmax(target @ head / temperature, dim=-1)
            loss = F.kl_div(log_student, log_teacher, log_target=True, reduction="batchmean")
        else:
            loss = F.mse_loss(hidden, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def repeat() -> float:
        begun = time.perf_counter()
        for temperature, student, optimizer in students:
            step(temperature, student, optimizer)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - begun) / len(temperatures)

    step(*students[0])
    return repeat, {"device": f"{torch.get_num_threads()} threads, {device.type}, torch {torch.__version__}"}
