"""Means of both arms, averaged over sites that hold different people, for ratios and odds ratios.

A ratio of averages is looked for as Fieller's is: a m1 - b m0 is an average of the sites' own, whose errors are
independent. No ratio of a site is divided by or averaged, so that sites where outcomes are rare bias nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.inference.measures import ApartMeans, Error, Errors, JointMeans, Pair
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.pooling import PooledUncertainty


@dataclass(frozen=True, slots=True)
class PooledMeans:
    """Averages of the sites' means with weights that are public and add up to one; `names` are the sites'.

    A site that is left out has the weight 0.
    """

    sites: tuple[ApartMeans | JointMeans, ...]
    weights: tuple[float, ...]
    names: tuple[str, ...]

    @property
    def weighed(self) -> list[tuple[str, ApartMeans | JointMeans]]:
        """The sites that are in the averages, by name."""
        rows = zip(self.names, self.sites, self.weights, strict=True)
        return [(name, site) for name, site, weight in rows if weight > 0]

    @property
    def values(self) -> Pair:
        """Means of the treated and of the controls."""
        one, other = np.dot(self.weights, np.array([site.values for site in self.sites]))
        return float(one), float(other)

    @property
    def range(self) -> Pair:
        """The range of outcomes."""
        return min(site.range[0] for site in self.sites), max(site.range[1] for site in self.sites)

    @property
    def error_of_difference(self) -> PooledUncertainty:
        """The error of m1 - m0."""
        return PooledUncertainty(tuple(site.error_of_difference for site in self.sites), self.weights)

    def errors(self, alpha: float) -> Errors:
        """Return the error of a m1 - b m0 as a function of a, b and factors of the sampling variances.

        Every site's variance is as for an interval of its own, which is rather too much than too little.
        """
        own = [site.errors(alpha) for site in self.sites]

        def error(a: float, b: float, factors: Pair) -> Error:
            found = [each(a, b, factors) for each in own]
            variance = float(np.dot(np.square(self.weights), [sd**2 for sd, _ in found]))
            return sqrt(variance), weighted_sum(np.array(self.weights), [noise for _, noise in found])

        return error

    def parts(self, a: float, b: float) -> Pair:
        """Return the standard deviations of a m1 - b m0 from sampling and from noise."""
        squares = np.square([site.parts(a, b) for site in self.sites])
        sampling, noise = np.sqrt(np.dot(np.square(self.weights), squares))
        return float(sampling), float(noise)
