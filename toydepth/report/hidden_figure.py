"""Figure: what the blocks of networks do to hidden states, layer by layer, against relative depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from toydepth.report.figures import Figures
from toydepth.report.layout import new_figure, save
from toydepth.report.style import GREY, Look, category, figure_style, sequence

_PANELS = {
    "theta_states": "Angle between states (rad)",
    "theta_updates": "Angle between updates (rad)",
    "norm": "Norm of the state",
    "progress": "Progress to the last state",
}
_FIRST = "model at"
_MOST_LEGEND = 30  # lines: more would be a page of names; colours and dashes say the rest


def write_hidden_figure(table: pd.DataFrame, folder: str | Path) -> Figures:
    """Writes hidden_states.png and .svg: four panels, a line a network; replicates of a run are averaged.

    Teachers and language models are thick; students of one init share a kind of line, darker where shallower;
    position 0 of a language model is a thin dotted line in its colour. A grey dotted line marks pi/2 among updates.

    Args:
        table: of `toydepth.states.states_of_run`, of one or many runs; or of language models, one or several, with the
            same columns: network is `model`, or `model at position 0`, and run the model's name.
        folder: made where it does not exist.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with figure_style():
        return Figures(save(_draw(table), target, "hidden_states"), [])


def _draw(table: pd.DataFrame) -> Figure:
    # Runs apart: students trained in two ways are two lines, never replicates of each other.
    keys = ["run", "teacher", "network", "init", "depth", "temperature"]
    shown = ["relative_depth", *_PANELS]
    lines = pd.DataFrame(table.groupby([*keys, "layer"], dropna=False, sort=False)[shown].mean()).reset_index()
    groups: list[tuple[Any, Any]] = list(lines.groupby(keys, dropna=False, sort=False))
    looks = _looks([group[0] for group in groups])
    names = _names([group[0] for group in groups])
    columns = 3 if max(map(len, names)) < 40 else 2
    told = names[:_MOST_LEGEND]
    figure = new_figure(6.8, 4.4 + 0.15 * -(-len(told) // columns))
    axes = figure.subplots(2, 2, sharex=True)
    for ax, (name, label) in zip(axes.flat, _PANELS.items(), strict=True):
        for (key, layers), (look, width), line in zip(groups, looks, names, strict=True):
            # A step belongs between the two states that it joins.
            shift = {"theta_states": 0.5, "update_norm": 0.5}.get(name, 0.0)
            depth = max(int(key[4]), 1)
            x = layers["relative_depth"] + shift / depth
            ax.plot(x, layers[name], linewidth=width, label=line, **look.line)
        ax.set_ylabel(label)
        ax.set_xlim(0, 1)
        if name == "theta_updates":
            ax.axhline(np.pi / 2, color=GREY, linestyle=":", linewidth=0.8)
            ax.annotate("$\\pi/2$", (1.0, np.pi / 2), xycoords=("axes fraction", "data"), xytext=(2, 0),
                        textcoords="offset points", va="center", color=GREY, fontsize=7)  # fmt: skip
            ax.set_ylim(0, None)
        norms = lines["norm"].to_numpy(float)
        if name == "norm" and norms.max() > 50 * norms.min() > 0:
            ax.set_yscale("log")  # a sink of attention is hundreds of times as long
        elif name in ("theta_states", "norm"):
            ax.set_ylim(0, None)
    for ax in axes[1]:
        ax.set_xlabel("Relative depth (blocks passed / depth)")
    handles, _ = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[: len(told)], told, loc="outside upper left", ncols=columns, handlelength=2.6)
    return figure


def _looks(keys: list[Any]) -> list[tuple[Look, float]]:
    """Teachers and models in colours of their own, thick; students from dark (shallow) to light, dashed by init."""
    students = [key for key in keys if key[2] == "student"]
    depths = sorted({key[4] for key in students})
    kinds = sorted({(key[1], str(key[3])) for key in students})
    others = list(dict.fromkeys(_owner(key) for key in keys if key[2] != "student"))
    looks = []
    for key in keys:
        _, teacher, network, init, depth, _ = key
        if network == "student":
            place = kinds.index((teacher, str(init)))
            looks.append((Look(sequence(depths.index(depth), len(depths)).colour, category(place).dash, ""), 1.0))
        elif network.startswith(_FIRST):
            looks.append((Look(category(others.index(_owner(key))).colour, ":", ""), 1.2))
        else:
            looks.append((category(others.index(_owner(key))), 2.4))
    return looks


def _owner(key: Any) -> Any:
    """What has one colour: a kind of teacher, whatever run it is of; a language model."""
    run, teacher, network, *_ = key
    return run if network.startswith("model") else (teacher, network)


def _names(keys: list[Any]) -> list[str]:
    """Names of the lines; where two would be alike, with the end of the path of the run or model."""
    names = [_name(*key) for key in keys]
    for parts in (1, 2, 3):
        twice = {name for name in names if names.count(name) > 1}
        ends = ["/".join(Path(key[0]).parts[-parts:]) for key in keys]
        names = [f"{_name(*key)} ({end})" if name in twice else name for key, name, end in
                 zip(keys, names, ends, strict=True)]  # fmt: skip
    return names


def _name(run: str, teacher: str, network: str, init: str, depth: int, temperature: float | None) -> str:
    if network.startswith("model"):
        return f"{Path(run).name.removesuffix('.gguf')}, {depth} blocks{network.removeprefix('model')}"
    if network != "student":
        return f"{teacher} teacher, depth {depth}"
    hot = "" if temperature is None or temperature != temperature else f", T {temperature:g}"
    return f"{teacher}, {init} init, {depth}{hot}"
