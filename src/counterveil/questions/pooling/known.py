"""Averages of numbers that have intervals of their own, on their own scale or on that of logarithms.

With weights w_j of the sites, which add up to one, numbers e_j, standard deviations of sampling a_j and of
noise s_j, and intervals [l_j, h_j] of level 1 - alpha at the sites, the average and its interval are

    e = sum_j w_j e_j,    [e - z sd - down, e + z sd + up],    sd^2 = sum_j w_j^2 (a_j^2 + s_j^2),
    down = sum_j w_j max(e_j - l_j - z sqrt(a_j^2 + s_j^2), 0),    up = the same of h_j - e_j,

z being the normal quantile: what a site's interval exceeds its normal one by (bias that no averaging removes,
heavy tails, skewness) is not taken for less than at the site. For random effects sd^2 has the variance
between sites too. Units are those of the numbers; ratios are averaged by their logarithms (`Logarithm`) and
shown as ratios (`PooledRatio`).

In: released numbers of sites with their intervals. Out: the average with its interval. Sites hold different
people and draw their own noise, so that variances add up with squared weights, while what is not random adds
up in full. All of it is post-processing: nothing is spent. Proof: `inference/pooling.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, hypot, inf, isfinite, log, sqrt

import numpy as np
from scipy.special import ndtri

from counterveil.inference.between_sites import ErrorBetweenSites
from counterveil.inference.estimates import Known, OwnScale, Transformed, truncate
from counterveil.inference.p_values import p_value
from counterveil.numerics.arrays import Ends
from counterveil.results.effect import Effect, StdError, check_level

# A larger logarithm is taken for this one: its ratio is still a double.
_LARGEST_LOGARITHM = 700.0


@dataclass(frozen=True, slots=True)
class PooledKnown:
    """An average of numbers that have intervals of their own, such as differences of survival.

    Attributes
    ----------
    sites : tuple of estimates
        Numbers of the sites.
    weights : tuple of float
        Weights, which add up to one.
    limits : tuple of (float, float) or None
        What the average can be at all.
    between : float
        Variance of the sites' numbers, for random effects; else 0.
    between_sites : ErrorBetweenSites or None
        Error judged by how far sites lie apart, for random effects; else None.

    Notes
    -----
    The interval is normal, and longer on each side by the weighted mean of what the sites' intervals exceed
    their normal ones by: bias that no averaging removes, heavy tails and skewness are not taken for less than
    at the sites.
    """

    sites: tuple[Known, ...]
    weights: tuple[float, ...]
    limits: Ends | None = None
    between: float = 0.0
    between_sites: ErrorBetweenSites | None = None

    def _weighed(self) -> list[tuple[float, Known]]:
        return [(weight, site) for weight, site in zip(self.weights, self.sites, strict=True) if weight > 0]

    @property
    def estimate(self) -> float:
        """The average, truncated to what it can be."""
        average = sum(weight * site.estimate for weight, site in self._weighed())
        return truncate((average, average), self.limits)[0]

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return hypot(*(weight * site.sampling_sd for weight, site in self._weighed()))

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return hypot(*(weight * site.noise_sd for weight, site in self._weighed()))

    @property
    def total_sd(self) -> float:
        """Standard deviation of all errors together, differences between sites included."""
        errors = sqrt(self.sampling_sd**2 + self.noise_sd**2 + self._spread)
        return errors if self.between_sites is None else max(errors, self.between_sites.std_error)

    @property
    def _spread(self) -> float:
        return self.between * float(np.square(self.weights).sum())

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval; nothing is known where a site's number is infinite.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        between = 0.0 if self.between_sites is None else self.between_sites.half_width(level)
        return self._ends(level, self._spread, between)

    def one_more(self, level: float) -> Ends:
        """Return the two ends of an interval for the number at one more site; for random effects alone.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        assert self.between_sites is not None
        return self._ends(level, self._spread + self.between, self.between_sites.prediction_half_width(level))

    def _ends(self, level: float, spread: float, between: float) -> Ends:
        """Return the ends for a variance of `spread` beside the errors, at least `between` from the estimate."""
        if not isfinite(self.estimate):
            return truncate((-inf, inf), self.limits)
        normal = -float(ndtri((1 - level) / 2))
        down = 0.0
        up = 0.0
        for weight, site in self._weighed():
            low, high = site.interval(level)
            half_of_normal = normal * hypot(site.sampling_sd, site.noise_sd)
            down += weight * max(site.estimate - low - half_of_normal, 0.0)
            up += weight * max(high - site.estimate - half_of_normal, 0.0)
        half = max(normal * sqrt(self.sampling_sd**2 + self.noise_sd**2 + spread), between)
        return truncate((self.estimate - half - down, self.estimate + half + up), self.limits)


@dataclass(frozen=True, slots=True)
class Logarithm(Transformed):
    """The logarithm of a ratio that is known on its own scale; a ratio that is lost in noise says nothing."""

    ratio: Known

    @property
    def source(self) -> Known:
        """The ratio."""
        return self.ratio

    @property
    def _sound(self) -> bool:
        return 0 < self.ratio.estimate < inf

    @property
    def estimate(self) -> float:
        """The logarithm, 0 where there is none."""
        return self.carried(self.ratio.estimate) if self._sound else 0.0

    def carried(self, value: float) -> float:
        """Return the logarithm of a ratio, which may be infinite."""
        if value <= 0:
            return -inf
        return log(value) if value < inf else inf

    def scaled(self, sd: float) -> float:
        """Return a standard deviation of the ratio as one of the logarithm."""
        return sd / self.ratio.estimate if self._sound else inf


@dataclass(frozen=True, slots=True)
class PooledRatio(Transformed, OwnScale):
    """An average of ratios on the scale of logarithms, such as hazard ratios.

    Attributes
    ----------
    logarithm : PooledKnown
        Average of the logarithms.
    null : {1.0, 0.0}
        Value of no effect: 1 of a ratio, 0 of a lift.
    """

    logarithm: PooledKnown
    null: float = 1.0

    @property
    def source(self) -> PooledKnown:
        """The average of the logarithms."""
        return self.logarithm

    def carried(self, value: float) -> float:
        """Return the ratio, or the lift, of a logarithm.

        Parameters
        ----------
        value : float
            A logarithm; it may be infinite.

        Returns
        -------
        float
            Ratio, or one less for a lift.
        """
        return exp(min(value, _LARGEST_LOGARITHM)) - self._less if value < inf else inf

    def scaled(self, sd: float) -> float:
        """Return a standard deviation of the logarithm as one of the ratio.

        Parameters
        ----------
        sd : float
            Standard deviation of the logarithm.

        Returns
        -------
        float
            Standard deviation of the ratio.
        """
        return exp(self.logarithm.estimate) * sd

    @property
    def _less(self) -> float:
        return 1.0 - self.null

    @property
    def total_sd(self) -> float:
        """Standard deviation of all errors together, differences between sites included."""
        return self.scaled(self.logarithm.total_sd)

    def one_more(self, level: float) -> Ends:
        """Return the two ends of an interval for one more site; for random effects alone.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self.logarithm.one_more(level)
        return self.carried(low), self.carried(high)

    def p_value(self, level: float, value: float | None = None) -> float:  # noqa: ARG002 - of every level the same
        """Return the two-sided p-value of a value.

        Parameters
        ----------
        level : float
            Not used: the p-value is of every level the same.
        value : float, optional
            Value that is tested; no effect by default.

        Returns
        -------
        float
            P-value, privacy noise included.
        """
        ratio = 1.0 if value is None else value + self._less
        return p_value(self.logarithm.interval, log(ratio) if ratio > 0 else -inf)


class PooledEffect(Effect):
    """One row of a pooled table.

    Its simultaneous intervals are Bonferroni's: they hold however rows depend.

    Attributes
    ----------
    name : str, int or float
        Name of the row.
    known : Linear, PooledKnown, PooledRatio or NumberNeededToTreat
        Estimate and uncertainty.
    level : float
        Default confidence level, in (0, 1).
    several : int
        How many effects are shown together.
    size : float or None
        Number of people behind the effect, where it is known.
    size_sd : float
        Standard deviation of the noise of `size`.
    """

    __slots__ = ()

    @property
    def std_error(self) -> StdError:
        """Standard error: total, with differences between sites, sampling part, privacy-noise part."""
        if isinstance(self.known, PooledKnown | PooledRatio):
            return StdError(self.known.total_sd, self.known.sampling_sd, self.known.noise_sd)
        return super().std_error

    @property
    def adjusted_p_value(self) -> float:
        """Two-sided p-value adjusted for looking at all rows (Bonferroni)."""
        return min(1.0, self.several * self.careful_p_value)

    def _level(self, level: float | None, simultaneous: bool) -> float:
        chosen = self.level if level is None else check_level(level)
        return 1 - (1 - chosen) / self.several if simultaneous else chosen


def is_ratio(known: Known) -> bool:
    """Return whether a number is a ratio, which is 1 where there is no effect: its logarithm is averaged."""
    return isinstance(known, OwnScale) and known.null == 1.0
