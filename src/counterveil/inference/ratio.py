"""A total over a size, both noisy: estimate, Fieller's interval, and the difference of two of them.

The interval is the set of ratios that the two numbers do not contradict, so that it stays right where the size
is hardly larger than its noise; where nothing is contradicted, it is the whole range of what is possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, inf, log, sqrt

from scipy.special import ndtri

# Halvings of the range of exponents of a p-value.
_STEPS = 40


@dataclass(frozen=True, slots=True)
class NoisyRatio:
    """What is known about offset + total / size.

    `total` is a sum over `size` rows of variance `row_variance` each, `total_sd` and `size_sd` are standard
    deviations of noise, `extra` is the variance of other errors of the ratio and `bias` a bound on what no
    averaging removes. The ratio lies in [-limit, limit] for certain. `heavy` is for Laplace noise. A size is not taken
    for less than `least`: one where rows are counted, 0 for sizes in a unit of their own.
    """

    total: float
    size: float
    row_variance: float
    total_sd: float
    size_sd: float
    offset: float = 0.0
    extra: float = 0.0
    bias: float = 0.0
    limit: float = inf
    heavy: bool = False
    least: float = 1.0

    @property
    def estimate(self) -> float:
        """The ratio; a size that is lost in its noise is taken at one standard deviation of it."""
        return min(max(self.offset + self.total / self._size, -self.limit), self.limit)

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return sqrt(self.row_variance / self._size)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        own = hypot(self.total_sd, (self.estimate - self.offset) * self.size_sd) / self._size
        return sqrt(own**2 + self.extra)

    @property
    def _size(self) -> float:
        return max(self.size, self.size_sd, self.least)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the two ends of an interval that covers sampling error and noise together."""
        normal = -float(ndtri((1 - level) / 2))
        # A normal plus a Laplace number is not beyond the root of both squared quantiles more often.
        noise = max(normal, -log(1 - level) / sqrt(2)) if self.heavy else normal
        size = self.size
        rest = (noise * self.size_sd) ** 2
        if size <= 0 or size**2 <= rest:
            return -self.limit, self.limit
        known = normal**2 * (size * self.row_variance + size**2 * self.extra) + (noise * self.total_sd) ** 2
        lead = size**2 - rest
        middle = self.total * size / lead
        half = sqrt(max(middle**2 - (self.total**2 - known) / lead, 0.0))
        low, high = self.offset + middle - half - self.bias, self.offset + middle + half + self.bias
        # An interval beyond what is possible is the nearer end of it.
        return min(max(low, -self.limit), self.limit), max(min(high, self.limit), -self.limit)


@dataclass(frozen=True, slots=True)
class RatioDifference:
    """The difference of two independent noisy ratios."""

    one: NoisyRatio
    other: NoisyRatio

    @property
    def estimate(self) -> float:
        """One ratio minus the other."""
        return self.one.estimate - self.other.estimate

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return hypot(self.one.sampling_sd, self.other.sampling_sd)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return hypot(self.one.noise_sd, self.other.noise_sd)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval made of the two intervals by Zou and Donner's rule, each side by itself."""
        low, high = self.one.interval(level)
        least, most = self.other.interval(level)
        own, others = self.one.estimate, self.other.estimate
        limit = self.one.limit + self.other.limit
        return (
            max(own - others - hypot(own - low, most - others), -limit),
            min(own - others + hypot(high - own, others - least), limit),
        )


def p_value(interval: Callable[[float], tuple[float, float]], value: float = 0.0) -> float:
    """Return the least alpha at which `interval(1 - alpha)` leaves out `value`, from 1e-12 to 1."""

    def out(exponent: float) -> bool:
        low, high = interval(1 - 10.0**exponent)
        return not low <= value <= high

    least, most = -12.0, -1e-9
    if out(least):
        return float(10.0**least)
    if not out(most):
        return 1.0
    for _ in range(_STEPS):
        middle = (least + most) / 2
        least, most = (least, middle) if out(middle) else (middle, most)
    return float(10.0**most)
