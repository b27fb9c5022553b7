"""Every figure of gradient transport, written into one folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from toydepth.report.figures import Figures
from toydepth.report.transport_association_figure import write_transport_association_figure
from toydepth.report.transport_compressibility_figure import write_transport_compressibility_figure
from toydepth.report.transport_exponents_figure import write_transport_exponents_figure
from toydepth.report.transport_nulls_figure import write_transport_nulls_figure
from toydepth.report.transport_sensitivity_figure import write_transport_sensitivity_figure
from toydepth.report.transport_sizes_figure import write_transport_sizes_figure


def write_transport_figures(
    tables: Mapping[str, pd.DataFrame], folder: str | Path, confidence: float = 0.95
) -> Figures:
    """Writes the figures of a study as PNG (150 dpi) and SVG; the same tables give the same bytes.

    Args:
        tables: cascades of `measure_study`, exponents, effects, association, and sensitivity where it was measured;
            without it an old figure of that name is removed.
        folder: made where it does not exist.
        confidence: that of the intervals in the tables.

    Returns:
        Figures: the files, and a reason for each figure, or part of one, that could not be drawn.

    Source: the figures are listed with the functions that draw them.
    """
    exponents = tables["exponents"]
    written = [
        write_transport_exponents_figure(exponents, folder, confidence),
        write_transport_sizes_figure(tables["cascades"], exponents, folder),
        write_transport_compressibility_figure(exponents, folder),
        write_transport_nulls_figure(exponents, tables["effects"], folder, confidence),
        write_transport_association_figure(tables["association"], folder, confidence),
    ]
    asked = tables.get("sensitivity")
    last = write_transport_sensitivity_figure(pd.DataFrame() if asked is None else asked, folder, confidence)
    # What was not asked for is not missing.
    written += [] if asked is None else [last]
    return Figures([path for one in written for path in one.paths], [gap for one in written for gap in one.skipped])
