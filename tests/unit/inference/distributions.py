"""Plain noise distributions for tests of inference, which must not need the mechanisms."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri


@dataclass(frozen=True)
class PlainLaplace:
    scale: float

    @property
    def variance(self):
        return 2 * self.scale**2

    def cdf(self, x):
        tail = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.where(x < 0, tail, 1 - tail)

    def quantile(self, p):
        return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p))) * self.scale

    def breakpoints(self, low, high, most):
        return np.array([0.0])

    def tail_with_normal(self, x, sd):
        """Closed form of P(N + X > x)."""
        sd = np.maximum(sd, 1e-9)
        r = sd / self.scale
        right = np.exp(r * r / 2 - x / self.scale + log_ndtr(x / sd - r))
        left = np.exp(r * r / 2 + x / self.scale + log_ndtr(-x / sd - r))
        return ndtr(-x / sd) + 0.5 * (right - left)


@dataclass(frozen=True)
class PlainNormal:
    scale: float

    @property
    def variance(self):
        return self.scale**2

    def tail_with_normal(self, x, sd):
        """Closed form of P(N + X > x)."""
        return ndtr(-x / np.hypot(sd, self.scale))

    def cdf(self, x):
        return ndtr(x / self.scale)

    def quantile(self, p):
        return ndtri(p) * self.scale

    def breakpoints(self, low, high, most):
        return np.array([])
