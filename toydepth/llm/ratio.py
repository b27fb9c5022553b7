"""Means per token whose error takes documents as the units: tokens of one document are not independent."""

from __future__ import annotations

import numpy as np


class DocumentMeans:
    """Means over tokens of several quantities, with errors over documents, in constant memory.

    With x_d the sum of a quantity over the n_d tokens of document d, D documents and N = sum n_d:

        mean    R = sum_d x_d / N
        error   sqrt( D / (D - 1) * sum_d (x_d - R n_d)^2 ) / N

    Sums are kept of x_d less n_d times the mean of the first part, so that small errors of large means are not lost to
    rounding; how the documents were cut into parts changes nothing beyond it.

    Args:
        rows: quantities.

    Example:
        >>> means = DocumentMeans(1).add(np.array([[3.0, 1.0]]), np.array([2, 1])).add(np.array([[8.0]]), np.array([3]))
        >>> means.mean.tolist(), means.tokens, means.documents
        ([2.0], 6, 3)
        >>> means.error.round(4).tolist()  # residuals -1, -1, 2: sqrt(3/2 * 6) / 6
        [0.5]

    Source: the ratio estimator: Cochran, Sampling Techniques, 1977, chapter 6; the same as a cluster-robust error.
    """

    def __init__(self, rows: int):
        self.documents = self.tokens = 0
        self._origin: np.ndarray | None = None
        self._x, self._xx, self._xn, self._nn = np.zeros(rows), np.zeros(rows), np.zeros(rows), 0.0

    def add(self, sums: np.ndarray, tokens: np.ndarray) -> DocumentMeans:
        """Adds documents. Returns itself.

        Args:
            sums: (rows, documents), x_d.
            tokens: (documents,), n_d; a document without a token is none.
        """
        counted = tokens > 0
        n, x = tokens[counted].astype(float), sums[:, counted].astype(float)
        if not len(n):
            return self
        origin = x.sum(axis=1) / n.sum() if self._origin is None else self._origin
        self._origin, x = origin, x - origin[:, None] * n
        self._x += x.sum(axis=1)
        self._xx += (x**2).sum(axis=1)
        self._xn += (x * n).sum(axis=1)
        self._nn += float((n**2).sum())
        self.documents += len(n)
        self.tokens += int(tokens.sum())
        return self

    @property
    def mean(self) -> np.ndarray:
        """(rows,); NaN before any token."""
        if self._origin is None:
            return np.full(len(self._x), np.nan)
        return self._origin + self._x / self.tokens

    @property
    def error(self) -> np.ndarray:
        """Standard errors of the means (rows,); NaN below two documents."""
        if self.documents < 2:
            return np.full(len(self._x), np.nan)
        apart = self._x / self.tokens
        squares = np.maximum(self._xx - 2 * apart * self._xn + apart**2 * self._nn, 0.0)
        return np.sqrt(self.documents / (self.documents - 1) * squares) / self.tokens
