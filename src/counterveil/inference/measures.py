"""Ratios, odds ratios and other measures of two means, and how strong an omitted confounder would have to be.

E-values are those of VanderWeele and Ding (2017). Bounds on bias are those of Cinelli and Hazlett (2020) for a linear
regression and of Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis (2022) for averages of effects: with S^2 the
residual variance of the outcome times the mean squared weight of a person,

    |bias| <= S sqrt(R2_Y R2_T / (1 - R2_T)),

where R2_Y is the share of the outcome's residual variance that the confounder explains, and R2_T that of the
treatment's (of the weights' where effects are averaged by weights). All of it is arithmetic on released numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import exp, hypot, inf, log, sqrt
from typing import Any, Protocol

from scipy.special import ndtri

from counterveil.inference.convolution import half_width, tail
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import NoiseSum
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends, Floats

# Chinn's (2000) factor from standardised differences to logarithms of odds ratios, halved because an odds ratio is
# about the square of a risk ratio (VanderWeele 2017): pi / sqrt(3) / 2.
_LOG_RATIO_OF_DIFFERENCE = 0.91


def e_value(ratio: float) -> float:
    """Return the least risk ratio of a confounder with treatment and outcome that explains a risk ratio away."""
    if ratio <= 0:
        return inf
    above = max(ratio, 1 / ratio)
    return above + sqrt(above * (above - 1))


def ratio_of_difference(difference: float, sd: float) -> float:
    """Return about which risk ratio a difference in means is, for outcomes of this standard deviation."""
    # Beyond this an E-value has no meaning left, and the exponential no double.
    return exp(max(-50.0, min(50.0, _LOG_RATIO_OF_DIFFERENCE * difference / sd)))


def nearest_to(ends: tuple[float, float], none: float) -> float:
    """Return the end of an interval that is nearest to no effect, which is returned where it is inside."""
    low, high = ends
    if low <= none <= high:
        return none
    return low if low > none else high


def bias_bound(scale: float, treatment_r2: float, outcome_r2: float) -> float:
    """Return the largest bias from a confounder that explains these shares; `scale` is S above."""
    return scale * sqrt(outcome_r2 * treatment_r2 / (1 - treatment_r2))


def outcome_r2_needed(bias: float, scale: float, treatment_r2: float) -> float:
    """Return the share of the outcome that makes such a bias possible; above 1 where none does."""
    if bias <= 0:
        return 0.0
    return (bias / scale) ** 2 * (1 - treatment_r2) / treatment_r2 if scale and treatment_r2 else inf


def robustness_value(bias: float, scale: float) -> float:
    """Return the share of both, treatment and outcome, from which on a confounder can cause such a bias."""
    if bias <= 0:
        return 0.0
    if not scale:
        return 1.0
    squared = (bias / scale) ** 2
    # The root of R2^2 / (1 - R2) = squared, in the form that loses no digits where it is large.
    return 2 * squared / (squared + sqrt(squared**2 + 4 * squared))


def as_strong_as(partial_r2: float, times: float) -> float:
    """Return the share of the treatment explained by a confounder `times` as strong as a covariate, at most 1.

    `partial_r2` is the covariate's own share of what the other covariates leave of the treatment. The confounder is
    independent of the covariates, whose share is k f^2 with f^2 = R2 / (1 - R2) (Cinelli and Hazlett 2020, eq. 4.4).
    """
    return min(1.0, times * partial_r2 / (1 - partial_r2)) if partial_r2 < 1 else 1.0


# Ratios and odds ratios of two noisy means: estimate, interval and p-value; and what few events add to a variance.
#
# An interval is the set of values that the two means do not contradict, as Fieller's (1954): a ratio r is kept where
# m1 - r m0 is no farther from zero than its sampling error and its noise explain at the level. No mean is divided by,
# so that the interval is right where a mean is hardly larger than its noise; it then has no upper end. Odds ratios
# are treated alike, through m1 (1 - m0) - r m0 (1 - m1). Few events are allowed for by the variance at the value that
# is tested; the difference of both means has `rare_events` in its variance instead, as one that is released alone.
#
# A total over a size, both noisy: estimate, Fieller's interval, and the difference of two of them.
#
# The interval is the set of ratios that the two numbers do not contradict, so that it stays right where the size is
# hardly larger than its noise; where nothing is contradicted, it is the whole range of what is possible.

# Halvings of the range of exponents of a p-value.
_STEPS = 40


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
        own = hypot(self.total_sd, (self.estimate - self.offset) * self.size_sd) / self._size
        return sqrt(own**2 + self.extra)

    @property
    def _size(self) -> float:
        return max(self.size, self.size_sd, self.least)

    def interval(self, level: float) -> tuple[float, float]:
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
        known = normal**2 * (size * self.row_variance + size**2 * self.extra) + (noise * self.total_sd) ** 2
        lead = size**2 - rest
        middle = self.total * size / lead
        half = sqrt(max(middle**2 - (self.total**2 - known) / lead, 0.0))
        low = self.offset + middle - half - self.bias
        high = self.offset + middle + half + self.bias
        # An interval beyond what is possible is the nearer end of it.
        return min(max(low, -self.limit), self.limit), max(min(high, self.limit), -self.limit)


class Apart:
    """One number minus another, with independent errors."""

    __slots__ = ()
    one: Any
    other: Any

    @property
    def estimate(self) -> float:
        """One minus the other."""
        return float(self.one.estimate - self.other.estimate)

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return hypot(self.one.sampling_sd, self.other.sampling_sd)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return hypot(self.one.noise_sd, self.other.noise_sd)


@dataclass(frozen=True, slots=True)
class RatioDifference(Apart):
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

    def interval(self, level: float) -> tuple[float, float]:
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
        low, high = self.one.interval(level)
        least, most = self.other.interval(level)
        own, others = self.one.estimate, self.other.estimate
        limit = self.one.limit + self.other.limit
        return (
            max(own - others - hypot(own - low, most - others), -limit),
            min(own - others + hypot(high - own, others - least), limit),
        )


# A table shows it for an effect alone and among all, from the same intervals.
@lru_cache(maxsize=1024)
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


Range = tuple[Fraction, Fraction] | tuple[float, float]


def rare_events(outcome_range: Range, sizes: Iterable[float]) -> float:
    """Return the variance of one more event in each arm, for outcomes from 0 to 1; zero for other outcomes.

    With three events in an arm of 300 intervals without it cover about 91 %, with it 95 %
    (`tests/unit/inference/test_measures.py` adds up all outcomes).
    """
    low, high = outcome_range
    return sum(1.0 / size**2 for size in sizes) if low == 0 and high == 1 else 0.0


def with_rare_events(known: Uncertainty, outcome_range: Range, sizes: Iterable[float]) -> Uncertainty:
    """Return the uncertainty of a difference with that variance, which its largest variance grows by too."""
    rare = rare_events(outcome_range, sizes)
    return replace(known, variance=known.variance + rare, variance_cap=known.variance_cap + rare)


Pair = tuple[float, float]
# The normal part of the error of a m1 - b m0, its noise, and a bound on what no averaging removes.
Error = tuple[float, NoiseDistribution | None, float]
Errors = Callable[[float, float, Pair], Error]

RATIO, ODDS = "ratio", "odds_ratio"
# How many times larger a variance may be taken at a value than it was released.
_MOST_FACTOR = 10.0
# How exactly ends are found, on the scale t = r / (1 + r).
_PRECISION = 1e-10
# Weights whose squares are no numbers any more: what they multiply is nothing beside the rest.
_NOTHING = 1e-150


@dataclass(frozen=True, slots=True)
class Scaled:
    """The distribution of `factor` times a noise; itself a noise distribution."""

    noise: NoiseDistribution
    factor: float

    @property
    def variance(self) -> float:
        """The variance."""
        return self.factor**2 * self.noise.variance

    def cdf(self, x: Floats) -> Floats:
        """Return P(factor X <= x)."""
        return self.noise.cdf(x / self.factor)

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest x with P(factor X <= x) >= p."""
        return self.factor * self.noise.quantile(p)

    def breakpoints(self, low: float, high: float, most: int) -> Floats | None:
        """Return the points of [low, high] where the density is not smooth; None where they exceed `most`."""
        found = self.noise.breakpoints(low / self.factor, high / self.factor, most)
        return None if found is None else self.factor * found


def combined(terms: list[tuple[float, NoiseDistribution | None]]) -> NoiseDistribution | None:
    """Return the distribution of the weighted sum of up to two independent noises, None where there is none."""
    kept: list[NoiseDistribution] = [
        noise if abs(weight) == 1.0 else Scaled(noise, abs(weight))
        for weight, noise in terms
        if noise is not None and abs(weight) > _NOTHING
    ]
    if not kept:
        return None
    return kept[0] if len(kept) == 1 else NoiseSum(kept[0], kept[1])


class Means(Protocol):
    """Released means of both arms with their joint error."""

    @property
    def values(self) -> Pair:
        """Means of the treated and of the controls."""
        ...

    @property
    def range(self) -> Pair:
        """The range of outcomes."""
        ...

    def errors(self, alpha: float) -> Errors:
        """Return the error of a m1 - b m0 as a function of a, b and factors of both arms' sampling variances.

        Variances are as for a level of 1 - alpha.
        """
        ...

    def parts(self, a: float, b: float) -> Pair:
        """Return the standard deviations of a m1 - b m0 from sampling and from noise, as far as they are known."""
        ...


@dataclass(frozen=True, slots=True)
class IndependentArmMeans:
    """Means of disjoint sets of rows with noise of their own.

    Attributes
    ----------
    values : tuple of (float, float)
        Means of the treated and of the controls, in units of the outcome.
    known : tuple of (Uncertainty, Uncertainty)
        Their errors.
    range : tuple of (float, float)
        Declared range of outcomes.
    sizes : tuple of (float, float)
        Effective sample sizes of the arms.
    """

    values: Pair
    known: tuple[Uncertainty, Uncertainty]
    range: Pair
    sizes: Pair

    @property
    def error_of_difference(self) -> Uncertainty:
        """Error of m1 - m0."""
        return with_rare_events(self._together, self.range, self.sizes)

    @property
    def _together(self) -> Uncertainty:
        one, other = self.known
        return Uncertainty(
            combined([(1.0, one.noise), (1.0, other.noise)]),
            one.variance + other.variance,
            one.variance_cap + other.variance_cap,
            combined([(1.0, one.variance_noise), (1.0, other.variance_noise)]),
            one.extra + other.extra,
            one.bias + other.bias,
            one.ball_variance + other.ball_variance,
            one.ball_dimensions,
        )

    def errors(self, alpha: float) -> Errors:
        """Return the error of a m1 - b m0.

        Parameters
        ----------
        alpha : float
            Variances are those of an interval of level 1 - alpha.

        Returns
        -------
        callable
            Takes a, b and factors of both arms' sampling variances, and returns the standard deviation of the
            normal part, the noise, and a bound of the bias.
        """
        one, other = self.known
        known = one.known_variance(alpha), other.known_variance(alpha)
        together = self._together.known_variance(alpha)
        total = known[0] + known[1]
        # Two noisy variances need less added to their sum than each to itself: what the difference needs is exact, and
        # from there to a single mean the part that is spared falls in a line, which leaves rather too much than too
        # little.
        spared, at = (1 - together / total, known[0] / total) if total > 0 else (0.0, 0.5)

        def error(a: float, b: float, factors: Pair) -> Error:
            parts = a * a * known[0] * factors[0], b * b * known[1] * factors[1]
            variance = parts[0] + parts[1]
            if variance > 0:
                place = parts[0] / variance
                variance *= 1 - spared * min(place / max(at, 1e-12), (1 - place) / max(1 - at, 1e-12), 1.0)
            variance += a * a * one.extra_at(alpha) + b * b * other.extra_at(alpha)
            bias = abs(a) * one.bias + abs(b) * other.bias
            return variance**0.5, combined([(a, one.noise), (b, other.noise)]), bias

        return error

    def parts(self, a: float, b: float) -> Pair:
        """Return the standard deviations of a m1 - b m0.

        Parameters
        ----------
        a : float
            Weight of the treated mean.
        b : float
            Weight of the control mean.

        Returns
        -------
        tuple of (float, float)
            Standard deviations from sampling and from noise.
        """
        one, other = self.known
        return (
            hypot(a * one.sampling_sd, b * other.sampling_sd),
            hypot(a * one.noise_sd, b * other.noise_sd),
        )


@dataclass(frozen=True, slots=True)
class JointArmMeans:
    """Means of both arms from the mean of everyone and the difference.

    Attributes
    ----------
    mean : float
        Mean of everyone, in units of the outcome.
    mean_noise : NoiseDistribution or None
        Its privacy noise.
    difference : float
        Difference of both arms' means, treated minus control.
    known : Uncertainty
        Error of the difference.
    share : float
        Share treated, as released.
    share_sd : float
        Standard deviation of its noise.
    rows : int
        Number of rows.
    range : tuple of (float, float)
        Declared range of outcomes.

    Notes
    -----
    With q the share, m the mean and d the difference, m1 = m + (1 - q) d and m0 = m - q d. The variance of d
    is the sum of both means' variances. How it divides is known from the ranges alone: a mean of outcomes in
    [low, high] over n rows has a variance of at most (m - low)(high - m) / n [1]_. Of the divisions that are
    possible the worst is taken.

    References
    ----------
    .. [1] Bhatia, R. and Davis, C. (2000). A better bound on the variance. American Mathematical Monthly 107,
       353-357.
    """

    mean: float
    mean_noise: NoiseDistribution | None
    difference: float
    known: Uncertainty
    share: float
    share_sd: float
    rows: int
    range: Pair

    @property
    def values(self) -> Pair:
        """Means of the treated and of the controls, in units of the outcome."""
        return self.mean + (1 - self.share) * self.difference, self.mean - self.share * self.difference

    @property
    def sizes(self) -> Pair:
        """Numbers of people in each arm, about."""
        return self.rows * self.share, self.rows * (1 - self.share)

    @property
    def error_of_difference(self) -> Uncertainty:
        """Error of m1 - m0."""
        return with_rare_events(self.known, self.range, self.sizes)

    def errors(self, alpha: float) -> Errors:
        """Return the error of a m1 - b m0.

        Parameters
        ----------
        alpha : float
            Variances are those of an interval of level 1 - alpha.

        Returns
        -------
        callable
            Takes a, b and factors of both arms' sampling variances, and returns the standard deviation of the
            normal part, the noise, and a bound of the bias.
        """
        variance = self.known.known_variance(alpha)
        caps = self._caps(alpha)

        def error(a: float, b: float, factors: Pair) -> Error:
            on_mean = a - b
            on_difference = a * (1 - self.share) + b * self.share
            sampling = _worst((a * a, b * b), caps, variance) * max(factors)
            # An error in the share moves both means alike.
            extra = on_difference**2 * self.known.extra + (on_mean * self.difference * self.share_sd) ** 2
            noise = combined([(on_mean, self.mean_noise), (on_difference, self.known.noise)])
            return (sampling + extra) ** 0.5, noise, abs(on_difference) * self.known.bias

        return error

    def parts(self, a: float, b: float) -> Pair:
        """Return the standard deviations of a m1 - b m0.

        Parameters
        ----------
        a : float
            Weight of the treated mean.
        b : float
            Weight of the control mean.

        Returns
        -------
        tuple of (float, float)
            Standard deviations from sampling and from noise.
        """
        on_mean = a - b
        on_difference = a * (1 - self.share) + b * self.share
        own = 0.0 if self.mean_noise is None else self.mean_noise.variance
        sampling = _worst((a * a, b * b), self._caps(0.5), self.known.sampling_sd**2)
        return sampling**0.5, hypot(on_mean * own**0.5, on_difference * self.known.noise_sd)

    def _caps(self, alpha: float) -> Pair:
        """Return the largest variances of both means: those at the ends of their intervals nearest to the middle."""
        return _largest_variances(self, alpha)


# Asked for at every value that is tried, and the same for all of them.
@lru_cache(maxsize=64)
def _largest_variances(means: JointArmMeans, alpha: float) -> Pair:
    low, high = means.range
    caps = []
    for value, (a, b), size in zip(means.values, ((1.0, 0.0), (0.0, 1.0)), means.sizes, strict=True):
        on_mean = a - b
        on_difference = a * (1 - means.share) + b * means.share
        noise = combined([(on_mean, means.mean_noise), (on_difference, means.known.noise)])
        half = half_width(means.known.known_variance(alpha) ** 0.5, noise, alpha)
        middle = (low + high) / 2
        at = min(max(middle, value - half), value + half)
        caps.append(max((at - low) * (high - at), 0.0) / size)
    return caps[0], caps[1]


def _worst(weights: Pair, caps: Pair, total: float) -> float:
    """Return the largest sum of weighted variances that are within their caps and add up to at most `total`."""
    first = 0 if weights[0] >= weights[1] else 1
    larger = min(caps[first], total)
    return weights[first] * larger + weights[1 - first] * min(caps[1 - first], total - larger)


@dataclass(frozen=True, slots=True)
class Quotient:
    """The ratio of two means, or their odds ratio (`kind`)."""

    means: Means
    kind: str

    @property
    def estimate(self) -> float:
        """The ratio; a mean that is lost in its noise is taken at one standard deviation of it."""
        one, other = self._seen
        if self.kind == RATIO:
            return one / other if other > 0 else inf
        return one * (1 - other) / (other * (1 - one)) if other * (1 - one) > 0 else inf

    @property
    def _seen(self) -> Pair:
        """Means that are no nearer to where the ratio breaks than one standard deviation of their noise."""
        one, other = self._means
        first, second = (self.means.parts(*which)[1] for which in ((1.0, 0.0), (0.0, 1.0)))
        if self.kind == RATIO:
            return one, max(other, second)
        first, second = min(first, 0.5), min(second, 0.5)
        return min(max(one, first), 1 - first), min(max(other, second), 1 - second)

    @property
    def replaced(self) -> tuple[float | None, float | None]:
        """For each mean the standard deviation of its noise where the estimate is made with it instead, else None."""
        sds = (self.means.parts(*which)[1] for which in ((1.0, 0.0), (0.0, 1.0)))
        one, other = (
            sd if seen != mean else None for seen, mean, sd in zip(self._seen, self._means, sds, strict=True)
        )
        return one, other

    @property
    def _means(self) -> Pair:
        # A truth cannot be below the range: what noise put there is put back, which loses no coverage.
        low, high = self.means.range
        one, other = (max(value, low) for value in self.means.values)
        return (one, other) if self.kind == RATIO else (min(one, high), min(other, high))

    def _form(self, t: float) -> tuple[float, float, float]:
        """Return the number that is zero at r = t / (1 - t) if the means are exact, and how it moves with them."""
        one, other = self._means
        if self.kind == RATIO:
            return (1 - t) * one - t * other, 1 - t, t
        value = (1 - t) * one * (1 - other) - t * other * (1 - one)
        return value, (1 - t) * (1 - other) + t * other, (1 - t) * one + t * (1 - one)

    def _factors(self, value: float, a: float, b: float) -> Pair:
        """Return how much larger the arms' variances would be if the ratio were the one that is tested.

        Rare outcomes vary as their mean: where few were seen, both are too small. Means are moved to where the ratio
        holds, by generalised least squares, and variances follow (m - low)(high - m) upwards, as in score tests of
        risks (Miettinen and Nurminen 1985).
        """
        (one, other), (low, high) = self._means, self.means.range
        first, second = (hypot(*self.means.parts(*which)) ** 2 for which in ((1.0, 0.0), (0.0, 1.0)))
        total = a * a * first + b * b * second
        if not 0 < total < inf:
            return 1.0, 1.0
        moved = one - first * a * value / total, other + second * b * value / total
        found = []
        for seen, place in zip((one, other), moved, strict=True):
            there = min(max(place, low), high)
            own = (seen - low) * (high - seen)
            larger = (there - low) * (high - there) / own if own > 0 else _MOST_FACTOR
            found.append(min(max(larger, 1.0), _MOST_FACTOR))
        return found[0], found[1]

    @property
    def parts(self) -> Pair:
        """Standard deviations from sampling and from noise, by the delta method."""
        r, (one, other) = self.estimate, self._seen
        if r == inf:
            return inf, inf
        if self.kind == RATIO:
            a = 1.0
            b = r
            slope = other
        else:
            a = 1 - other + r * other
            b = one + r * (1 - one)
            slope = other * (1 - one)
        sampling, noise = self.means.parts(a, b)
        return sampling / slope, noise / slope

    def interval(self, level: float) -> Ends:
        """Return the two ends; the upper one is infinite where no value is too large for the means."""
        alpha = 1 - level
        error = self.means.errors(alpha)

        def beyond(t: float, sign: float) -> float:
            value, a, b = self._form(t)
            sd, noise, bias = error(a, b, self._factors(value, a, b))
            return sign * value - half_width(sd, noise, alpha) - bias

        (at_zero, _, _), (at_end, _, _) = self._form(0.0), self._form(1.0)
        middle = at_zero / (at_zero - at_end) if at_zero > at_end else 0.5
        low = _end(beyond, 0.0, middle, 1.0) if beyond(0.0, 1.0) > 0 else 0.0
        high = _end(beyond, 1.0, middle, -1.0) if beyond(1.0, -1.0) > 0 else inf
        return low, high

    def p_value(self, level: float, value: float = 1.0) -> float:
        """Return the two-sided p-value of a ratio of `value`, variances being inflated as for `level`."""
        number, a, b = self._form(value / (1 + value))
        sd, noise, bias = self.means.errors(1 - level)(a, b, self._factors(number, a, b))
        return min(1.0, 2 * tail(max(abs(number) - bias, 0.0), sd, noise))


def _end(beyond: Callable[[float, float], float], outside: float, middle: float, sign: float) -> float:
    """Return the ratio at which values cease to be kept between one that is not and the estimate."""
    from scipy.optimize import brentq  # loaded by those who need it: it takes a fifth of a second

    # Between an estimate next to the end of the scale and that end nothing is looked for: the end itself is safe.
    if abs(middle - outside) < _PRECISION:
        return _ratio(outside)
    # Errors so small that rounding exceeds them leave the estimate alone.
    if beyond(middle, sign) >= 0:
        return _ratio(middle)
    return _ratio(float(brentq(beyond, outside, middle, args=(sign,), xtol=_PRECISION)))


def _ratio(t: float) -> float:
    return t / (1 - t) if t < 1 else inf
