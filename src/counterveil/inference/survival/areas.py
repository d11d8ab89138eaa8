"""Restricted mean times free of the event, their difference and their ratio, with intervals.

    restricted mean = integral of S_a(t) from 0 to the last edge = sum_j w_j S_a(t_j),

the area under the curve S_a of arm a, in the unit of the times; w_j are weights of the integral. It is linear
in the curve, so that its sampling and noise variances are those of the curve's points with their covariances,
added up. A ratio goes by logarithms and the delta method. Bounds of bias within cells, and of what is left
open where a curve is lost in the noise, make intervals longer (Armstrong and Kolesar 2018). In: estimates and
variances from released curves; this is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, hypot, inf, log, sqrt

from counterveil.inference.biased_intervals import biased_half_width
from counterveil.inference.estimates import truncate
from counterveil.inference.p_values import p_value
from counterveil.inference.survival.interval_parts import joint_bias, quantiles
from counterveil.numerics.arrays import Ends


@dataclass(frozen=True, slots=True)
class Area:
    """The restricted mean time free of the event in one arm, or the difference of two.

    Attributes
    ----------
    estimate : float
        Restricted mean, in the unit of the data.
    middle : float
        Middle of what curves that were lost in the noise leave possible.
    variance : float
        Sampling variance.
    noise : float
        Variance of the privacy noise.
    limits : tuple of (float, float)
        What it can be at all.
    heavy : bool
        Whether the noise is Laplace's.
    slack : float
        How far it may lie to either side of `middle`, as curves were lost in the noise.
    bias : float
        How far it may be off as hazards change within cells.
    curvature : float
        How far it moves when curves are known at every other time only: about as far as their curvature can
        move it.
    steps : float
        How much more it is where curves fall at whole times only.
    """

    estimate: float
    middle: float
    variance: float
    noise: float
    limits: Ends
    heavy: bool
    slack: float = 0.0
    bias: float = 0.0
    curvature: float = 0.0
    steps: float = 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return sqrt(self.variance)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, and of where lost curves may be, evenly between their bounds."""
        return sqrt(self.noise + self.slack**2 / 3)

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval, truncated to what is possible.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        normal, heavy = quantiles(level, self.heavy)
        half = hypot(normal * self.sampling_sd, heavy * sqrt(self.noise))
        half = biased_half_width(half, self.bias + abs(self.curvature), level) + self.slack
        low = self.middle - half + min(self.steps, 0.0)
        high = self.middle + half + max(self.steps, 0.0)
        return truncate((low, high), self.limits)


@dataclass(frozen=True, slots=True)
class AreaRatio:
    """The ratio of two restricted means, treated over control.

    Attributes
    ----------
    one : Area
        Restricted mean of the treated.
    other : Area
        Restricted mean of the controls.
    shared : float
        Covariance of their noise.

    Notes
    -----
    The interval is log r -+ h on the scale of logarithms, by the delta method; where a mean is lost in the
    noise, it is all that the intervals of both means leave possible.
    """

    one: Area
    other: Area
    shared: float = 0.0

    @property
    def estimate(self) -> float:
        """Mean of the treated over that of the controls; infinite where the latter is not above 0."""
        return max(self.one.estimate, 0.0) / self.other.estimate if self.other.estimate > 0 else inf

    @property
    def known(self) -> bool:
        """Whether both means are above 0."""
        return self.one.estimate > 0 and self.other.estimate > 0

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal means, noise included."""
        return p_value(self.interval, 1.0)

    @property
    def _relative(self) -> tuple[float, float]:
        """Standard deviations of the logarithm of the ratio, from sampling and from noise."""
        first = self.one
        second = self.other
        noise = (first.noise_sd / first.estimate) ** 2 + (second.noise_sd / second.estimate) ** 2
        noise -= 2 * self.shared / (first.estimate * second.estimate)
        sampling = hypot(first.sampling_sd / first.estimate, second.sampling_sd / second.estimate)
        return sampling, sqrt(max(noise, 0.0))

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error of the ratio."""
        return self.estimate * self._relative[0] if self.known else inf

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise of the ratio."""
        return self.estimate * self._relative[1] if self.known else inf

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self.one.interval(level)
        least, most = self.other.interval(level)
        widest = (low / most if most > 0 else 0.0, high / least if least > 0 else inf)
        if not self.known or self.one.slack or self.other.slack:
            return widest
        normal, heavy = quantiles(level, self.one.heavy or self.other.heavy)
        sampling, noise = self._relative
        treated = self.one
        control = self.other
        bias = joint_bias(treated.bias / treated.estimate, control.bias / control.estimate)
        bias += abs(treated.curvature / treated.estimate - control.curvature / control.estimate)
        bias += abs(treated.steps / treated.estimate - control.steps / control.estimate)
        half = biased_half_width(hypot(normal * sampling, heavy * noise), bias, level)
        middle = log(self.estimate)
        return max(exp(middle - half), widest[0]), min(exp(middle + half), widest[1])
