"""The options of `toydepth law`, in groups as its help shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns of the table are what.

    Args:
        width: Column of the width m.
        depth: Column of the depth ell, in residual blocks.
        data: Column of the tokens or samples D.
        parameters: Column of the parameters N, or `derived`: 12 m^2 ell from width and depth.
        tau: Column of the training time tau, the sum of learning rates.
        terms: More columns, each a term of its own, named as they are.
        loss: Column of the loss; positive.
        derive: New columns, e.g. "N = 12 * d_model**2 * n_layers".
        weights: Column of weights of the rows (inverse variances).
        groups: Column that tells which rows go together (the checkpoints of one run): intervals resample them whole.
        thousands: The separator in numbers such as 12,288.
    """

    width: str | None = None
    depth: str | None = None
    data: str | None = None
    parameters: str | None = None
    tau: str | None = None
    terms: tuple[str, ...] = ()
    loss: str = "loss"
    derive: tuple[str, ...] = ()
    weights: str | None = None
    groups: str | None = None
    thousands: str | None = None


@dataclass(frozen=True)
class TauOptions:
    """The training time tau from a learning rate, where the table has no column of it.

    Args:
        tau_rates: Column of the learning rate at each row's step; summed over the steps of each run.
        tau_schedule: Or a schedule: constant, linear, cosine, wsd (constant, then a line).
        step: Column of the step, for --tau-rates and --tau-schedule.
        run: Column that tells runs apart, for --tau-rates.
        peak: Largest learning rate of the schedule: a column or a number.
        total_steps: Length of the schedule: a column or a number.
        warmup_steps: Length of its warm-up: a column or a number.
        final_fraction: Learning rate at the end, as a part of the peak.
        decay_fraction: Part of the steps over which wsd falls.
    """

    tau_rates: str | None = None
    tau_schedule: Literal["constant", "linear", "cosine", "wsd"] | None = None
    step: str | None = None
    run: str | None = None
    peak: str | None = None
    total_steps: str | None = None
    warmup_steps: str = "0"
    final_fraction: float = 0.0
    decay_fraction: float | None = None


@dataclass(frozen=True)
class LawOptions:
    """The law and what is made small.

    Args:
        law: decomposed: every exponent free. universal: 1 for width and depth, 1/3 for data or tau. chinchilla: N and
            D.
        fix: Exponents, or L0, held at a number or shared: alpha_ell=1 alpha_m=alpha_D L0=0. `free` frees one.
        offset: Number subtracted from every depth (1: the first layer does not count).
        objective: Squared residual of ln L (log) or of L (linear), huber of ln L, or Student's t of ln L.
        delta: Where the huber loss turns from squares to absolute values, in ln L.
        degrees: Degrees of freedom of Student's t.
    """

    law: Literal["decomposed", "universal", "chinchilla"] = "decomposed"
    fix: tuple[str, ...] = ()
    offset: float = 0.0
    objective: Literal["log", "linear", "huber", "student"] = "log"
    delta: float = 1e-3
    degrees: float = 4.0


@dataclass(frozen=True)
class RowOptions:
    """Which rows are used. What is left out is counted and printed.

    Args:
        exclude_highest: How many of the highest losses to leave out.
        ties: With --exclude-highest K: below keeps losses strictly under the K-th highest; rank leaves out exactly K
            rows.
        query: A query of pandas on the columns, e.g. "split == 'train' and tokens > 1e9".
        duplicates: What becomes of rows that repeat another exactly.
    """

    exclude_highest: int = 0
    ties: Literal["below", "rank"] = "below"
    query: str | None = None
    duplicates: Literal["keep", "drop"] = "keep"


@dataclass(frozen=True)
class IntervalOptions:
    """Intervals and the search.

    Args:
        intervals: auto: profile, or bootstrap with groups or huber. all: every method side by side, nuts too where
            numpyro is installed (extra `bayes`).
        num_bootstrap: Number of resamples of the bootstrap.
        num_starts: Number of starts of the search for the minimum.
        confidence: Level of the intervals.
        seed: Seed of starts, resamples and simulation.
        show_all: Print numbers also for what the rows do not determine.
    """

    intervals: Literal["auto", "covariance", "profile", "bootstrap", "nuts", "all"] = "auto"
    num_bootstrap: int = 1000
    num_starts: int = 64
    confidence: float = 0.95
    seed: int = 0
    show_all: bool = False


@dataclass(frozen=True)
class QuestionOptions:
    """What else to ask of the law.

    Args:
        compare: Free against fixed exponents: AIC, BIC, hold-outs, lack of fit, a verdict.
        follow: What follows: best width to depth, compute-optimal N, D and L.
        cost: With --follow: the cost of a run, in N, D, m, ell, tau.
        budgets: With --follow: the costs at which to give the optimum.
        predict: The loss of a planned run, with its interval: "m=4096 ell=32 D=1e12"; several are separated by ;.
        plan: Which next runs would shrink the interval of this most: a parameter, m/ell, or "L(m=4096, ell=32,
            D=1e12)".
        multiverse: How the exponents change with exclusions, tie rule, offset, objective and fixed exponents.
        reference: Repeat a published procedure on the table: depth-paper (arXiv 2602.05970) or chinchilla-epoch
            (arXiv 2404.10102).
    """

    compare: bool = False
    follow: bool = False
    cost: str = "6*N*D"
    budgets: tuple[float, ...] = ()
    predict: str | None = None
    plan: str | None = None
    multiverse: bool = False
    reference: str | None = None


@dataclass(frozen=True)
class SimulateOptions:
    """A table from a law, instead of a law from a table.

    Args:
        simulate: File of a law: a fit.json, or {"terms": {"m": {"c": 40, "alpha": 1}}, "L0": 1.7} by hand.
        design: Table of the points; the loss is added to its columns.
        noise: Standard deviation of ln L, with --simulate.
    """

    simulate: str | None = None
    design: str | None = None
    noise: float = 0.0


@dataclass(frozen=True)
class OutputOptions:
    """What is written.

    Args:
        folder: Folder of fit.json and the figures; laws/<name of the table> if left out. Files there are replaced.
        output: New .csv file that --simulate writes; simulated.csv if left out.
        figures: Draw residuals, decomposition and profiles, or not.
        json: Print one object instead of text.
    """

    folder: str | None = None
    output: str | None = None
    figures: Literal["yes", "no"] = "yes"
    json: bool = False
