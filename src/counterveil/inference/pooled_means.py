"""Means of both arms, averaged over sites, for ratios and odds ratios. Proof: pooling.proof.md.

A ratio of averages is looked for as Fieller's is: a m1 - b m0 is an average of the sites' own, whose errors are
independent. No ratio of a site is divided by or averaged, so that sites where outcomes are rare bias nothing.
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
        site_errors = [site.errors(alpha) for site in self.sites]

        def error(a: float, b: float, factors: Pair) -> Error:
            at_sites = [site_error(a, b, factors) for site_error in site_errors]
            variance = float(np.dot(np.square(self.weights), [sd**2 for sd, _, _ in at_sites]))
            noise = weighted_sum(np.array(self.weights), [own_noise for _, own_noise, _ in at_sites])
            return sqrt(variance), noise, float(np.dot(self.weights, [bias for _, _, bias in at_sites]))

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
