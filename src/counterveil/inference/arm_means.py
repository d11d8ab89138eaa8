"""Released means of both arms with their joint error: what ratios, odds ratios and differences of them are made from.

- `IndependentArmMeans`: means of disjoint sets of rows, each with noise of its own.
- `JointArmMeans`: means that follow from the mean of everyone and the difference of both arms.
- `with_rare_events`: what few events add to the variance of a difference of shares.

All that a measure needs to know of them is in `Means`: both values, and the error of a m1 - b m0 for any a and b.
Means are in units of the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import hypot
from typing import Protocol

from counterveil.inference.convolution import half_width
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import sum_of_two
from counterveil.inference.uncertainty import Uncertainty

Range = tuple[Fraction, Fraction] | tuple[float, float]
Pair = tuple[float, float]
# The normal part of the error of a m1 - b m0, its noise, and a bound on what no averaging removes.
Error = tuple[float, NoiseDistribution | None, float]
Errors = Callable[[float, float, Pair], Error]


def rare_events(outcome_range: Range, sizes: Iterable[float]) -> float:
    """Return the variance of one more event in each arm, for outcomes from 0 to 1; zero for other outcomes.

    With three events in an arm of 300 intervals without it cover about 91 %, with it 95 %
    (`tests/unit/inference/test_measures.py` adds up all outcomes).
    """
    low, high = outcome_range
    return sum(1.0 / size**2 for size in sizes) if low == 0 and high == 1 else 0.0


def with_rare_events(uncertainty: Uncertainty, outcome_range: Range, sizes: Iterable[float]) -> Uncertainty:
    """Return the uncertainty of a difference with that variance, which its largest variance grows by too."""
    rare = rare_events(outcome_range, sizes)
    return replace(
        uncertainty, variance=uncertainty.variance + rare, variance_cap=uncertainty.variance_cap + rare
    )


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
        treated, control = self.known
        return Uncertainty(
            noise=sum_of_two([(1.0, treated.noise), (1.0, control.noise)]),
            variance=treated.variance + control.variance,
            variance_cap=treated.variance_cap + control.variance_cap,
            variance_noise=sum_of_two([(1.0, treated.variance_noise), (1.0, control.variance_noise)]),
            extra=treated.extra + control.extra,
            bias=treated.bias + control.bias,
            ball_variance=treated.ball_variance + control.ball_variance,
            ball_dimensions=treated.ball_dimensions,
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
        treated, control = self.known
        variances = treated.known_variance(alpha), control.known_variance(alpha)
        together = self._together.known_variance(alpha)
        total = variances[0] + variances[1]
        # Two noisy variances need less added to their sum than each to itself: what the difference needs is exact, and
        # from there to a single mean the part that is spared falls in a line, which leaves rather too much than too
        # little.
        spared, at = (1 - together / total, variances[0] / total) if total > 0 else (0.0, 0.5)

        def error(a: float, b: float, factors: Pair) -> Error:
            contributions = a * a * variances[0] * factors[0], b * b * variances[1] * factors[1]
            variance = contributions[0] + contributions[1]
            if variance > 0:
                treated_share = contributions[0] / variance
                variance *= 1 - spared * min(
                    treated_share / max(at, 1e-12), (1 - treated_share) / max(1 - at, 1e-12), 1.0
                )
            variance += a * a * treated.extra_at(alpha) + b * b * control.extra_at(alpha)
            bias = abs(a) * treated.bias + abs(b) * control.bias
            return variance**0.5, sum_of_two([(a, treated.noise), (b, control.noise)]), bias

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
        treated, control = self.known
        return (
            hypot(a * treated.sampling_sd, b * control.sampling_sd),
            hypot(a * treated.noise_sd, b * control.noise_sd),
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
            noise = sum_of_two([(on_mean, self.mean_noise), (on_difference, self.known.noise)])
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
        mean_variance = 0.0 if self.mean_noise is None else self.mean_noise.variance
        sampling = _worst((a * a, b * b), self._caps(0.5), self.known.sampling_sd**2)
        return sampling**0.5, hypot(on_mean * mean_variance**0.5, on_difference * self.known.noise_sd)

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
        noise = sum_of_two([(on_mean, means.mean_noise), (on_difference, means.known.noise)])
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
