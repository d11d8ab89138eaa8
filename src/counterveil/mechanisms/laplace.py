"""Laplace noise: pure epsilon for one number of known sensitivity. Proof: laplace.proof.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, arb_series

from counterveil.mechanisms.fast import Table, smooth_table
from counterveil.mechanisms.noise import Noise, Reals
from counterveil.mechanisms.source import positive_epsilon, positive_sensitivity
from counterveil.privacy import LaplaceEvent, Number


@dataclass(frozen=True, slots=True)
class LaplaceDistribution:
    """Density exp(-|x|) / 2."""

    @property
    def variance(self) -> float:
        """The variance."""
        return 2.0

    def tail_quantile(self, u: arb) -> arb:
        """Return a ball of -ln u."""
        return -u.log()

    def size_density(self, x: arb_series) -> arb_series:
        """Return exp(-x) as a power series."""
        return (-x).exp()

    def table(self) -> Table:
        """Return a newly built table."""
        return smooth_table(self)

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        return np.asarray(-np.abs(x) - np.log(2.0))

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        tail = 0.5 * np.exp(-np.abs(x))
        return np.where(x < 0, tail, 1 - tail)

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        with np.errstate(divide="ignore"):
            return -np.log(u)

    def kinks(self, low: float, high: float, most: int) -> Reals:  # noqa: ARG002 - there is but one
        """Return the peak, the one point where the density is not smooth."""
        return np.zeros(1 if low <= 0 <= high else 0)


@dataclass(frozen=True, slots=True)
class Laplace(Noise):
    """Noise of density proportional to exp(-epsilon |x| / sensitivity)."""

    sensitivity: Fraction
    epsilon: Fraction

    def __init__(self, sensitivity: Number, epsilon: Number) -> None:
        object.__setattr__(self, "sensitivity", positive_sensitivity(sensitivity))
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))

    @property
    def name(self) -> str:
        """The name of the mechanism in records."""
        return "laplace"

    @property
    def unit(self) -> LaplaceDistribution:
        """The distribution of scale one."""
        return LaplaceDistribution()

    @property
    def scale(self) -> Fraction:
        """sensitivity / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def event(self) -> LaplaceEvent:
        """What one release costs."""
        return LaplaceEvent(self.epsilon)

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text."""
        return {"mechanism": self.name, "sensitivity": str(self.sensitivity), "epsilon": str(self.epsilon)}
