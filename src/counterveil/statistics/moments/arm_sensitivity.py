"""How far one record can move moments by arm, the balance of two private arms, and sums behind ratios.

Proof: `arm_grams.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from counterveil.numerics.arrays import sqrt_up
from counterveil.statistics.moments.sensitivity import FreeGram

# Proof: arm_grams.proof.md


@dataclass(frozen=True, slots=True)
class ArmGrams:
    """l2 sensitivity of (diagonal, OFF_DIAGONAL * upper triangle) of the means of w w' in two arms, all together.

    Every row is in one arm and has |w|^2 <= squared_reach.
    """

    rows: int
    squared_reach: Fraction

    @property
    def entries(self) -> Fraction:
        """Largest Euclidean length of a change of the weighted entries: what it is for one arm."""
        return FreeGram(self.rows, self.squared_reach).entries


# Proof: arm_grams.proof.md


@dataclass(frozen=True, slots=True)
class FeatureMoments:
    """Joint l2 sensitivity of the means of (x_j, 1.665 x_j^2) and of weight * (2t - 1), x_j in [-1, 1].

    `features` counts the features as `RecordMoments` does.
    """

    rows: int
    features: int
    weight: Fraction

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means."""
        return sqrt_up(4 * self.features + 4 * self.weight**2) / self.rows


# Proof: arm_balance.proof.md

# Weights of the squares beside the numbers, and of the flags of labels.
SQUARES, FLAGS = Fraction(1665, 1000), Fraction(2)


@dataclass(frozen=True, slots=True)
class ArmBalance:
    """l2 sensitivity of the sums by arm of (1, u_j, k (u_j^2 - 1/2)) for numbers, u_j = +-1 for truth values, and 2
    times a flag for every label; k = 1.665, u_j in [-1, 1].
    """

    numbers: int
    binaries: int
    labelled: int  # covariates with labels, however many labels they have

    @property
    def sums(self) -> Fraction:
        """Largest Euclidean length of a change of all sums."""
        within = 4 * (self.numbers + self.binaries) + 2 * FLAGS**2 * self.labelled
        across = 2 + self.numbers * (2 + SQUARES**2 / 2) + 2 * self.binaries + 2 * FLAGS**2 * self.labelled
        return sqrt_up(max(within, across))


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
