"""Sums behind the ratio of two outcomes in both arms, and squared residuals around the released ratios.

With N the numerator and D the denominator of a person (for example cost and visits, each in its own units and
clamped to its declared range), an arm has the ratio r_a = sum N / sum D. Released are, with public weights
w_N, w_D,

    (w_N sum N, w_D sum D) of every arm, then sum ((N - r_a D) / s_a)^2 with s_a the largest |N - r_a D|,

where r_a is made of the released sums. The squared residuals give the sampling variance of the ratio by the
delta method (N - r D is what a person adds to the error of the ratio, times the mean of D). In come exact
integer sums of private people in steps of the declared ranges, 2^24 of them; out come noisy sums in units of
the outcomes.

Why it is right: where everything about a person is private, also the arm, the sums of both arms are one
vector and a person moves at most one arm's sums before and one after. Where arms are public, a person moves
the sums of one arm alone, by the widths of the ranges; each arm is a release of its own, and sums start at
what the ranges make certain. (N - r D)^2 is convex, so its largest value is at a corner of the ranges, and a
person adds a number in [0, 1] to the squared residuals. `ArmRatios` has the bounds, for Laplace (`_l1`) and
Gaussian (`_l2`) noise.
Proof: `rows/moments/ratio_sums.proof.md`.
"""

# Proof: ratio_sums.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Sums, Table
from counterveil.numerics.arrays import sqrt_up
from counterveil.rows.counts import release_sums
from counterveil.rows.linear.weighted_sum import exact_dot
from counterveil.session import Gate

# Ends of a declared range.
Ends = tuple[Fraction, Fraction]
# Arms in the order of their sums.
ARMS = ("treated", "control")
# The name of both arms' releases where arms are private.
BOTH_ARMS = "both arms"
# Ratios around which residuals are taken are rounded to fractions with denominators up to this.
_LARGEST_DENOMINATOR = 10**9


@dataclass(frozen=True, slots=True)
class PairSums:
    """Exact sums over an arm, in steps of the ranges.

    Attributes
    ----------
    count : int
        Number of people.
    numerator, denominator : int
        Sums of N and of D.
    squares : tuple of int
        Sums of N N, N D and D D.
    """

    count: int
    numerator: int
    denominator: int
    squares: tuple[int, int, int]

    @classmethod
    def of(cls, sums: NDArray[np.object_]) -> PairSums:
        """Return a line of `pair_sums`."""
        count, numerator, denominator, *squares = map(int, sums)
        return cls(count, numerator, denominator, (squares[0], squares[1], squares[2]))


def arm_sums(numerator: NDArray[np.int64], denominator: NDArray[np.int64]) -> PairSums:
    """Return the sums over the people of one arm."""
    squares = (
        exact_dot(numerator, numerator),
        exact_dot(numerator, denominator),
        exact_dot(denominator, denominator),
    )
    return PairSums(len(numerator), int(numerator.sum()), int(denominator.sum()), squares)


def pair_sums(table: Table) -> Sums:
    """Return the sums over the treated people of a block, then over the others."""
    arms = [
        arm_sums(table.outcome[rows], table.measures[0][rows]) for rows in (table.treated, ~table.treated)
    ]
    return (
        np.array([[arm.count, arm.numerator, arm.denominator, *arm.squares] for arm in arms], dtype=object),
    )


@dataclass(frozen=True, slots=True)
class ReleasedRatio:
    """What was released of one arm, in units of the outcomes.

    Attributes
    ----------
    numerator, denominator : Fraction
        Noisy sums of N and of D.
    sums_variance : float
        Variance of the noise of each weighted sum; that of sum N has it over w_N squared.
    residuals : float
        Noisy sum of ((N - r D) / s)^2.
    residuals_variance : float
        Variance of its noise.
    largest : Fraction
        s^2.
    """

    numerator: Fraction
    denominator: Fraction
    sums_variance: float
    residuals: float
    residuals_variance: float
    largest: Fraction


@dataclass(frozen=True, slots=True)
class ArmRatios:
    """Sums of a numerator and a denominator in both arms, and of squared residuals around their released ratios.

    Attributes
    ----------
    numerator, denominator : (Fraction, Fraction)
        Declared ranges of N and of D, which rows are clamped to.
    weights : (Fraction, Fraction)
        w_N and w_D, which divide what is paid between both sums.
    public_arms : bool
        Whether arms are public: then everybody moves the sums of their own arm alone.
    gaussian : bool
        Gaussian noise by the Euclidean length of a change, else Laplace noise by the sum of changes.
    """

    numerator: Ends
    denominator: Ends
    weights: tuple[Fraction, Fraction]
    public_arms: bool
    gaussian: bool

    @property
    def sums_l1(self) -> Fraction:
        """Largest sum of the changes of all weighted sums."""
        # Within an arm numbers move inside their ranges; from arm to arm they leave one sum and enter another.
        same_arm = sum(self._widths, Fraction(0))
        other_arm = 2 * sum(self._sizes, Fraction(0))
        return same_arm if self.public_arms else max(same_arm, other_arm)

    @property
    def sums_l2(self) -> Fraction:
        """Largest Euclidean length of that change, rounded up."""
        same_arm = sum((width**2 for width in self._widths), Fraction(0))
        other_arm = sum((size**2 for size in self._sizes), Fraction(0))
        return sqrt_up(same_arm if self.public_arms else max(same_arm, 2 * other_arm))

    @property
    def _widths(self) -> tuple[Fraction, Fraction]:
        """How far N and D of one person move a weighted sum inside their ranges."""
        w_n, w_d = self.weights
        return w_n * (self.numerator[1] - self.numerator[0]), w_d * (
            self.denominator[1] - self.denominator[0]
        )

    @property
    def _sizes(self) -> tuple[Fraction, Fraction]:
        """The largest that N and D of one person add to a weighted sum, in size."""
        w_n, w_d = self.weights
        return w_n * max(map(abs, self.numerator)), w_d * max(map(abs, self.denominator))

    @property
    def residuals_l1(self) -> Fraction:
        """Largest sum of the changes of both arms' squared residuals, each divided by its largest square."""
        return Fraction(1) if self.public_arms else Fraction(2)

    @property
    def residuals_l2(self) -> Fraction:
        """Largest Euclidean length of that change, rounded up."""
        return Fraction(1) if self.public_arms else sqrt_up(Fraction(2))

    def largest_square(self, ratio: Fraction) -> Fraction:
        """Return the largest (N - r D)^2, which is at a corner of the ranges."""
        return max((n - ratio * d) ** 2 for n, d in product(self.numerator, self.denominator))

    def release(self, gate: Gate) -> list[ReleasedRatio]:
        """Return what is released of the treated, then of the others; one pass over the rows."""
        (sums,) = gate.rows.batches.run(pair_sums)
        return self.release_sums(gate, [PairSums.of(arm) for arm in sums])

    def release_sums(self, gate: Gate, arms: list[PairSums]) -> list[ReleasedRatio]:
        """Return the same of exact sums of both arms."""
        groups = [(name, [arm]) for name, arm in zip(ARMS, arms, strict=True)]
        if not self.public_arms:
            groups = [(BOTH_ARMS, arms)]
        return [
            released for name, members in groups for released in self._release_together(gate, name, members)
        ]

    def _release_together(self, gate: Gate, name: str, arms: list[PairSums]) -> list[ReleasedRatio]:
        """Return what is released of arms whose sums are one vector."""
        values = [value for arm in arms for value in self.scaled(arm)]
        sums = release_sums(
            gate, f"sums of {name}", values, pure=not self.gaussian, l1=self.sums_l1, l2=self.sums_l2
        )
        pairs = [
            self._unscaled(arm, sums.values[2 * index : 2 * index + 2]) for index, arm in enumerate(arms)
        ]
        ratios = [self._ratio(numerator, denominator, sums.variance) for numerator, denominator in pairs]
        largest = [self.largest_square(ratio) for ratio in ratios]
        squares = [
            self.squares(arm, ratio) / most for arm, ratio, most in zip(arms, ratios, largest, strict=True)
        ]
        residuals = release_sums(
            gate,
            f"residuals of {name}",
            squares,
            pure=not self.gaussian,
            l1=self.residuals_l1,
            l2=self.residuals_l2,
        )
        return [
            ReleasedRatio(
                numerator=numerator,
                denominator=denominator,
                sums_variance=sums.variance,
                residuals=float(value),
                residuals_variance=residuals.variance,
                largest=most,
            )
            for (numerator, denominator), value, most in zip(pairs, residuals.values, largest, strict=True)
        ]

    def scaled(self, arm: PairSums) -> list[Fraction]:
        """Return both weighted sums of an arm, exact; where arms are public, above what the ranges make certain."""
        weighted = []
        for steps, ends, weight in zip(
            (arm.numerator, arm.denominator), (self.numerator, self.denominator), self.weights, strict=True
        ):
            above_low = steps * (ends[1] - ends[0]) / OUTCOME_STEPS
            weighted.append(weight * (above_low if self.public_arms else above_low + arm.count * ends[0]))
        return weighted

    def squares(self, arm: PairSums, ratio: Fraction) -> Fraction:
        """Return the sum of (N - r D)^2, exact.

        With N = N_0 + u n and D = D_0 + v d in steps n and d, N - r D = (N_0 - r D_0) + u n - r v d.
        """
        unit_n, unit_d = ((ends[1] - ends[0]) / OUTCOME_STEPS for ends in (self.numerator, self.denominator))
        start = self.numerator[0] - ratio * self.denominator[0]
        step = ratio * unit_d
        numerators, products, denominators = arm.squares
        linear = 2 * start * (unit_n * arm.numerator - step * arm.denominator)
        return (
            arm.count * start**2
            + linear
            + unit_n**2 * numerators
            - 2 * unit_n * step * products
            + step**2 * denominators
        )

    def _unscaled(self, arm: PairSums, weighted: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        """Return an arm's noisy sums of N and D; its number of people enters where arms are public alone."""
        numerator, denominator = (
            value / weight for value, weight in zip(weighted, self.weights, strict=True)
        )
        if not self.public_arms:
            return numerator, denominator
        return numerator + arm.count * self.numerator[0], denominator + arm.count * self.denominator[0]

    def _ratio(self, numerator: Fraction, denominator: Fraction, variance: float) -> Fraction:
        """Return the ratio that residuals are taken around, of released sums, its denominator above its noise."""
        least = Fraction(sqrt(variance)) / self.weights[1]
        return (numerator / max(denominator, least)).limit_denominator(_LARGEST_DENOMINATOR)
