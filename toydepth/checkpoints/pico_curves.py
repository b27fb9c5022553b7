"""Losses and learning rates that a Pico-LM run leaves beside its checkpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd

from toydepth.checkpoints.steps import find_step
from toydepth.errors import InputError

_HEAD = re.compile(r"Step (\d+) -- .*Training Metrics")
_VALUE = re.compile(r"(Loss|Learning Rate): (\S+)\s*$")
_COLUMNS = {"Loss": "train_loss", "Learning Rate": "learning_rate"}


def pico_curves(folder: str | Path) -> pd.DataFrame | None:
    """Returns what a run's logs and evaluations tell, a row a step, or None where it has neither.

    Args:
        folder: of a run, which holds `logs` or `eval_results`, or its `checkpoints`.

    Returns:
        step, then of what is there: train_loss (nats; the mean since the line before, four decimals), learning_rate
        (three digits), and a column for each metric of eval_results, such as paloma, a mean perplexity. NaN where a
        step has no value. A step that is logged twice, in a training that was resumed, has its latest.

    Raises:
        InputError: for a file of eval_results that is no JSON object.

    Source: github.com/pico-lm/pico-train, src/training/trainer.py (`_log_training_metrics`), src/checkpointing/
    evaluation.py, src/evaluation/tasks/paloma.py.
    """
    run = Path(folder).expanduser()
    if run.name == "checkpoints":
        run = run.parent
    rows: dict[int, dict[str, float]] = {}
    for log in sorted((run / "logs").glob("log_*.log")):
        step = None
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            head, value = _HEAD.search(line), _VALUE.search(line)
            if head:
                step = int(head[1])
            elif value and step is not None:
                number = _number(value[2])
                if number is not None:
                    rows.setdefault(step, {})[_COLUMNS[value[1]]] = number
            elif "Step " in line:  # the head of another block
                step = None
    for path in sorted((run / "eval_results").glob("*.json")):
        step = find_step(path.stem)
        if step is None:
            continue
        try:
            found = json.loads(path.read_text(encoding="utf-8")).items()
        except (ValueError, AttributeError) as error:
            raise InputError(f"{path} must be a JSON object of metrics, got other text. Mend or remove it.") from error
        numbers = {name: float(value) for name, value in found if type(value) in (int, float)}
        if numbers:
            rows.setdefault(step, {}).update(numbers)
    if not rows:
        return None
    table = pd.DataFrame.from_dict(rows, orient="index").sort_index()
    return table.rename_axis("step").reset_index()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
