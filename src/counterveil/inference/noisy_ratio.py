"""A total over a size, both noisy: estimate and Fieller's interval, and the difference of two such ratios.

With T the released total, N the released size, r a value of the ratio, s_T and s_N standard deviations of their noise,
v the sampling variance of a row's part and z a normal quantile, the interval is the set (Fieller 1954)

    { r : (T - r N)^2 <= z^2 (N v + s_T^2 + r^2 s_N^2) },

the ratios that the two numbers do not contradict. No size is divided by, so that it stays right where the size is
hardly larger than its noise; where nothing is contradicted, it is the whole range of what is possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, inf, log, sqrt

from scipy.special import ndtri

from counterveil.inference.estimates import IndependentDifference, truncate, zou_donner
from counterveil.numerics.arrays import Ends


@dataclass(frozen=True, slots=True)
class NoisyRatio:
    """What is known about offset + total / size, where both numbers are noisy.

    Attributes
    ----------
    total : float
        Released sum.
    size : float
        Released number of rows, or size in a unit of its own.
    row_variance : float
        Sampling variance of each row's part of the sum.
    total_sd : float
        Standard deviation of the noise of `total`.
    size_sd : float
        Standard deviation of the noise of `size`.
    offset : float
        What is added to the ratio.
    extra : float
        Variance of other errors of the ratio.
    bias : float
        Bound of an error that no averaging removes.
    limit : float
        The ratio lies in [-limit, limit] for certain.
    heavy : bool
        Whether the noise is Laplace's.
    least : float
        A size is not taken for less: 1 where rows are counted, 0 for sizes in a unit of their own.
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
        ratio_sd = hypot(self.total_sd, (self.estimate - self.offset) * self.size_sd) / self._size
        return sqrt(ratio_sd**2 + self.extra)

    @property
    def _size(self) -> float:
        return max(self.size, self.size_sd, self.least)

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval that covers sampling error and noise together (Fieller).

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        normal = -float(ndtri((1 - level) / 2))
        # A normal plus a Laplace number is not beyond the root of both squared quantiles more often.
        noise = max(normal, -log(1 - level) / sqrt(2)) if self.heavy else normal
        size = self.size
        rest = (noise * self.size_sd) ** 2
        if size <= 0 or size**2 <= rest:
            return -self.limit, self.limit
        variance = (
            normal**2 * (size * self.row_variance + size**2 * self.extra) + (noise * self.total_sd) ** 2
        )
        lead = size**2 - rest
        middle = self.total * size / lead
        half = sqrt(max(middle**2 - (self.total**2 - variance) / lead, 0.0))
        low = self.offset + middle - half - self.bias
        high = self.offset + middle + half + self.bias
        return truncate((low, high), (-self.limit, self.limit))


@dataclass(frozen=True, slots=True)
class RatioDifference(IndependentDifference):
    """The difference of two independent noisy ratios.

    Attributes
    ----------
    one : NoisyRatio
        Ratio of the treated.
    other : NoisyRatio
        Ratio of the controls.
    """

    one: NoisyRatio
    other: NoisyRatio

    def interval(self, level: float) -> Ends:
        """Return the interval made of the two intervals by Zou and Donner's rule, each side by itself.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        treated = (self.one.estimate, self.one.interval(level))
        control = (self.other.estimate, self.other.interval(level))
        limit = self.one.limit + self.other.limit
        return truncate(zou_donner(treated, control), (-limit, limit))
