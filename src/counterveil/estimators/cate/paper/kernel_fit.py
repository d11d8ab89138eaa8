"""Gaussian kernel regression of the pseudo-outcomes, with what the paper leaves open as explicit choices.

All of it is computed with the kernel of height one. A kernel of height c has the squared norm |g|^2 / c for the
same function, so that its penalty is lambda / c here, and its Gaussian process is sqrt(c) times ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.cate.paper.learners import Function

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
