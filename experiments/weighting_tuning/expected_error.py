"""Expected errors of a noisy linear estimate in closed form, so that no comparison needs a draw.

An estimate off by b with noise Z of scale s has mean absolute error E|b + sZ| and root mean square
error sqrt(b^2 + s^2 Var Z). Everything is in units of the outcome's range.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from counterveil.mechanisms.staircase import least_variance_gamma


@cache
def _steps(epsilon: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends and heights of the staircase density's steps on the positive side, sensitivity one."""
    gamma = float(least_variance_gamma(Fraction(epsilon)))
    decay = math.exp(-epsilon)
    k = np.arange(int(60 / epsilon) + 5)
    top = (1 - decay) / (2 * (gamma + decay * (1 - gamma)))
    low, high = np.concatenate([k, k + gamma]), np.concatenate([k + gamma, k + 1.0])
    return low, high, top * np.concatenate([decay**k, decay ** (k + 1.0)])


def staircase_variance(epsilon: float) -> float:
    low, high, height = _steps(epsilon)
    return float(2 * (height * (high**3 - low**3) / 3).sum())


def staircase_absolute(bias: float, sensitivity: float, epsilon: float) -> float:
    low, high, height = _steps(epsilon)
    b = abs(bias) / sensitivity

    def integral(x):
        return x * np.abs(x) / 2

    pieces = integral(b + high) - integral(b + low) + integral(b - low) - integral(b - high)
    return sensitivity * float((height * pieces).sum())


def laplace_absolute(bias: float, scale: float) -> float:
    return abs(bias) + scale * math.exp(-abs(bias) / scale)


def two_laplace_absolute(bias: float, one: float, other: float) -> float:
    """The difference of two Laplace draws is a signed mixture of Laplace mechanisms of both scales."""
    if abs(one - other) < 1e-6 * one:
        other = one * (1 + 1e-4)
    mixed = one**2 * laplace_absolute(bias, one) - other**2 * laplace_absolute(bias, other)
    return mixed / (one**2 - other**2)
