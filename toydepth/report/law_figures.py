"""Figures of a fitted law: its residuals, what each term explains, and how sure each exponent is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from toydepth.fit.law import LawFit
from toydepth.report.figures import Figures
from toydepth.report.law_decomposition import draw_decomposition
from toydepth.report.law_profiles import draw_profiles
from toydepth.report.law_residuals import draw_residuals
from toydepth.report.layout import save
from toydepth.report.style import NotDrawn, figure_style


def write_law_figures(fit: LawFit, folder: str | Path) -> Figures:
    """Writes the figures of a fitted law as PNG (150 dpi) and SVG; the same fit gives the same bytes.

    law_residuals: residuals of ln L against the fitted loss and each variable. law_decomposition: the terms stacked
    along each variable, the others at their medians, with the rows moved there. law_profiles: how much worse the fit
    gets as an exponent, or L0, is held elsewhere. What the rows do not determine is grey or hatched, and says so.

    Args:
        fit: from `fit_law`.
        folder: made where it does not exist; figures of the same name are replaced.

    Returns:
        Figures: the files, and a reason for each figure that could not be drawn.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from toydepth.fit.law import fit_law
        >>> noise = np.exp(0.01 * np.cos(np.arange(8)))
        >>> table = {"m": 2.0 ** np.arange(8), "loss": (3 / 2.0 ** np.arange(8) + 2) * noise}
        >>> with TemporaryDirectory() as folder:
        ...     figures = write_law_figures(fit_law(table, columns={"m": "m"}), folder)
        >>> [path.name for path in figures.paths if path.suffix == ".png"]
        ['law_residuals.png', 'law_decomposition.png', 'law_profiles.png']

    Source: partial residuals, Ezekiel 1924; profiles, docs/notation.md.
    """
    return write_each(
        {"law_residuals": draw_residuals, "law_decomposition": draw_decomposition, "law_profiles": draw_profiles},
        fit,
        folder,
    )


def write_each(drawings: dict[str, Callable[[Any], Figure]], shown: Any, folder: str | Path) -> Figures:
    """Draws and saves each figure; one that has nothing to show goes to `skipped`, and its old files go."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    skipped: list[tuple[str, str]] = []
    with figure_style():
        for name, draw in drawings.items():
            try:
                paths += save(draw(shown), target, name)
            except NotDrawn as reason:
                skipped.append((name, str(reason)))
                for kind in ("png", "svg"):
                    (target / f"{name}.{kind}").unlink(missing_ok=True)
    return Figures(paths, skipped)
