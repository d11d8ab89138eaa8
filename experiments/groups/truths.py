"""True effects of the simulated designs on groups and under rules, by quadrature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.stats import beta

# Effect along x1 with every other covariate averaged out, and the density of x1.
Curve = Callable[[float], float]
_WAVE = quad(lambda x: 3 * np.sin(4 * x), 0, 1)[0]


def first(x: float) -> float:
    """Return the effect of Dataset 1 at x1."""
    return float(np.exp(2 * x) + 3 * np.sin(4 * x))


def second(x: float) -> float:
    """Return the effect of Dataset 2 at x1, averaged over x2."""
    return float(np.exp(2 * x) + _WAVE)


def kinked(x: float) -> float:
    """Return the effect of the design with a kink at x1."""
    return 1 + 6 * max(x - 0.5, 0.0)


def flat(x: float) -> float:
    """Return the density of a uniform covariate."""
    return float(0 <= x <= 1)


def skewed(x: float) -> float:
    """Return the density of a covariate of the skewed design."""
    return float(beta.pdf(x, 2, 5))


def between(curve: Curve, density: Curve, low: float, high: float) -> tuple[float, float]:
    """Return the share of people with x1 between two numbers, and their share times their mean effect."""
    middle = [0.5] if low < 0.5 < high else None
    share = quad(density, low, high, points=middle)[0]
    return share, quad(lambda x: density(x) * curve(x), low, high, points=middle)[0]
