"""What a coordinator knows of a question before a site answers, and the figures that the site then sends.

A `SiteQuestion` holds public numbers alone: unit of privacy, method, budget (epsilon and delta), declared
range of the outcome and number of rows; every bound is computed from it, and it holds nothing of any row.
`ReleasedDifference` and `ReleasedMean` hold a site's figures, which nobody has checked yet: an estimate, its
error (sampling variance, noise, bias) and what is named beside it. Effects, means and ranges are in units of
the outcome; sizes are people.

Bounds from public numbers are right for any data: they follow from the method's sensitivity and plan
(`averages`, `pairs`, `records`, `tables`). `mu` is the largest parameter of Gaussian noise that (epsilon,
delta) pays for (`mechanisms/gaussian.proof.md`). Privacy does not depend on any of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from counterveil.errors import CounterveilError
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, Estimand, Unit, exact
from counterveil.settings.methods import MOST_BIAS


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteQuestion:
    """A question about one outcome of so many rows: public numbers alone.

    Attributes
    ----------
    unit : Unit
        What of a row is protected.
    method : str
        Estimator that was asked for, by name; "auto" where the site chooses.
    estimand : Estimand
        Population over which effects are averaged.
    budget : Budget
        Epsilon and delta of the whole answer.
    mechanisms : tuple of str
        Mechanisms that plain noise may be drawn by.
    settings : mapping
        Settings of the method as they were asked for.
    rows : int
        Number of people that the figures are about.
    low, high : Fraction
        Declared range of the outcome; of times to events it is that of a probability.
    least_propensity : float
        How near to 0 or 1 a propensity may be: as models are cut, or as the design says.
    most_sites : int
        Number of sites whose noises may be in one sum; 1 where answers are not summed.
    """

    unit: Unit
    method: str
    estimand: Estimand
    budget: Budget
    mechanisms: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 1
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    least_propensity: float = 0.0
    most_sites: int = 1

    @property
    def width(self) -> Fraction:
        """Width of the outcome's range: no effect is larger."""
        return self.high - self.low

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """The outcome's range."""
        return self.low, self.high

    @property
    def ends(self) -> Ends:
        """What a mean can be at all."""
        return float(self.low), float(self.high)

    @property
    def limits(self) -> Ends:
        """What an effect can be at all."""
        return -float(self.width), float(self.width)

    @property
    def mu(self) -> Fraction | None:
        """The largest mu of Gaussian noise at the budget; None where delta is zero."""
        return None if self.budget.pure else mu_of(self.budget.epsilon, self.budget.delta)

    @property
    def searched(self) -> bool:
        """Whether outcomes are looked for in their range where pairs are protected: not those of events."""
        return self.low != 0 or self.high != 1

    @property
    def residual_widths(self) -> tuple[Fraction, Fraction]:
        """The least and the largest width of what is averaged: residuals where a prediction is subtracted."""
        bounds = self.settings.get("residual_range")
        if isinstance(bounds, list | tuple) and len(bounds) == 2:
            try:
                low, high = (exact(bound, "residual_range") for bound in bounds)
            except CounterveilError:
                return self.width, self.width
            if low < high:
                return min(self.width, high - low), max(self.width, high - low)
        return self.width, self.width

    @property
    def bias(self) -> float:
        """The most that intervals of the method allow for bias, in standard errors."""
        allowed = self.settings.get("bias")
        return float(allowed) if isinstance(allowed, int | float) else MOST_BIAS

    @property
    def divides_budget(self) -> bool:
        """Whether the question says which part of the budget a variance has."""
        return "variance_share" in self.settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedDifference:
    """A difference with its error as a site sent them.

    `details` are further public or released numbers by name, `level` is the confidence level, `conditional` says that
    the interval holds under a declared bound on confounding, and `independent_variance` that the variance shares no
    noise with the estimate.
    """

    estimate: float
    error: Uncertainty
    details: Mapping[str, Any]
    level: float
    conditional: bool
    independent_variance: bool


@dataclass(frozen=True, slots=True)
class ReleasedMean:
    """The mean of an arm with its error and the size of the arm, or its effective size, as a site sent them."""

    value: float
    error: Uncertainty
    size: float
