"""What survival curves say: at a time, between arms, as restricted means, each with an interval.

The interval of a probability is Wilson's at the effective number of people (Rothman 1978), with the variance of the
noise added, so that it holds for few events and for estimates that noise moved beyond 0 or 1. A difference takes both
arms' intervals (Zou and Donner 2008). Where a curve is lost in the noise, it may be anywhere between 0 and its last
known upper end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, hypot, inf, log, sqrt

import numpy as np
from scipy.special import ndtr, ndtri

from counterveil.inference.ratio import p_value
from counterveil.inference.survival_curves import Curves
from counterveil.inference.uncertainty import simultaneous
from counterveil.numerics.arrays import Floats

Ends = tuple[float, float]


def quantiles(level: float, heavy: bool) -> tuple[float, float]:
    """Return how many standard deviations of sampling error and of noise an interval takes.

    Laplace noise is taken at the quantile of one draw; a normal plus a Laplace number is not beyond the root of both
    squares more often.
    """
    normal = -float(ndtri((1 - level) / 2))
    return normal, max(normal, -log(1 - level) / sqrt(2)) if heavy else normal


@dataclass(frozen=True, slots=True)
class Probability:
    """The probability of being free of the event at one time in one arm.

    `size` is the number of people that sampling error is worth. Where the curve was lost in the noise before, `middle`
    is where it was last known, `slack` how far it may have fallen since, and `estimate` the likeliest place between.
    """

    estimate: float
    middle: float
    variance: float
    noise: float
    size: float
    heavy: bool
    slack: float = 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return sqrt(self.variance)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, and of where a lost curve may be, evenly between its bounds."""
        return sqrt(self.noise + self.slack**2 / 12)

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval, cut to probabilities."""
        low, high = self.uncut(level)
        return min(max(low - self.slack, 0.0), 1.0), min(max(high, 0.0), 1.0)

    def uncut(self, level: float) -> Ends:
        """Return the two ends around where the curve was last known, which noise may have moved beyond 0 or 1."""
        normal, heavy = quantiles(level, self.heavy)
        per = normal**2 / self.size
        lead, half = 1 + per, self.middle + per / 2
        root = sqrt(max(half**2 - lead * (self.middle**2 - heavy**2 * self.noise), 0.0))
        return (half - root) / lead, (half + root) / lead


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference of two probabilities; `shared` is the covariance of their noise."""

    one: Probability
    other: Probability
    shared: float

    @property
    def estimate(self) -> float:
        """One probability minus the other."""
        return self.one.estimate - self.other.estimate

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return hypot(self.one.sampling_sd, self.other.sampling_sd)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return sqrt(max(self.one.noise_sd**2 + self.other.noise_sd**2 - 2 * self.shared, 0.0))

    @property
    def _correlation(self) -> float:
        """The correlation of both errors, sampling error and noise together."""
        sizes = [hypot(each.sampling_sd, each.noise_sd) for each in (self.one, self.other)]
        product = sizes[0] * sizes[1]
        return self.shared / product if product > 0 else 0.0

    def interval(self, level: float) -> Ends:
        """Return the two ends; all that both arms' intervals leave possible where one is lost in the noise."""
        if self.one.slack or self.other.slack:
            (low, high), (least, most) = self.one.interval(level), self.other.interval(level)
            return low - most, high - least
        (low, high), (least, most) = self.one.uncut(level), self.other.uncut(level)
        own, others = self.one.middle, self.other.middle
        down = _joined(own - low, most - others, self._correlation)
        up = _joined(high - own, others - least, self._correlation)
        ends = (own - others - down, own - others + up)
        return min(max(ends[0], -1.0), 1.0), max(min(ends[1], 1.0), -1.0)


def _joined(one: float, other: float, correlation: float) -> float:
    return sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))


@dataclass(frozen=True, slots=True)
class Area:
    """The restricted mean time free of the event in one arm, or the difference of two.

    `slack` is how far it may lie to either side of the `middle`, as curves were lost in the noise.
    """

    estimate: float
    middle: float
    variance: float
    noise: float
    limits: Ends
    heavy: bool
    slack: float = 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return sqrt(self.variance)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, and of where lost curves may be, evenly between their bounds."""
        return sqrt(self.noise + self.slack**2 / 3)

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval, cut to what is possible."""
        normal, heavy = quantiles(level, self.heavy)
        half = hypot(normal * self.sampling_sd, heavy * sqrt(self.noise)) + self.slack
        least, most = self.limits
        low, high = self.middle - half, self.middle + half
        return min(max(low, least), most), max(min(high, most), least)


@dataclass(frozen=True, slots=True)
class AreaRatio:
    """The ratio of two restricted means, on the scale of logarithms; `shared` is the covariance of their noise."""

    one: Area
    other: Area
    shared: float = 0.0

    @property
    def estimate(self) -> float:
        """One mean over the other; infinite where the other is not above 0."""
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
        one, other = self.one, self.other
        noise = (one.noise_sd / one.estimate) ** 2 + (other.noise_sd / other.estimate) ** 2
        noise -= 2 * self.shared / (one.estimate * other.estimate)
        sampling = hypot(one.sampling_sd / one.estimate, other.sampling_sd / other.estimate)
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
        """Return the two ends; where a mean is lost in the noise, all that both intervals leave possible."""
        (low, high), (least, most) = self.one.interval(level), self.other.interval(level)
        widest = (low / most if most > 0 else 0.0, high / least if least > 0 else inf)
        if not self.known or self.one.slack or self.other.slack:
            return widest
        normal, heavy = quantiles(level, self.one.heavy or self.other.heavy)
        sampling, noise = self._relative
        half = hypot(normal * sampling, heavy * noise)
        middle = log(self.estimate)
        return max(exp(middle - half), widest[0]), min(exp(middle + half), widest[1])


@dataclass(frozen=True, slots=True)
class SurvivalAnswers:
    """Everything that is read off two curves; `edges` are time 0 and the ends of all cells, control comes first."""

    curves: Curves
    edges: Floats
    convention: str
    heavy: bool

    def at(self, arm: int, place: int) -> Probability:
        """Return the probability of one arm at the end of a cell, by its place; time 0 has place 0."""
        curves = self.curves
        own = (float(curves.shown[arm, place]), float(curves.survival[arm, place]))
        variance = float(curves.sampling[arm, place, place])
        noise = max(float(curves.noise[arm, place, arm, place]), 0.0)
        slack = float(curves.slack[arm, place])
        return Probability(*own, variance, noise, self._size(arm, place), self.heavy, slack)

    def _size(self, arm: int, place: int) -> float:
        """Return the number of people without censoring whose share would err as much.

        It lies between what those under observation last and all of them are worth.
        """
        people = np.maximum(self.curves.worth[arm, : max(place, 1)], 1.0)
        own = float(np.clip(self.curves.survival[arm, place], 0.0, 1.0))
        variance = float(self.curves.sampling[arm, place, place])
        found = own * (1 - own) / variance if variance > 0 else inf
        return float(np.clip(found, people.min(), people[0]))

    def gap(self, place: int) -> Gap:
        """Return the difference of treated and control at the end of a cell."""
        return Gap(self.at(1, place), self.at(0, place), float(self.curves.noise[0, place, 1, place]))

    @property
    def _weights(self) -> Floats:
        """The weights (J + 1,) that a restricted mean gives to the curve."""
        lengths, found = np.diff(self.edges), np.zeros(len(self.edges))
        later = 0.0 if self.convention == "end" else 0.5
        found[:-1] += (1 - later) * lengths
        found[1:] += later * lengths
        return found

    def area(self, arm: int) -> Area:
        """Return the restricted mean of one arm."""
        weights = self._weights
        variance = float(weights @ self.curves.sampling[arm] @ weights)
        noise = max(float(weights @ self.curves.noise[arm, :, arm] @ weights), 0.0)
        rest = float(weights @ self.curves.slack[arm]) / 2
        estimate, middle = float(weights @ self.curves.shown[arm]), float(weights @ self.curves.survival[arm])
        return Area(estimate, middle - rest, variance, noise, (0.0, float(self.edges[-1])), self.heavy, rest)

    def area_gap(self) -> Area:
        """Return the difference of the restricted means, treated minus control."""
        one, other = self.area(1), self.area(0)
        rest, end = one.slack + other.slack, float(self.edges[-1])
        noise = max(one.noise + other.noise - 2 * self._shared, 0.0)
        variance = one.variance + other.variance
        apart = (one.estimate - other.estimate, one.middle - other.middle)
        return Area(*apart, variance, noise, (-end, end), self.heavy, rest)

    def area_ratio(self) -> AreaRatio:
        """Return the ratio of the restricted means, treated over control."""
        return AreaRatio(self.area(1), self.area(0), self._shared)

    @property
    def _shared(self) -> float:
        """The covariance of the noise of both restricted means."""
        return float(self._weights @ self.curves.noise[1, :, 0] @ self._weights)

    # Bands that hold at all times at once.

    def band_level(self, level: float, arms: tuple[int, ...]) -> float:
        """Return the level of each interval at which those of a curve, or of the difference of two, hold together."""
        total = sum(self.curves.sampling[arm] + self.curves.noise[arm, :, arm] for arm in arms)
        if len(arms) == 2:
            cross = self.curves.noise[0, :, 1]
            total = total - cross - cross.T
        # Time 0 is known without an error.
        wide = simultaneous(np.eye(len(self.edges) - 1), np.asarray(total)[1:, 1:], level)
        return min(max(level, 1 - 2 * float(ndtr(-wide))), 1 - 2.0**-53)
