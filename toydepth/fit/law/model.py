"""A law on the rows of a table: ln L and its Jacobian, for many parameter vectors at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toydepth.fit.law.terms import Law

_LARGEST = 500.0  # of an exponent of e: far beyond any loss, and exp does not overflow


@dataclass(frozen=True, eq=False)
class Model:
    """ln L(theta) on fixed rows, theta = (a_1 ... a_K, free exponents, ln L0 where it is free).

    a_k = ln c_k - alpha_k ln g_k is the log of the term at the geometric mean g_k of its variable: units of the
    variables drop out, and coefficients and exponents are nearly independent.

    Attributes:
        law: what is fitted.
        log_x (K, n): ln(x_k / g_k). log_means (K,): ln g_k.
        mixing (K, F): alpha = mixing @ free + fixed, which shares and fixes exponents. fixed (K,).
    """

    law: Law
    log_x: np.ndarray
    log_means: np.ndarray
    mixing: np.ndarray
    fixed: np.ndarray

    @property
    def num_parameters(self) -> int:
        """How many numbers are fitted."""
        return len(self.law.parameters)

    @property
    def num_terms(self) -> int:
        """K."""
        return len(self.law.terms)

    def on(self, variables: dict[str, np.ndarray]) -> Model:
        """Returns the same law, with the same units inside, on other rows."""
        log_x = np.log(np.array([variables[name] for name in self.law.variables])) - self.log_means[:, None]
        return Model(self.law, log_x, self.log_means, self.mixing, self.fixed)

    def take(self, rows: np.ndarray) -> Model:
        """Returns the same law on some of the rows."""
        return Model(self.law, self.log_x[:, rows], self.log_means, self.mixing, self.fixed)

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (a (..., K), alpha (..., K), L0 (...)) of theta (..., p)."""
        terms, free = self.num_terms, self.mixing.shape[1]
        alpha = theta[..., terms : terms + free] @ self.mixing.T + self.fixed
        floor = self.law.irreducible_loss
        with np.errstate(over="ignore"):
            known = np.exp(theta[..., -1]) if floor is None else np.full(theta.shape[:-1], float(floor))
        return theta[..., :terms], alpha, known

    def terms(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the terms (..., K, n) and L0 (...) of theta (..., p)."""
        a, alpha, floor = self.split(theta)
        powers = a[..., None] - alpha[..., None] * self.log_x
        return np.exp(np.clip(powers, -_LARGEST, _LARGEST, out=powers), out=powers), floor

    def log_loss(self, theta: np.ndarray) -> np.ndarray:
        """Returns ln L (..., n)."""
        terms, floor = self.terms(theta)
        return np.log(terms.sum(axis=-2) + floor[..., None])

    def jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns ln L (..., n) and its derivatives (..., p, n), exact."""
        terms, floor = self.terms(theta)
        loss = terms.sum(axis=-2) + floor[..., None]
        derivatives = np.empty((*theta.shape[:-1], self.num_parameters, self.log_x.shape[-1]))
        first, free = self.num_terms, self.mixing.shape[1]
        shares = np.divide(terms, loss[..., None, :], out=derivatives[..., :first, :])
        for j in range(free):
            users = np.nonzero(self.mixing[:, j])[0]
            total = shares[..., users[0], :] * (-self.mixing[users[0], j] * self.log_x[users[0]])
            for k in users[1:]:
                total -= shares[..., k, :] * (self.mixing[k, j] * self.log_x[k])
            derivatives[..., first + j, :] = total
        if self.law.irreducible_loss is None:
            derivatives[..., -1, :] = floor[..., None] / loss
        return np.log(loss), derivatives

    def lift(self, theta: np.ndarray) -> np.ndarray:
        """Returns theta (..., p) in which every term, and L0, is a thousandth of the loss or more in some row.

        In logarithms what has vanished has no slope, and would never come back; a start must not lie there.
        """
        terms, floor = self.terms(theta)
        loss = np.maximum(terms.sum(axis=-2) + floor[..., None], 1e-300)
        shares = (terms / loss[..., None, :]).max(axis=-1)
        lifted = theta.copy()
        short = np.log(1e-3 / np.maximum(shares, 1e-300))
        lifted[..., : self.num_terms] += np.where(shares < 1e-6, short, 0.0)
        if self.law.irreducible_loss is None:
            share = (floor[..., None] / loss).max(axis=-1)
            lifted[..., -1] = np.where(share < 1e-6, np.log(1e-3 * loss.min(axis=-1)), theta[..., -1])
        return lifted

    def to_natural(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns (A, b): A @ theta + b = (ln c_1 ... ln c_K, free exponents, ln L0), in the units of the table."""
        size, terms, free = self.num_parameters, self.num_terms, self.mixing.shape[1]
        matrix = np.eye(size)
        matrix[:terms, terms : terms + free] = self.log_means[:, None] * self.mixing
        shift = np.zeros(size)
        shift[:terms] = self.log_means * self.fixed
        return matrix, shift


def make_model(law: Law, variables: dict[str, np.ndarray]) -> Model:
    """Puts a law on rows: variables maps each symbol to positive values (n,)."""
    log_x = np.log(np.array([variables[name] for name in law.variables], float))
    log_means = log_x.mean(axis=1)
    free = list(law.free_exponents)
    mixing = np.zeros((len(law.terms), len(free)))
    fixed = np.zeros(len(law.terms))
    for k, term in enumerate(law.terms):
        if term.exponent is None or isinstance(term.exponent, str):
            mixing[k, free.index(term.exponent or term.alpha)] = 1.0
        else:
            fixed[k] = term.exponent
    return Model(law, log_x - log_means[:, None], log_means, mixing, fixed)
