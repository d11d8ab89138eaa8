"""Gaussian noise, calibrated by its exact profile at any epsilon. Proof: gaussian.proof.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from flint import arb, arb_series

from counterveil.errors import refusal
from counterveil.mechanisms.noise import (
    Described,
    Noise,
    Peaked,
    Reals,
    positive_sensitivity,
    special,
)
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, GaussianEvent, Number, exact


@dataclass(frozen=True, slots=True)
class NormalDistribution(Peaked):
    """The standard normal distribution."""

    @property
    def variance(self) -> float:
        """The variance."""
        return 1.0

    def tail_quantile(self, u: arb) -> arb:
        """Return a ball of sqrt 2 erfcinv(u)."""
        return arb(2).sqrt() * u.erfcinv()

    def size_density(self, x: arb_series) -> arb_series:
        """Return sqrt(2 / pi) exp(-x^2 / 2) as a power series."""
        return (x * x * arb(-0.5)).exp() * (2 / arb.pi()).sqrt()

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        return np.asarray(-0.5 * x * x - 0.5 * np.log(2 * np.pi))

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        return special("ndtr", x)

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        return -special("ndtri", u / 2)

    def breakpoints(self, low: float, high: float, most: int) -> Reals:  # noqa: ARG002 - smooth everywhere
        """Return no points: the density is smooth everywhere."""
        return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Gaussian(Noise, Described):
    """Normal noise of standard deviation sensitivity / mu: mu-GDP, and (epsilon, delta)-DP by its exact
    profile.

    Parameters
    ----------
    sensitivity : number
        Largest Euclidean (l2) change of the released numbers when one person's data change, above 0.
    mu : number
        Sensitivity over standard deviation, above 0.

    Attributes
    ----------
    sensitivity : Fraction
        Largest Euclidean change of the released numbers.
    mu : Fraction
        Sensitivity over standard deviation.

    Raises
    ------
    CounterveilError
        A sensitivity or a mu that is not positive (CV-P100, CV-P102).

    Notes
    -----
    The least delta at epsilon is Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu). Proof:
    ``mechanisms/gaussian.proof.md``.

    References
    ----------
    .. [1] Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy. ICML.

    Examples
    --------
    >>> from counterveil.mechanisms import Gaussian
    >>> Gaussian(sensitivity=1, mu=2).variance
    0.25
    """

    name: ClassVar[str] = "gaussian"
    sensitivity: Fraction
    mu: Fraction

    def __init__(self, sensitivity: Number, mu: Number) -> None:
        object.__setattr__(self, "sensitivity", positive_sensitivity(sensitivity))
        object.__setattr__(self, "mu", exact(mu, "mu"))
        if self.mu <= 0:
            raise refusal("CV-P102", mu=mu)

    @classmethod
    def calibrated(cls, sensitivity: Number, budget: Budget) -> Self:
        """Return the least normal noise that keeps (epsilon, delta), at any epsilon.

        Parameters
        ----------
        sensitivity : number
            Largest Euclidean (l2) change of the released numbers when one person's data change, above 0.
        budget : Budget
            Epsilon and a positive delta.

        Returns
        -------
        Gaussian
            The noise.

        Raises
        ------
        CounterveilError
            A delta of 0 (CV-P102), or a sensitivity that is not positive (CV-P100).

        Examples
        --------
        >>> import counterveil as cv
        >>> from counterveil.mechanisms import Gaussian
        >>> round(float(Gaussian.calibrated(1, cv.Budget(1, "1e-5")).scale), 1)
        3.7
        """
        if budget.pure:
            raise refusal("CV-P102b", budget=budget)
        return cls(sensitivity, mu_of(budget.epsilon, budget.delta))

    def __hash__(self) -> int:
        return self._hash_of(self.sensitivity, self.mu)

    @property
    def unit(self) -> NormalDistribution:
        """The distribution of scale one."""
        return NormalDistribution()

    @property
    def scale(self) -> Fraction:
        """The standard deviation, sensitivity / mu."""
        return self.sensitivity / self.mu

    @property
    def event(self) -> GaussianEvent:
        """What one release costs."""
        return GaussianEvent(self.mu)
