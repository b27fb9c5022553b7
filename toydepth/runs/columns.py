"""The columns of a run's curves: names, types, units and meanings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Column(NamedTuple):
    """dtype: 'str', 'int64', 'float64' or 'bool'; unit ('' where there is none); meaning, one line.

    source: who gives it: 'labels' (the run), 'arms' (each arm) or 'series' (each evaluation).
    """

    dtype: str
    unit: str
    meaning: str
    source: str


CURVE_COLUMNS: dict[str, Column] = {
    "experiment": Column("str", "", "name of the experiment", "labels"),
    "teacher": Column("str", "", "tied, independent or correlated", "labels"),
    "rho": Column("float64", "", "share of the blocks' variance in common, 0 to 1; NaN unless correlated", "labels"),
    "teacher_depth": Column("int64", "blocks", "depth of the teacher", "labels"),
    "teacher_seed": Column("int64", "", "seed the teacher was drawn with", "arms"),
    "width": Column("int64", "", "width of the hidden state", "labels"),
    "vocabulary": Column("int64", "", "number of logits; 0 where there is no head", "labels"),
    "loss": Column("str", "", "mse or kl", "labels"),
    "head": Column("str", "", "the student's head: teacher, learned or none", "labels"),
    "recipe": Column("str", "", "hash of how the arms were trained: rates, schedule, batch, steps, ...", "labels"),
    "arm": Column("int64", "", "number of the arm within its run, from 0", "arms"),
    "depth": Column("int64", "blocks", "depth of the student", "arms"),
    "mlp_evaluations": Column("int64", "", "MLPs in one forward pass: depth for euler, twice that for rk2", "arms"),
    "temperature": Column("float64", "", "temperature of the targets; NaN for mse", "arms"),
    "init": Column("str", "", "how the student starts: zero or euler", "arms"),
    "block": Column("str", "", "euler or rk2", "arms"),
    "replicate": Column("int64", "", "number of the repeat, from 0: own student and teacher draws", "arms"),
    "step": Column("int64", "steps", "optimiser steps taken before the evaluation", "series"),
    "samples": Column("int64", "samples", "training inputs seen: steps * batch size", "series"),
    "tau": Column("float64", "", "training time: the sum of learning rates so far", "series"),
    "learning_rate": Column("float64", "", "learning rate of the arm at this step", "series"),
    "train_loss": Column("float64", "nats or squared", "mean of batch losses since the last evaluation", "series"),
    "test_loss": Column("float64", "nats or squared", "loss on the fixed test set", "series"),
    "standard_error": Column("float64", "as test_loss", "standard error of test_loss over the test set", "series"),
    "test_loss_average": Column("float64", "as test_loss", "test loss of averaged weights; NaN when off", "series"),
    "standard_error_average": Column("float64", "as test_loss", "standard error of test_loss_average", "series"),
    "average_decay": Column("float64", "1/step", "decay of that average of the weights; NaN when off", "arms"),
    "noise_floor": Column("float64", "as test_loss", "loss that float32 rounding alone makes", "arms"),
    "diverged": Column("bool", "", "whether the arm's loss stopped being finite; holds for all its rows", "arms"),
}
"""Every column a table of curves holds, in its order. Further averages add `average_columns(decay)` at the end."""

# Averaging may be off; everything else has to be given.
OPTIONAL_COLUMNS = ("test_loss_average", "standard_error_average")

_FURTHER = re.compile(r"(test_loss|standard_error)_average_(\d.*)")


def average_columns(decay: float) -> tuple[str, str]:
    """Returns the names of loss and standard error of a further average of the weights.

    >>> average_columns(0.999)
    ('test_loss_average_0.999', 'standard_error_average_0.999')
    """
    return f"test_loss_average_{float(decay)!r}", f"standard_error_average_{float(decay)!r}"


def find_decays(names: Iterable[str]) -> list[float]:
    """Returns the decays of the further averages among column names, in order of appearance.

    >>> find_decays(["step", "test_loss_average", "test_loss_average_0.99", "standard_error_average_0.99"])
    [0.99]
    """
    matches = [_FURTHER.fullmatch(name) for name in names]
    found = [_as_decay(match.group(2)) for match in matches if match]
    return list(dict.fromkeys(decay for decay in found if decay is not None))


def _as_decay(text: str) -> float | None:
    try:
        decay = float(text)
    except ValueError:
        return None
    # 0.990 would make a second name for 0.99: only the name that average_columns gives counts.
    return decay if repr(decay) == text else None
