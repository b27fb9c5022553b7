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
_MOST_LEGEND = 30  # lines: more would be a page of names; colours and dashes say the rest


def write_hidden_figure(table: pd.DataFrame, folder: str | Path) -> Figures:
    """Writes hidden_states.png and .svg: four panels, a line a network; replicates of a run are averaged.

    Teachers are thick; students of one init share a kind of line, darker where they are shallower. A dotted line marks
    pi/2 in the panel of updates.

    Args:
        table: of `toydepth.states.states_of_run`, of one or many runs.
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
    looks = _looks([group[0][1:] for group in groups])
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
    """Teachers in colours of their own, thick; students from dark (shallow) to light, dashed by init."""
    depths = sorted({key[3] for key in keys if key[1] == "student"})
    kinds = sorted({(key[0], str(key[2])) for key in keys if key[1] == "student"})
    others = list(dict.fromkeys(key[:2] for key in keys if key[1] != "student"))
    looks = []
    for teacher, network, init, depth, _ in keys:
        if network != "student":
            looks.append((category(others.index((teacher, network))), 2.4))
        else:
            place = kinds.index((teacher, str(init)))
            looks.append((Look(sequence(depths.index(depth), len(depths)).colour, category(place).dash, ""), 1.0))
    return looks


def _names(keys: list[Any]) -> list[str]:
    """Names of the lines; where two would be alike, with the last part of the run's folder."""
    names = [_name(key[1:]) for key in keys]
    twice = {name for name in names if names.count(name) > 1}
    return [f"{name} ({Path(key[0]).name})" if name in twice else name for key, name in zip(keys, names, strict=True)]


def _name(key: Any) -> str:
    teacher, network, init, depth, temperature = key
    if network != "student":
        return f"{teacher} teacher, depth {depth}" if network == "teacher" else f"{network}, depth {depth}"
    hot = "" if temperature is None or temperature != temperature else f", T {temperature:g}"
    return f"{teacher}, {init} init, {depth}{hot}"
