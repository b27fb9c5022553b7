"""Weights of a run as .npz, for checks by other frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from toydepth.errors import InputError
from toydepth.runs import name_weights, student_name
from toydepth.runs.files import replacing
from toydepth.weights import load_weights


def export_weights(run: str | Path, output: str | Path) -> dict[str, np.ndarray]:
    """Writes teacher and student weights of a run to `output` and returns them by name.

    Names, layer axis first:

        teacher/replicate=0/w1                                     (layers, width, 4 width)
        teacher/replicate=0/b1, .../w2                             (layers, 4 width), (layers, 4 width, width)
        teacher/replicate=0/head                                   (width, vocabulary), for kl
        student/depth=3,init=zero,replicate=0/raw/w1               (depth, width, 4 width), and b1, w2
        student/depth=3,init=zero,replicate=0/average=0.998/w1     the same of an average
        student/.../raw/head                                       (width, vocabulary), for a learned head
        student/.../raw/mlp_1/w1, .../mlp_2/w1                     for rk2 blocks

    A tied teacher has one layer, to be applied `teacher/depth` times. mlp(x) = w2^T relu(w1^T x + b1)^2; the teacher's
    w2 holds its factor 1/sqrt(depth). `step` is the number of updates done.

    Raises:
        InputError: for an output that is not named .npz, for a folder without a record whose config can be read, or
            without a checkpoint that can.
    """
    if not Path(output).name.endswith(".npz"):
        # Any other name may be that of a file of the run.
        raise InputError(f"output must be a name that ends in .npz, got {str(output)!r}. Add .npz to it.")
    config, bank, state = load_weights(run)
    arrays: dict[str, Any] = {"step": np.asarray(state["step"]), "teacher/depth": np.asarray(config.teacher.depth)}
    teachers = jax.device_get(bank.teachers)
    for replicate in range(config.replicates):
        name = f"teacher/replicate={replicate}"
        mlp = jax.tree.map(lambda leaf, r=replicate: leaf[r], teachers["stack"]["block"]["mlp"])
        arrays |= {f"{name}/{key}": leaf[None] if config.teacher.kind == "tied" else leaf for key, leaf in mlp.items()}
        if bank.heads is not None:
            arrays[f"{name}/head"] = np.asarray(bank.heads)[replicate]
    for index, arm in enumerate(bank.arms):
        stack = state["depths"][str(arm.depth)]
        first = next(i for i, other in enumerate(bank.arms) if other.depth == arm.depth)
        sets = {None: stack["params"], **dict(zip(config.average.decays, stack["averages"], strict=True))}
        for decay, params in sets.items():
            own = jax.tree.map(lambda leaf, place=index - first: leaf[place], params)
            arrays |= name_weights(student_name(arm.name, decay), own)
    with replacing(Path(output)) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)
    return arrays
