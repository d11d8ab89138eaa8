"""Means of both arms, averaged over sites, for ratios and odds ratios.

    m_a = sum_j w_j m_aj,    public weights w_j that add up to one,

with m_aj the released mean of arm a at site j, in units of the outcome. Intervals for m_1 / m_0 are
Fieller's: those r for which m_1 - r m_0 may be zero. Any a m_1 - b m_0 is an average of the sites' own, whose
errors are independent, so that its error follows from theirs. No ratio of a site is divided by or averaged,
so that sites where outcomes are rare bias nothing.

Proof: `inference/pooling.proof.md`. In and out are released numbers: this is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.inference.arm_means import Error, Errors, IndependentArmMeans, JointArmMeans, Pair
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.pooled_uncertainty import PooledUncertainty


# Proof: pooling.proof.md
@dataclass(frozen=True, slots=True)
class PooledMeans:
    """Averages of the sites' means of both arms, with public weights.

    Attributes
    ----------
    sites : tuple of IndependentArmMeans or JointArmMeans
        Means of the sites.
    weights : tuple of float
        Weights, which add up to one; 0 for a site that is left out.
    names : tuple of str
        Names of the sites.
    """

    sites: tuple[IndependentArmMeans | JointArmMeans, ...]
    weights: tuple[float, ...]
    names: tuple[str, ...]

    @property
    def weighed(self) -> list[tuple[str, IndependentArmMeans | JointArmMeans]]:
        """The sites that are in the averages, by name."""
        rows = zip(self.names, self.sites, self.weights, strict=True)
        return [(name, site) for name, site, weight in rows if weight > 0]

    @property
    def values(self) -> Pair:
        """Means of the treated and of the controls."""
        treated, control = np.dot(self.weights, np.array([site.values for site in self.sites]))
        return float(treated), float(control)

    @property
    def range(self) -> Pair:
        """The range of outcomes."""
        return min(site.range[0] for site in self.sites), max(site.range[1] for site in self.sites)

    @property
    def error_of_difference(self) -> PooledUncertainty:
        """The error of m1 - m0."""
        return PooledUncertainty(tuple(site.error_of_difference for site in self.sites), self.weights)

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
        errors_of_sites = [site.errors(alpha) for site in self.sites]

        def error(a: float, b: float, factors: Pair) -> Error:
            by_site = [error_of_site(a, b, factors) for error_of_site in errors_of_sites]
            variance = float(np.dot(np.square(self.weights), [sd**2 for sd, _, _ in by_site]))
            noise = weighted_sum(np.array(self.weights), [noise_of_site for _, noise_of_site, _ in by_site])
            return sqrt(variance), noise, float(np.dot(self.weights, [bias for _, _, bias in by_site]))

        return error

    def parts(self, a: float, b: float) -> Pair:
        """Return the standard deviations of a m1 - b m0, as far as they are known.

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
        squares = np.square([site.parts(a, b) for site in self.sites])
        sampling, noise = np.sqrt(np.dot(np.square(self.weights), squares))
        return float(sampling), float(noise)
