"""Draws from the posterior of a law, and what is said of them: intervals, caveats, the report, JSON."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from toydepth.bayes.quality import judge_draws
from toydepth.fit.checks import plain
from toydepth.fit.law.law_fit import LawFit
from toydepth.fit.law.text import align, interval_text, significant


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws from the posterior of a law, and what they are worth.

    Attributes:
        fit: whose rows, likelihood and confidence these are.
        draws (k, p): of (ln c, free exponents, ln L0), in the units of the table; chain after chain.
        sigma (k,): the scale of the noise, of ln L (of L for a linear fit).
        group_std (k,): the standard deviation of the groups' intercepts, likewise; None without groups.
        r_hat, effective_sizes: {name: number} of every parameter, sigma and group_std; arXiv 1903.08008: r_hat of
            ranks, the worse of location and spread; sizes of the bulk or the tails, whichever is smaller.
        divergences: how many draws ended where the integrator broke down.
        prior_ratios: {name: posterior over prior standard deviation}, of ln c, exponents, ln L0, ln sigma, group_std;
            of c the larger of two: of ln c, and of the log of its term at the middle of the table.
        prior_decides: {name: why} of those that the prior decides.
        prior_scale, num_chains, num_warmup, seed: as given.
    """

    fit: LawFit
    draws: np.ndarray
    sigma: np.ndarray
    group_std: np.ndarray | None
    r_hat: dict[str, float]
    effective_sizes: dict[str, float]
    divergences: int
    prior_ratios: dict[str, float]
    prior_decides: dict[str, str]
    prior_scale: float
    num_chains: int
    num_warmup: int
    seed: int

    @property
    def verdict(self) -> str | None:
        """None, or why the draws are not to be used: then there is no interval."""
        return judge_draws(self.r_hat, self.effective_sizes, self.divergences)

    @property
    def reasons(self) -> dict[str, str]:
        """{name: why} of those without an interval even where the draws are good: the fit's reason, or the prior's."""
        both = {name: (self.fit.unidentified.get(name), self.prior_decides.get(name)) for name in self.r_hat}
        return {name: "; ".join(filter(None, why)) for name, why in both.items() if any(why)}

    @cached_property
    def quantiles(self) -> dict[str, tuple[float, float, float]]:
        """{name: (low, median, high)} of the draws, whatever they are worth: equal tails at the fit's confidence."""
        columns = dict(zip(self.fit.law.parameters, self.draws.T, strict=True))
        tail = (1 - self.fit.confidence) / 2
        found = {}
        for name, column in columns.items():
            ends = np.quantile(column, [tail, 0.5, 1 - tail])
            with np.errstate(over="ignore"):
                found[name] = np.exp(ends) if _is_logged(name) else ends
        for name, column in (("sigma", self.sigma), ("group_std", self.group_std)):
            if column is not None:
                found[name] = np.quantile(column, [tail, 0.5, 1 - tail])
        return {name: (float(q[0]), float(q[1]), float(q[2])) for name, q in found.items()}

    @property
    def intervals(self) -> dict[str, tuple[float, float] | None]:
        """{name: (low, high)}; None where there is a verdict against the draws, or a reason against the parameter."""
        lost = self.r_hat if self.verdict else self.reasons
        return {name: None if name in lost else (q[0], q[2]) for name, q in self.quantiles.items()}

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences for a report that shows these intervals beside others: what they rest on, and what is wrong."""
        made = f"the posterior takes {_likelihood(self.fit)}; prior: {self.prior}"
        if self.verdict:
            return made, f"the posterior: {self.verdict}"
        return made, *(f"the posterior of {name}: {why}" for name, why in self.prior_decides.items())

    @property
    def prior(self) -> str:
        """The prior in words."""
        floor = ", ln L0" if self.fit.law.irreducible_loss is None else ""
        of = "of ln L" if self.fit.estimate.problem.objective.of_log else "in units of the median loss"
        groups = "" if self.group_std is None else f"; group_std half-normal of scale 1 {of}"
        return (
            f"normal of standard deviation {self.prior_scale:g} for exponents (around 0.5), log terms at the middle of "
            f"the table{floor} (an even split of the median loss) and ln sigma (1 % of the loss){groups}"
        )

    def report(self, show_all: bool = False) -> str:
        """Returns the posterior as text; with show_all also numbers that are not to be used."""
        fit, verdict, reasons = self.fit, self.verdict, self.reasons
        texts = list(dict.fromkeys(reasons.values()))
        heads = ["", "median", f"{100 * fit.confidence:g} % posterior", "sd / prior sd", "r_hat", "ess", ""]
        table = [heads]
        for name, (low, median, high) in self.quantiles.items():
            hidden = not show_all and (verdict is not None or name in reasons)
            error = (high - low) / 4  # for the digits
            numbers = ["?", "-"] if hidden else [significant(median, error), interval_text((low, high), error)]
            note = f"not identified ({texts.index(reasons[name]) + 1})" if name in reasons else ""
            quality = [f"{self.r_hat[name]:.3f}", f"{self.effective_sizes[name]:.0f}"]
            table.append([name, *numbers, f"{self.prior_ratios[name]:.2g}", *quality, note])
        where = ", ".join(
            f"{name} = {fit.labels[name]}" + (f" - {fit.offsets[name]:g}" if fit.offsets.get(name) else "")
            for name in fit.law.variables
        )
        lines = [fit.law.formula(), f"  {where}", "", *align(table)]
        lines += [f"  ({i}) {text}" for i, text in enumerate(texts, start=1)]
        lines += ["", *([verdict] if verdict else []), f"likelihood: {_likelihood(fit)}", f"prior: {self.prior}"]
        lines.append(
            f"draws: {len(self.draws)} in {self.num_chains} chains after {self.num_warmup} steps of warm-up each; "
            f"divergences: {self.divergences}; rows: {fit.estimate.num_rows} of {fit.rows.total}"
        )
        return "\n".join(lines)

    def to_dict(self, show_all: bool = False) -> dict[str, Any]:
        """Returns the posterior for JSON, without the draws; numbers not to be used are None unless show_all."""
        parameters = {}
        for name, (low, median, high) in self.quantiles.items():
            shown = show_all or (self.verdict is None and name not in self.reasons)
            parameters[name] = {
                "median": median if shown else None,
                "low": low if shown else None,
                "high": high if shown else None,
                "reason": self.reasons.get(name),
                "prior_decides": name in self.prior_decides,
                "prior_ratio": self.prior_ratios[name],
                "r_hat": self.r_hat[name],
                "effective_size": self.effective_sizes[name],
            }
        return plain(
            {
                "schema": 1,
                "formula": self.fit.law.formula(),
                "parameters": parameters,
                "confidence": self.fit.confidence,
                "verdict": self.verdict,
                "divergences": self.divergences,
                "likelihood": _likelihood(self.fit),
                "prior": self.prior,
                "prior_scale": self.prior_scale,
                "num_draws": len(self.draws),
                "num_chains": self.num_chains,
                "num_warmup": self.num_warmup,
                "rows_used": self.fit.estimate.num_rows,
                "seed": self.seed,
            }
        )


def _likelihood(fit: LawFit) -> str:
    objective = fit.estimate.problem.objective
    of = "ln L" if objective.of_log else "L"
    kind = f"Student t of {objective.degrees:g} degrees" if objective.kind == "student" else "normal"
    weighted = ", rows to the power of their weights" if fit.rows.weights is not None else ""
    grouped = (
        f", an intercept for each of {len(np.unique(fit.rows.groups))} groups" if fit.rows.groups is not None else ""
    )
    return f"{of} {kind} around the law, of unknown scale{weighted}{grouped}"


def _is_logged(name: str) -> bool:
    return name == "L0" or name.startswith("c_")
