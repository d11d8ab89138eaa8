"""What survival curves say: at a time, between arms, as restricted means, each with an interval.

The interval of a probability is Wilson's at the effective number of people (Rothman 1978), with the variance of the
noise added, so that it holds for few events and for estimates that noise moved beyond 0 or 1. A difference takes both
arms' intervals (Zou and Donner 2008). Where a curve is lost in the noise, it may be anywhere between 0 and its last
known upper end. Cells do not say when in them people were censored: intervals hold for every bias between those of the
two extremes, all censored first in their cell and all last (Armstrong and Kolesar 2018).
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
# Halvings of the range of how far an interval reaches.
_HALVINGS = 30
# How far apart arms may be in where in a cell people are censored, as a part of what is possible.
_APART = 0.25


def quantiles(level: float, heavy: bool) -> tuple[float, float]:
    """Return how many standard deviations of sampling error and of noise an interval takes.

    Laplace noise is taken at the quantile of one draw; a normal plus a Laplace number is not beyond the root of both
    squares more often.
    """
    normal = -float(ndtri((1 - level) / 2))
    return normal, max(normal, -log(1 - level) / sqrt(2)) if heavy else normal


def reach(half: float, bias: float, level: float) -> float:
    """Return how far an interval reaches that holds for every bias up to `bias`; `half` is how far without one."""
    normal = -float(ndtri((1 - level) / 2))
    if bias <= 0 or half <= 0 or normal <= 0:
        return half + max(bias, 0.0)
    shift = bias * normal / half
    low, high = normal, normal + shift
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        missed = float(ndtr(shift - middle) + ndtr(-shift - middle))
        low, high = (middle, high) if missed > 1 - level else (low, middle)
    return half * high / normal


def joint_bias(one: float, other: float) -> float:
    """Return how far the difference of two arms may be off, each of which may be off by so much alone.

    People are censored in much the same parts of cells in both arms: what differs by arm is not taken for more than a
    quarter of what is possible.
    """
    return min(abs(one - other) + _APART * (one + other), one + other)


@dataclass(frozen=True, slots=True)
class Probability:
    """The probability of being free of the event at one time in one arm.

    `size` is the number of people that sampling error is worth. Where the curve was lost in the noise before, `middle`
    is where it was last known, `slack` how far it may have fallen since, and `estimate` the likeliest place between.
    `bias` is how far it may be off as cells do not say when in them people were censored.
    """

    estimate: float
    middle: float
    variance: float
    noise: float
    size: float
    heavy: bool
    slack: float = 0.0
    bias: float = 0.0

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
        low, high = (self.middle + reach(end, self.bias, level) * sign for end, sign in self._ends(level))
        return min(max(low - self.slack, 0.0), 1.0), min(max(high, 0.0), 1.0)

    def _ends(self, level: float) -> tuple[Ends, Ends]:
        low, high = self.uncut(level)
        return (self.middle - low, -1.0), (high - self.middle, 1.0)

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
        bias = joint_bias(self.one.bias, self.other.bias)
        down = reach(_joined(own - low, most - others, self._correlation), bias, level)
        up = reach(_joined(high - own, others - least, self._correlation), bias, level)
        ends = (own - others - down, own - others + up)
        return min(max(ends[0], -1.0), 1.0), max(min(ends[1], 1.0), -1.0)


def _joined(one: float, other: float, correlation: float) -> float:
    return sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))


@dataclass(frozen=True, slots=True)
class Area:
    """The restricted mean time free of the event in one arm, or the difference of two.

    `slack` is how far it may lie to either side of the `middle`, as curves were lost in the noise. `bias` is how far it
    may be off as cells do not say when in them people were censored, and `bend` how far it moves when curves are known
    at every other time only: about as far as curves that bend between times can move it.
    """

    estimate: float
    middle: float
    variance: float
    noise: float
    limits: Ends
    heavy: bool
    slack: float = 0.0
    bias: float = 0.0
    bend: float = 0.0

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
        half = hypot(normal * self.sampling_sd, heavy * sqrt(self.noise))
        half = reach(half, self.bias + abs(self.bend), level) + self.slack
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
        one, other = self.one, self.other
        bias = joint_bias(one.bias / one.estimate, other.bias / other.estimate)
        bias += abs(one.bend / one.estimate - other.bend / other.estimate)
        half = reach(hypot(normal * sampling, heavy * noise), bias, level)
        middle = log(self.estimate)
        return max(exp(middle - half), widest[0]), min(exp(middle + half), widest[1])


@dataclass(frozen=True, slots=True)
class SurvivalAnswers:
    """Everything that is read off two curves; `edges` are time 0 and the ends of all cells, control comes first.

    `cut` is how many cells make one of the declared grid, by which places are counted.
    """

    curves: Curves
    edges: Floats
    convention: str
    heavy: bool
    cut: int = 1

    def at(self, arm: int, place: int) -> Probability:
        """Return the probability of one arm at a time of the grid, by its place; time 0 has place 0."""
        return self._at(arm, place * self.cut)

    def _at(self, arm: int, place: int) -> Probability:
        curves = self.curves
        own = (float(curves.shown[arm, place]), float(curves.survival[arm, place]))
        variance = float(curves.sampling[arm, place, place])
        noise = max(float(curves.noise[arm, place, arm, place]), 0.0)
        slack, bias = float(curves.slack[arm, place]), float(curves.grouping[arm, place])
        return Probability(*own, variance, noise, self._size(arm, place), self.heavy, slack, bias)

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
        """Return the difference of treated and control at a time of the grid."""
        own = place * self.cut
        return Gap(self.at(1, place), self.at(0, place), float(self.curves.noise[0, own, 1, own]))

    @property
    def _weights(self) -> Floats:
        """The weights (J + 1,) that a restricted mean gives to the curve."""
        return _weights(self.edges, 0.0 if self.convention == "end" else 0.5)

    @property
    def _bends(self) -> Floats:
        """The weights (J + 1,) that say how far a restricted mean moves without every other point of the curve."""
        found = np.zeros(len(self.edges))
        if self.convention != "end":
            kept = np.unique([*range(0, len(self.edges), 2), len(self.edges) - 1])
            found += self._weights
            found[kept] -= _weights(self.edges[kept], 0.5)
        return found

    def area(self, arm: int) -> Area:
        """Return the restricted mean of one arm."""
        weights = self._weights
        variance = float(weights @ self.curves.sampling[arm] @ weights)
        noise = max(float(weights @ self.curves.noise[arm, :, arm] @ weights), 0.0)
        rest = float(weights @ self.curves.slack[arm]) / 2
        estimate, middle = float(weights @ self.curves.shown[arm]), float(weights @ self.curves.survival[arm])
        bias, bend = float(weights @ self.curves.grouping[arm]), float(self._bends @ self.curves.shown[arm])
        limits = (0.0, float(self.edges[-1]))
        return Area(estimate, middle - rest, variance, noise, limits, self.heavy, rest, bias, bend)

    def area_gap(self) -> Area:
        """Return the difference of the restricted means, treated minus control."""
        one, other = self.area(1), self.area(0)
        rest, end = one.slack + other.slack, float(self.edges[-1])
        noise = max(one.noise + other.noise - 2 * self._shared, 0.0)
        variance = one.variance + other.variance
        apart = (one.estimate - other.estimate, one.middle - other.middle)
        off = (joint_bias(one.bias, other.bias), one.bend - other.bend)
        return Area(*apart, variance, noise, (-end, end), self.heavy, rest, *off)

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
        own = np.asarray(total)[self.cut :: self.cut, self.cut :: self.cut]
        wide = simultaneous(np.eye(len(own)), own, level)
        return min(max(level, 1 - 2 * float(ndtr(-wide))), 1 - 2.0**-53)


def _weights(edges: Floats, later: float) -> Floats:
    """Return the weights of an integral of a curve known at these times; `later` is the part of a cell's end."""
    lengths, found = np.diff(edges), np.zeros(len(edges))
    found[:-1] += (1 - later) * lengths
    found[1:] += later * lengths
    return found
