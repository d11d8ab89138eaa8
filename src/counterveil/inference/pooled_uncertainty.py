"""The error of a weighted average of independent estimates of sites.

With weights w_j that add up to one, sampling variances v_j, noises N_j and bounds of bias c_j of the sites,
the error of sum_j w_j e_j is

    a normal part of variance sum_j w_j^2 v_j + tau^2 sum_j w_j^2,
    noise sum_j w_j N_j,
    bias at most sum_j w_j c_j,

tau^2 being the variance between sites, 0 but for random effects. Sites hold different people and draw their
own noise, so that their errors are independent and variances add up; biases may all point one way, so that
their bounds do. Everything is in units of the estimate or their square. Proof: `inference/pooling.proof.md`;
for random effects `inference/random_effects.proof.md`. All numbers are public or released: this is
post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.inference.between_sites import ErrorBetweenSites
from counterveil.inference.convolution import half_width, tail
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.p_values import p_value_from
from counterveil.inference.uncertainty import Uncertainty

# One minus the level at which sampling errors of sites are added up where no level is asked for.
_USUAL_ALPHA = 0.05


# Proof: pooling.proof.md
@dataclass(frozen=True, slots=True)
class PooledUncertainty:
    """What is known about the error of a weighted average of independent estimates.

    Attributes
    ----------
    sites : tuple of Uncertainty
        Errors of the sites' estimates.
    weights : tuple of float
        Weights, which add up to one.
    steadied : tuple of float or None
        Sampling variances that the weights were made from, where they were made from noisy ones: the
        average's variance is then not taken for less than what these give. None where weights are fixed.
    between : float
        Variance of the sites' effects, for random effects; else 0.
    between_sites : ErrorBetweenSites or None
        Error judged by how far sites lie apart, for random effects; else None.
    """

    sites: tuple[Uncertainty, ...]
    weights: tuple[float, ...]
    steadied: tuple[float, ...] | None = None
    between: float = 0.0
    between_sites: ErrorBetweenSites | None = None

    @property
    def noise(self) -> NoiseDistribution | None:
        """Distribution of the pooled privacy noise; None for no noise."""
        return weighted_sum(np.array(self.weights), [site.noise for site in self.sites])

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, as far as it is known."""
        return self._together(_USUAL_ALPHA).sampling_sd

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise; infinite where a site's is."""
        return sqrt(self._sum([site.noise_sd**2 for site in self.sites]))

    @property
    def total_sd(self) -> float:
        """Standard deviation of all errors together, differences between sites included."""
        errors = sqrt(self.sampling_sd**2 + self.noise_sd**2 + self._between())
        return errors if self.between_sites is None else max(errors, self.between_sites.std_error)

    def known_sd(self, alpha: float) -> float:
        """Return the standard deviation of the normal part that an interval is built on.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Standard deviation, in units of the estimate.
        """
        variance = self._together(alpha).known_sd(alpha) ** 2
        if self.steadied is not None:
            variance = max(variance, self._least(alpha, variance, self.steadied))
        return sqrt(variance + self._between())

    @property
    def bias(self) -> float:
        """Bound of an error that no averaging removes: the weighted mean of those of the sites."""
        return float(np.dot(self.weights, [site.bias for site in self.sites]))

    def half_width(self, level: float) -> float:
        """Return h such that (estimate - h, estimate + h) covers with probability at least `level`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            Half-width, in units of the estimate.
        """
        alpha = 1 - level
        half = half_width(self.known_sd(alpha), self.noise, alpha)
        return self.bias + (
            half if self.between_sites is None else max(half, self.between_sites.half_width(level))
        )

    def prediction_half_width(self, level: float) -> float | None:
        """Return the half-width of an interval for the effect at one more site.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float or None
            Half-width, in units of the estimate; None but for random effects.
        """
        if self.between_sites is None:
            return None
        sd = sqrt(self.known_sd(1 - level) ** 2 + self.between)
        return self.bias + max(
            self.between_sites.prediction_half_width(level), half_width(sd, self.noise, 1 - level)
        )

    def naive_half_width(self, level: float) -> float:
        """Return the half-width that ignores the noise: too short, for comparison only.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            Half-width, in units of the estimate.
        """
        return half_width(self.sampling_sd, None, 1 - level)

    def p_value(self, distance: float, level: float) -> float:
        r"""Return P(\|error\| > \|distance\|).

        Parameters
        ----------
        distance : float
            Distance of the estimate from the tested value, of either sign.
        level : float
            Noisy variances are enlarged as for an interval of this level, in (0, 1).

        Returns
        -------
        float
            Two-sided p-value, privacy noise included.
        """
        if any(site.ball_variance for site in self.sites):
            return p_value_from(self.half_width, distance, level, self.bias)
        beyond = max(abs(distance) - self.bias, 0.0)
        p = min(1.0, 2 * tail(beyond, self.known_sd(1 - level), self.noise))
        return p if self.between_sites is None else max(p, self.between_sites.p_value(beyond))

    def _together(self, alpha: float) -> Uncertainty:
        """Return the average as one estimate at a level 1 - alpha.

        With weights that are fixed, noisy variances add up like noise.
        """
        squares = np.square(self.weights)
        return Uncertainty(
            noise=self.noise,
            variance=self._sum([site.variance for site in self.sites]),
            variance_cap=self._sum([site.variance_cap for site in self.sites]),
            variance_noise=weighted_sum(squares, [site.variance_noise for site in self.sites]),
            extra=self._sum([site.extra_at(alpha) for site in self.sites]),
        )

    def _least(self, alpha: float, variance: float, steadied: tuple[float, ...]) -> float:
        """Return what the variance is not taken for less than, sites being steadied or enlarged on their own."""
        steadied_variances = [
            site.extra_at(alpha) + least for site, least in zip(self.sites, steadied, strict=True)
        ]
        if self._sum(steadied_variances) <= variance:
            return variance  # nothing below can exceed it, and enlarging every site takes time
        by_site = zip(self.sites, steadied_variances, self.weights, strict=True)
        return self._sum(
            [min(site.known_sd(alpha) ** 2, most) if weight > 0 else 0.0 for site, most, weight in by_site]
        )

    def _between(self) -> float:
        return self.between * float(np.square(self.weights).sum())

    def _sum(self, variances: list[float]) -> float:
        """Return the variance of the average from those of the sites; weights of zero count for nothing."""
        pairs = zip(self.weights, variances, strict=True)
        return sum((weight**2 * variance for weight, variance in pairs if weight > 0), 0.0)
