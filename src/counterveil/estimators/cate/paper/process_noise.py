"""Gaussian process noise for one query after another: rows of a Cholesky factor that grows with the queries.

With L L' = K + J at the queries so far, a path of the process is L z for independent normals z. Asking in
whitened form, w = L^-1 g + s z, and answering L w is the same as adding s times the process to g: the noise of a
query is drawn given the noise of those before it, which is never told. J only adds variance. A query that was
asked before gets the same answer and no new row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.cate.paper.kernel_fit import Kernel

Floats = NDArray[np.float64]

# Variance that every query gets on top of the process, as a part of the process's own.
EXTRA_VARIANCE = 1e-9


class QueryPath:
    """The queries asked so far and the Cholesky factor of their covariance, one row a new query."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._points: list[Floats] = []
        self._rows: list[Floats] = []
        self._places: dict[bytes, int] = {}

    def ask(self, point: Floats) -> int:
        """Return the place of this query, which is a new one unless it was asked before."""
        key = np.ascontiguousarray(point, dtype=np.float64).tobytes()
        if key not in self._places:
            self._places[key] = len(self._points)
            self._rows.append(self._row(point))
            self._points.append(point)
        return self._places[key]

    def _row(self, point: Floats) -> Floats:
        if not self._points:
            return np.array([np.sqrt(1 + EXTRA_VARIANCE)])
        covariances = self._kernel.unit(np.array(self._points), point[None])[:, 0]
        row = np.empty(len(covariances) + 1)
        for place, before in enumerate(self._rows):
            row[place] = (covariances[place] - before[:place] @ row[:place]) / before[place]
        left = 1 - float(row[:-1] @ row[:-1])
        row[-1] = np.sqrt(max(left, 0.0) + EXTRA_VARIANCE)
        return row

    def factor(self) -> Floats:
        """Return the lower triangular factor of all queries so far."""
        full = np.zeros((len(self._rows), len(self._rows)))
        for place, row in enumerate(self._rows):
            full[place, : place + 1] = row
        return full


def batch_factor(kernel: Kernel, points: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the factor of the distinct points and the place of every point among them."""
    distinct, places = np.unique(points, axis=0, return_inverse=True)
    covariance = kernel.unit(distinct, distinct)
    covariance[np.diag_indices_from(covariance)] = 1 + EXTRA_VARIANCE
    factor: Floats = np.linalg.cholesky(covariance).astype(np.float64)
    return factor, places.reshape(-1).astype(np.intp)


def path_factor(kernel: Kernel, points: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the factor that grew with the queries in their order, and the place of every query."""
    path = QueryPath(kernel)
    places = [path.ask(point) for point in points]
    return path.factor(), np.array(places, dtype=np.intp)
