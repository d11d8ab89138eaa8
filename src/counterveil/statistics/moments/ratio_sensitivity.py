"""How far one person moves both arms' sums of numerator and denominator, and of squared residuals.

Proof: `ratio_sums.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from counterveil.numerics.arrays import sqrt_up

Bounds = tuple[Fraction, Fraction]


# Proof: ratio_sums.proof.md


@dataclass(frozen=True, slots=True)
class RatioSums:
    """Bounds for sums over an arm of a N and b D, N in `above`, D in `below`; `public_arms` says that arms are public.

    The weights a and b divide what is paid between both sums.
    """

    above: Bounds
    below: Bounds
    weights: tuple[Fraction, Fraction]
    public_arms: bool

    @property
    def _widths(self) -> tuple[Fraction, Fraction]:
        widths = self.above[1] - self.above[0], self.below[1] - self.below[0]
        return self.weights[0] * widths[0], self.weights[1] * widths[1]

    @property
    def _sizes(self) -> tuple[Fraction, Fraction]:
        sizes = (max(map(abs, self.above)), max(map(abs, self.below)))
        return self.weights[0] * sizes[0], self.weights[1] * sizes[1]

    @property
    def total(self) -> Fraction:
        """Largest sum of the changes of all weighted sums."""
        # Within an arm numbers move inside their ranges; from arm to arm they leave one sum and enter another.
        within, across = sum(self._widths, Fraction(0)), 2 * sum(self._sizes, Fraction(0))
        return within if self.public_arms else max(within, across)

    @property
    def length(self) -> Fraction:
        """Largest Euclidean length of that change, rounded up."""
        within, across = (
            sum((part**2 for part in parts), Fraction(0)) for parts in (self._widths, self._sizes)
        )
        return sqrt_up(within if self.public_arms else max(within, 2 * across))


@dataclass(frozen=True, slots=True)
class ResidualSquares:
    """Bounds for sums over an arm of ((N - r D) / s)^2, r released and s the largest |N - r D| there."""

    above: Bounds
    below: Bounds
    public_arms: bool

    def largest(self, ratio: Fraction) -> Fraction:
        """Return the largest (N - r D)^2, which is at a corner."""
        return max((one - ratio * other) ** 2 for one, other in product(self.above, self.below))

    @property
    def total(self) -> Fraction:
        """Largest sum of the changes of both arms' sums, each divided by its largest square."""
        return Fraction(1) if self.public_arms else Fraction(2)

    @property
    def length(self) -> Fraction:
        """Largest Euclidean length of that change, rounded up."""
        return Fraction(1) if self.public_arms else sqrt_up(Fraction(2))
