"""Gaussian kernel regression of the pseudo-outcomes, with what the paper leaves open as explicit choices.

All of it is computed with the kernel of height one. A kernel of height c has the squared norm |g|^2 / c for the
same function, so that its penalty is lambda / c here, and its Gaussian process is sqrt(c) times ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.published.cate_learners import Function

Floats = NDArray[np.float64]

UNIT, LEMMA, THEOREM = "unit", "lemma", "theorem"
LITERAL, ALPHA = "literal", "alpha"
# Keeps the normal equations of many close centres solvable; far below the noise of any fit.
_RIDGE = 1e-10


@dataclass(frozen=True, slots=True)
class Kernel:
    """exp(-|x - y|^2 / (2 h^2)) on q features, and the height by which the paper multiplies it."""

    bandwidth: float
    features: int
    height: float

    @classmethod
    def normalised(cls, bandwidth: float, features: int, normalisation: str) -> Kernel:
        """Return the kernel: height 1, (sqrt(2 pi) h)^-q as in Lemma 3, or 1/(sqrt(2 pi) h) as in Theorem 2."""
        power = {UNIT: 0, LEMMA: features, THEOREM: 1}[normalisation]
        return cls(bandwidth, features, (sqrt(2 * pi) * bandwidth) ** -power)

    def unit(self, first: Floats, second: Floats) -> Floats:
        """Return the matrix of the kernel of height one."""
        squares = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
        found: Floats = np.exp(-np.maximum(squares, 0.0) / (2 * self.bandwidth**2))
        return found


def literal_penalty(penalty: float, meaning: str, rows: int) -> float:
    """Return lambda beside the mean loss: as printed, or alpha / n where it is scikit-learn's alpha."""
    return penalty if meaning == LITERAL else penalty / rows


def published_scale(
    kernel: Kernel, lipschitz: float, penalty: float, rows: int, epsilon: float, delta: float
) -> float:
    """Return the factor of the Gaussian process in Theorem 2; the exponent q is the paper's."""
    volume = (sqrt(2 * pi) * kernel.bandwidth) ** kernel.features
    return 4 * lipschitz * sqrt(2 * log(2 / delta)) / (volume * penalty * rows * epsilon)


def fitted_kernel(
    kernel: Kernel, x: Floats, target: Floats, weights: Floats, penalty: float, centres: Floats | None
) -> Function:
    """Return the minimiser of mean(weights (target - g)^2) + penalty |g|^2, in the span of the centres if any."""
    strength = penalty / kernel.height * len(x)
    if centres is None:
        centres = x
        system = kernel.unit(x, x) + np.diag(strength / np.maximum(weights, np.finfo(float).tiny))
        solved = np.linalg.solve(system, target)
    else:
        cross = kernel.unit(x, centres)
        own = kernel.unit(centres, centres)
        system = cross.T @ (weights[:, None] * cross) + strength * own
        # The ridge is beside the size of the system, which is tiny or huge with the penalty.
        system[np.diag_indices_from(system)] += _RIDGE * float(np.trace(system)) / len(system)
        solved = np.linalg.solve(system, cross.T @ (weights * target))
    held = centres
    return lambda points: kernel.unit(points, held) @ solved


# Gaussian process noise for one query after another: rows of a Cholesky factor that grows with the queries.
#
# With L L' = K + J at the queries so far, a path of the process is L z for independent normals z. Asking in
# whitened form, w = L^-1 g + s z, and answering L w is the same as adding s times the process to g: the noise of a
# query is drawn given the noise of those before it, which is never told. J only adds variance. A query that was
# asked before gets the same answer and no new row.


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
