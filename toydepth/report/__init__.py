"""What a person looks at: figures of a run's curves and fits, and tables for the terminal.

    write_figures     curves and fits -> PNG and SVG files, and the reasons for what was not drawn
    exponent_table    fits -> a rich table; `print_table` adds its caveats and what could not be fitted

Nothing here fits or changes a number: what a figure says is what `toydepth.fit` found.
"""

from toydepth.report.figures import Figures, write_figures
from toydepth.report.terminal import exponent_table, print_table

__all__ = ["Figures", "exponent_table", "print_table", "write_figures"]
