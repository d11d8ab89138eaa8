"""The probability of being free of the event at a time, one minus it, and the difference of two.

The interval of a probability is Wilson's at the effective number of people (Rothman 1978) [1]_, with the
variance of the noise added, so that it holds for few events and for estimates that noise moved beyond 0 or
1. A difference takes both arms' intervals (Zou and Donner 2008) [2]_. Where a curve is lost in the noise,
it may be anywhere between 0 and its last known upper end. Hazards that change within cells may move curves:
intervals hold for every such bias up to a bound (Armstrong and Kolesar 2018) [3]_.

References
----------
.. [1] Rothman, K. J. (1978). Estimation of confidence limits for the cumulative probability of survival in
   life table analysis. Journal of Chronic Diseases 31, 557-560.
.. [2] Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general
   approach. Statistics in Medicine 27, 1693-1702.
.. [3] Armstrong, T. B. and Kolesar, M. (2018). Optimal inference in a class of regression models.
   Econometrica 86, 655-683.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt

from counterveil.inference.biased_intervals import biased_half_width
from counterveil.inference.estimates import IndependentDifference, Transformed, truncate, zou_donner
from counterveil.inference.survival.interval_parts import APART, joint_bias, quantiles
from counterveil.numerics.arrays import Ends


@dataclass(frozen=True, slots=True)
class Probability:
    """The probability of being free of the event at one time in one arm.

    Attributes
    ----------
    estimate : float
        The likeliest probability, in [0, 1].
    middle : float
        Where the curve was last known before it was lost in the noise; the estimate as released otherwise.
    variance : float
        Sampling variance.
    noise : float
        Variance of the privacy noise.
    size : float
        Number of people that the sampling error is worth.
    heavy : float
        Excess kurtosis of the noise as a part of Laplace's: 0 for normal noise.
    slack : float
        How far the curve may have fallen since it was last known.
    bias : float
        How far it may be off as hazards change within cells.
    """

    estimate: float
    middle: float
    variance: float
    noise: float
    size: float
    heavy: float
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
        """Return the two ends of an interval, truncated to [0, 1].

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = (
            self.middle + biased_half_width(end, self.bias, level) * sign for end, sign in self._ends(level)
        )
        return truncate((low - self.slack, high), (0.0, 1.0))

    def _ends(self, level: float) -> tuple[Ends, Ends]:
        low, high = self.untruncated(level)
        return (self.middle - low, -1.0), (high - self.middle, 1.0)

    def untruncated(self, level: float) -> Ends:
        """Return the two ends around where the curve was last known, not truncated to [0, 1].

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
        per = normal**2 / self.size
        lead = 1 + per
        half = self.middle + per / 2
        root = sqrt(max(half**2 - lead * (self.middle**2 - heavy**2 * self.noise), 0.0))
        return (half - root) / lead, (half + root) / lead


@dataclass(frozen=True, slots=True)
class Complement(Transformed):
    """One minus a probability.

    Attributes
    ----------
    of : Probability
        The probability.
    """

    of: Probability

    falling = True

    @property
    def source(self) -> Probability:
        """The probability."""
        return self.of

    def carried(self, value: float) -> float:
        """Return one minus a probability.

        Parameters
        ----------
        value : float
            A probability.

        Returns
        -------
        float
            One minus it.
        """
        return 1 - value


@dataclass(frozen=True, slots=True)
class Gap(IndependentDifference):
    """The difference of two probabilities.

    Attributes
    ----------
    one : Probability
        That of the treated.
    other : Probability
        That of the controls.
    shared : float
        Covariance of their noise.
    apart : float
        How far the biases of both may differ, as a part of them.
    """

    one: Probability
    other: Probability
    shared: float
    apart: float = APART

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return sqrt(max(self.one.noise_sd**2 + self.other.noise_sd**2 - 2 * self.shared, 0.0))

    @property
    def _correlation(self) -> float:
        """The correlation of both errors, sampling error and noise together."""
        sizes = [hypot(arm.sampling_sd, arm.noise_sd) for arm in (self.one, self.other)]
        product = sizes[0] * sizes[1]
        return self.shared / product if product > 0 else 0.0

    def interval(self, level: float) -> Ends:
        """Return the two ends; all that both intervals leave possible where one arm is lost in the noise.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        if self.one.slack or self.other.slack:
            low, high = self.one.interval(level)
            least, most = self.other.interval(level)
            return low - most, high - least
        bias = joint_bias(self.one.bias, self.other.bias, self.apart)
        correlation = self._correlation

        def joined(first: float, second: float) -> float:
            together = sqrt(max(first**2 + second**2 - 2 * correlation * first * second, 0.0))
            return biased_half_width(together, bias, level)

        sides = [(arm.middle, arm.untruncated(level)) for arm in (self.one, self.other)]
        return truncate(zou_donner(sides[0], sides[1], joined), (-1.0, 1.0))
