"""The minimum of an objective: the search for it, and the covariance of the parameters there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toydepth.fit.law.solve import Problem, solve
from toydepth.fit.law.starts import spread_starts

_SEARCH_ROWS = 4000  # more do not change where the valleys are, only where exactly their floors lie
_MOST_CONDITION = 1e8  # of the derivatives: beyond it nothing is left
_ROUNDING = 1e-10  # of a loss: differences below it are no evidence
_SAME = 1e-6  # two minima whose objectives differ by less of it are one


@dataclass(frozen=True, eq=False)
class Estimate:
    """The best minimum found.

    Attributes:
        problem: model, objective, losses. weights (n,). groups (n,): codes of clusters, or None.
        theta (p,): the model's own parameters. value: the objective there, a sum over rows.
        num_starts, share_agreeing: of the starts, those that ended within a millionth of the best minimum.
        search_rows: of which the starts were run; the best were then taken on to all rows.
        converged: whether the last steps changed nothing.
    """

    problem: Problem
    weights: np.ndarray
    groups: np.ndarray | None
    theta: np.ndarray
    value: float
    num_starts: int
    share_agreeing: float
    search_rows: int
    converged: bool

    @property
    def num_rows(self) -> int:
        """How many rows were used."""
        return self.problem.log_loss.size

    @property
    def degrees(self) -> int:
        """Rows less parameters."""
        return self.num_rows - self.theta.size

    @property
    def num_independent(self) -> int:
        """How many things were measured apart from each other: groups, where there are, else rows."""
        return self.num_rows if self.groups is None else int(np.unique(self.groups).size)

    @property
    def interval_degrees(self) -> int:
        """Degrees of freedom of Student's t in intervals: independent things less parameters, at least 1."""
        return max(self.num_independent - self.theta.size, 1)

    @cached_property
    def residuals(self) -> np.ndarray:
        """Of what the objective is of, ln L or L, (n,)."""
        return self.problem.residuals(self.theta)

    @property
    def residual_std(self) -> float:
        """Of the residuals, with n - p degrees of freedom."""
        return float(np.sqrt(np.sum(self.weights * self.residuals**2) / max(self.degrees, 1)))

    @property
    def log_residuals(self) -> np.ndarray:
        """Of ln L, whatever the objective is of, (n,)."""
        return self.problem.log_loss - self.problem.model.log_loss(self.theta)

    @property
    def log_residual_std(self) -> float:
        """Of these, with n - p degrees of freedom."""
        return float(np.sqrt(np.sum(self.weights * self.log_residuals**2) / max(self.degrees, 1)))

    @cached_property
    def jacobian(self) -> np.ndarray:
        """Derivatives of what is fitted in the model's own parameters, (n, p)."""
        return self.problem.residuals_and_jacobian(self.theta)[1].T

    @cached_property
    def noise(self) -> float:
        """E[psi^2] / E[rho''] in the units of the objective: 2 sigma^2 for least squares, with n - p degrees."""
        psi, kappa = self.problem.objective.derivatives(self.residuals, self.weights)
        variance = float(np.sum(self.weights * psi**2)) / max(self.degrees, 1)
        # Rounding is noise too: without any other, tests would compare nothing with nothing.
        unit = 1.0 if self.problem.objective.of_log else float(np.exp(self.problem.log_loss.mean()))
        return max(variance, float(np.mean(kappa * unit) * _ROUNDING) ** 2) / self.curvature

    @cached_property
    def curvature(self) -> float:
        """E[rho''], the mean curvature of the objective's loss at the residuals; 2 for least squares."""
        return max(self.problem.objective.mean_curvature(self.residuals, self.weights), 1e-300)

    @property
    def noise_variance(self) -> float:
        """sigma^2 of one row of weight 1, as in the covariance: E[psi^2] / E[rho'']^2, for least squares s^2."""
        return self.noise / self.curvature

    def delta_chi2(self, value: np.ndarray | float) -> np.ndarray | float:
        """Returns how much worse another value of the objective is, as a chi^2: 0 at the minimum.

        2 (value - minimum) E[rho''] / E[psi^2]; for least squares (value - minimum) / s^2, s^2 the residual variance
        with n - p degrees of freedom; for Student's t twice the difference of log likelihoods.

        Source: Schrader and Hettmansperger, Biometrika 1980, for M estimators.
        """
        if self.problem.objective.kind == "student":
            # The scale is that of the residuals, which are smaller than errors: as if n - p rows had been seen.
            return 2 * (value - self.value) * max(self.degrees, 1) / self.num_rows
        return 2 * (value - self.value) / max(self.noise, 1e-300)

    @cached_property
    def own_covariance(self) -> np.ndarray:
        """The covariance of theta, (p, p); of clusters, where there are groups: residuals of one may go together.

        E[psi^2] / E[rho'']^2 (J^T W J)^-1, for least squares s^2 (J^T W J)^-1; with groups the sandwich over clusters.
        A direction that no row sees has an infinite variance.
        """
        if self.groups is None:
            return self._rows_covariance
        jacobian, weights = self.jacobian, self.weights
        inverse = _invert(jacobian.T @ (weights[:, None] * jacobian))
        psi, _ = self.problem.objective.derivatives(self.residuals, weights)
        count = int(self.groups.max()) + 1
        scores = np.zeros((count, self.theta.size))
        np.add.at(scores, self.groups, jacobian * (weights * psi)[:, None])
        rows, size = self.num_rows, self.theta.size
        small = count / max(count - 1, 1) * (rows - 1) / max(rows - size, 1)
        return small * inverse @ (scores.T @ scores) @ inverse / self.curvature**2

    @cached_property
    def _rows_covariance(self) -> np.ndarray:
        inverse = _invert(self.jacobian.T @ (self.weights[:, None] * self.jacobian))
        return self.noise_variance * inverse

    @cached_property
    def inflation(self) -> np.ndarray:
        """By what factor groups change the variance of each natural parameter, (p,); 1 without groups."""
        if self.groups is None:
            return np.ones(self.theta.size)
        matrix, _ = self.problem.model.to_natural()
        alone = np.diag(matrix @ self._rows_covariance @ matrix.T)
        return np.maximum(np.diag(self.covariance), 1e-300) / np.maximum(alone, 1e-300)

    @cached_property
    def ridge(self) -> np.ndarray:
        """As the covariance of independent rows, (p, p), but with no variance above 4: whither to move, and how far."""
        jacobian = self.jacobian
        known = (self.curvature / max(self.noise, 1e-300)) * (jacobian.T @ (self.weights[:, None] * jacobian))
        return _invert(known + np.eye(len(known)) / 4)

    @cached_property
    def natural(self) -> np.ndarray:
        """(ln c ..., free exponents ..., ln L0), in the units of the table, (p,)."""
        matrix, shift = self.problem.model.to_natural()
        return matrix @ self.theta + shift

    @cached_property
    def covariance(self) -> np.ndarray:
        """The covariance of `natural`, (p, p)."""
        matrix, _ = self.problem.model.to_natural()
        return matrix @ self.own_covariance @ matrix.T

    @cached_property
    def condition(self) -> float:
        """Condition number of the derivatives, each parameter's scaled to length 1."""
        scaled = self.jacobian * np.sqrt(self.weights)[:, None]
        lengths = np.linalg.norm(scaled, axis=0)
        if not np.all(lengths > 0):
            return np.inf
        values = np.linalg.svd(scaled / lengths, compute_uv=False)
        return float(values[0] / values[-1]) if values[-1] > 0 else np.inf

    @property
    def determined(self) -> bool:
        """Whether the rows determine the law: whether there is a covariance to speak of."""
        return bool(self.condition < _MOST_CONDITION)


def find_minimum(
    problem: Problem,
    weights: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    num_starts: int = 64,
    seed: int = 0,
    also: np.ndarray | None = None,
) -> Estimate:
    """Searches from many starts, spread by design, and keeps the best minimum.

    Of a large table the starts see 4000 rows, evenly spread over the order of the losses; what they find is
    then taken on to all rows, the best few of them.

    Args:
        problem: what is made small.
        weights: of rows (n,).
        groups: kept for the covariance.
        num_starts: of the search.
        seed: of their spread.
        also: more starts (k, p), of a neighbouring fit for example.
    """
    if groups is not None:  # some of the rows may have gone, and their groups with them
        groups = np.unique(groups, return_inverse=True)[1]
    starts = spread_starts(problem.model, problem.log_loss, num_starts, seed)
    if also is not None:
        starts = np.concatenate([also, starts])
    rows = problem.log_loss.size
    if rows > _SEARCH_ROWS:
        order = np.argsort(problem.log_loss, kind="stable")
        chosen = np.sort(order[np.linspace(0, rows - 1, _SEARCH_ROWS).astype(int)])
        found = solve(problem.take(chosen), starts, weights[chosen])
        best = np.argsort(found.value, kind="stable")
        distinct = best[:1].tolist()
        for i in best[1:]:
            if found.value[i] - found.value[distinct[-1]] > _SAME * abs(found.value[i]) and len(distinct) < 3:
                distinct.append(int(i))
        final = solve(problem, found.theta[distinct], weights)
    else:
        found = final = solve(problem, starts, weights)
    lowest = found.value.min()
    rounding = weights.sum() * _ROUNDING**2  # sums of squares below it are all the same
    agreeing = np.mean(found.value - lowest <= np.maximum(_SAME * abs(lowest), rounding))
    winner = int(final.value.argmin())
    # A last run from the winner: the search may have stopped within its tolerance.
    last = solve(problem, final.theta[winner : winner + 1], weights, tolerance=1e-12)
    return Estimate(
        problem,
        weights,
        groups,
        last.theta[0],
        float(last.value[0]),
        len(starts),
        float(agreeing),
        min(rows, _SEARCH_ROWS),
        bool(last.converged[0]),
    )


def _invert(matrix: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric matrix, scaled first; what it cannot see gets a very large variance, not an error."""
    matrix = np.nan_to_num(matrix, posinf=1e150, neginf=-1e150)
    lengths = np.sqrt(np.diag(matrix))
    lengths = np.maximum(lengths, max(1e-12 * lengths.max(), 1e-150))
    values, vectors = np.linalg.eigh(matrix / np.outer(lengths, lengths))
    values = np.maximum(values, 1e-15 * values.max())
    return (vectors / values) @ vectors.T / np.outer(lengths, lengths)
