"""Figure: what each term of a law explains, stacked along each variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from toydepth.fit.law import LawFit
from toydepth.report.law_panels import label_first, log_axis, panels, scatter, variable_label
from toydepth.report.style import category

_GRID = 200
_AREAS = (0, 1, 5, 6, 4, 3)  # colours that stay apart when pale; black does not
_HATCHES = ("////", "\\\\\\\\", "xxxx", "....")


def draw_decomposition(fit: LawFit) -> Figure:
    """The terms, stacked, along each variable; the others at their medians."""
    model, theta = fit.estimate.problem.model, fit.estimate.theta
    rows, names = fit.rows.variables, fit.law.variables
    terms, floor = model.terms(theta)
    loss = np.exp(fit.estimate.problem.log_loss)
    middle = {name: float(np.median(values)) for name, values in rows.items()}
    figure, axes = panels(len(names))
    lowest = highest = float(floor)
    for k, (ax, name) in enumerate(zip(axes, names, strict=True)):
        x = np.geomspace(rows[name].min(), rows[name].max() * (1 + 1e-9), _GRID)
        along = {other: np.full(_GRID, middle[other]) for other in names} | {name: x}
        parts, _ = model.on(along).terms(theta)
        # The own term on top, so that all below it is level.
        order = [*(j for j in range(len(names)) if j != k), k]
        bottom = np.full(_GRID, float(floor))
        level = float(floor)
        ax.fill_between(x, 0, bottom, linewidth=0, **_area(fit, "L0", None))
        for j in order:
            ax.fill_between(x, bottom, bottom + parts[j], linewidth=0, **_area(fit, f"c_{names[j]}", j))
            bottom = bottom + parts[j]
            level += float(parts[j][0]) if j != k else 0.0
        ax.plot(x, bottom, color="0.2", linewidth=0.9)
        # Each row as it would be with the others at their medians: what is left of its loss when they are taken off.
        moved = loss - float(floor) - (terms.sum(axis=0) - terms[k]) + level
        scatter(ax, rows[name], moved, s=5, color="black", alpha=0.5, zorder=3)
        lowest = min(lowest, float(moved.min()))
        highest = max(highest, float(moved.max()), float(bottom.max()))
        log_axis(ax, rows[name], variable_label(fit, name))
    # One axis for all, so that terms compare. Of L0 there is an end only, or it would press the terms into lines.
    air = 0.06 * (highest - lowest)
    foot = max(lowest - 2 * air, 0.0) if floor > 0 else 0.0
    axes[0].set_ylim(foot, highest + air)
    label_first(axes, "Loss")
    title = "other variables at their medians" if len(names) > 1 else None
    handles: list[Any] = [
        Patch(label=_verdict(fit, term.coefficient, f"term of {variable_label(fit, term.variable)}"),
              **_area(fit, f"c_{term.variable}", j))
        for j, term in enumerate(fit.law.terms)
    ][::-1]  # fmt: skip
    if floor > 0:
        handles.append(Patch(label=_verdict(fit, "L0", "L0 (axis cut)" if foot else "L0"), **_area(fit, "L0", None)))
    handles.append(
        Line2D(
            [],
            [],
            color="black",
            marker="o",
            markersize=2.5,
            linestyle="",
            label="rows, moved to the medians" if title else "rows",
        )
    )
    figure.legend(handles=handles, loc="outside upper left", ncols=2, title=title, alignment="left")
    return figure


def _area(fit: LawFit, name: str, index: int | None) -> dict[str, Any]:
    """The look of a term's area: its colour, or hatched grey where the rows do not determine it."""
    if _is_known(fit, name):
        return {"facecolor": "0.86" if index is None else _pale(index)}
    hatch = _HATCHES[-1 if index is None else index % (len(_HATCHES) - 1)]
    return {"facecolor": "0.96", "edgecolor": "0.62", "hatch": hatch}


def _verdict(fit: LawFit, name: str, words: str) -> str:
    return words if _is_known(fit, name) else f"{words}: not identified"


def _is_known(fit: LawFit, name: str) -> bool:
    """Whether the rows determine a coefficient, and the exponent of its term; or L0."""
    exponent = next((term.alpha for term in fit.law.terms if term.coefficient == name), name)
    return fit.parameters[name].identified and fit.parameters[exponent].identified


def _pale(index: int) -> tuple[float, float, float]:
    red, green, blue = to_rgb(category(_AREAS[index % len(_AREAS)]).colour)
    return 0.4 + 0.6 * red, 0.4 + 0.6 * green, 0.4 + 0.6 * blue
