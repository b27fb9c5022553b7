"""Scaling laws: L = sum_k c_k / x_k^alpha_k + L0 on anybody's table.

    fit_law      a table and a law -> LawFit: values with intervals and verdicts, covariance, predictions, JSON
    Law, Term    what is fitted: terms, exponents free, fixed or shared
    Objective    what is made small: squares of ln L or L, Huber, Student's t

numpy, scipy and pandas only.
"""

from toydepth.fit.law.fitting import fit_law
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.objective import Objective
from toydepth.fit.law.parameter import Parameter
from toydepth.fit.law.table.choose import choose_rows
from toydepth.fit.law.table.reading import read_table
from toydepth.fit.law.table.rows import LeftOutRows, Rows
from toydepth.fit.law.terms import LAWS, Law, Term, make_law

__all__ = [
    "LAWS",
    "Law",
    "LawFit",
    "LeftOutRows",
    "Objective",
    "Parameter",
    "Rows",
    "Term",
    "choose_rows",
    "fit_law",
    "make_law",
    "read_table",
]
