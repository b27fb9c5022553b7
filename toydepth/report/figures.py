"""Every figure of a set of runs, written into one folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from toydepth.fit import FitTable
from toydepth.report.curves_figure import draw_training_curves
from toydepth.report.depth_figure import draw_loss_against_depth
from toydepth.report.layout import MAX_PANELS, save
from toydepth.report.series import Series, collect_series
from toydepth.report.step_figure import draw_alpha_against_step
from toydepth.report.style import NotDrawn, figure_style
from toydepth.report.temperature_figure import draw_temperature

_DRAWINGS: dict[str, Callable[[list[Series]], Figure]] = {
    "loss_against_depth": draw_loss_against_depth,
    "alpha_against_step": draw_alpha_against_step,
    "training_curves": draw_training_curves,
    "temperature": draw_temperature,
}


@dataclass(frozen=True)
class Figures:
    """paths: the files written, a PNG and an SVG a figure; skipped: (name, reason) of what is not shown."""

    paths: list[Path]
    skipped: list[tuple[str, str]]


def write_figures(curves: pd.DataFrame, table: FitTable | None, folder: str | Path) -> Figures:
    """Writes the figures of one or many runs as PNG (150 dpi) and SVG; the same input gives the same bytes.

    loss_against_depth: last losses and the fitted power law, with local slopes below. alpha_against_step: the exponent
    along training. training_curves: test loss against step, a line a depth. temperature: the last exponent against
    temperature, where there are several. Averaged weights are shown where there are any, else the raw ones.

    Args:
        curves: a row an arm and evaluation, as for `toydepth.fit.fit_curves`.
        table: the fits of these curves; None where nothing could be fitted.
        folder: made where it does not exist; figures of the same name are replaced, or removed where they are
            skipped now.

    Returns:
        Figures: the files, and a reason for each figure, or part of one, that could not be drawn.

    Raises:
        InputError: for a table of curves without rows or without the columns needed.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> labels = dict(experiment="demo", teacher="tied", rho=float("nan"), init="zero", block="euler", loss="mse",
        ...               temperature=float("nan"), head="none", width=8, teacher_depth=64, recipe="a", teacher_seed=0,
        ...               replicate=0, test_loss_average=float("nan"), average_decay=float("nan"), noise_floor=0.0,
        ...               diverged=False)
        >>> curves = pd.DataFrame([dict(labels, depth=6, step=step, test_loss=1 / step) for step in (1, 10)])
        >>> with TemporaryDirectory() as folder:
        ...     figures = write_figures(curves, None, folder)
        >>> [path.name for path in figures.paths]
        ['training_curves.png', 'training_curves.svg']
        >>> figures.skipped[0]
        ('loss_against_depth', 'no group of arms could be fitted')

    Source: the kinds of figure of Liu et al., arXiv 2602.05970, figures 3 to 5; the intervals are ours.
    """
    series = collect_series(curves, table)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    skipped: list[tuple[str, str]] = []
    with figure_style():
        for name, draw in _DRAWINGS.items():
            try:
                paths += save(draw(series), target, name)
            except NotDrawn as reason:
                skipped.append((name, _explain(str(reason), table)))
                # One left from other curves would pass for one of these.
                for kind in ("png", "svg"):
                    (target / f"{name}.{kind}").unlink(missing_ok=True)
                continue
            count = count_panels(name, series)
            if count > MAX_PANELS:
                hidden = (
                    f"{count - MAX_PANELS} of {count} panels {'is' if count == MAX_PANELS + 1 else 'are'} not shown"
                )
                skipped.append((name, f"{hidden}: give fewer groups"))
    return Figures(paths, skipped)


def count_panels(name: str, series: list[Series]) -> int:
    """Returns how many panels a figure would need to show every group."""
    if name == "loss_against_depth":
        return len({one.family for one in series if one.trajectory})
    return len(series) if name == "training_curves" else 1


def _explain(reason: str, table: FitTable | None) -> str:
    """Adds why the fits were refused, where that is the cause."""
    if table and not table.trajectories and table.refused and "fitted" in reason:
        return f"{reason}: {table.refused[0]['reason']}"
    return reason
