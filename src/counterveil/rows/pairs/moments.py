"""Released sums of public vectors times private treatments and outcomes, all in one noisy vector.

    sum_i q_i (x) (s A_i, A_i y_i, (1 - A_i) y_i),    s^2 just below 2,

with (x) the products of all entries, q_i public vectors made of row i's covariates, A_i whether it is
treated, and y_i in [-1, 1] its outcome around a public or released centre m, (y - m) / B clipped, with B a
half-width in the outcome's units. These are the first moments that a logistic regression of treatments, and
linear regressions of outcomes in either arm, need: one vector holds three models.

In: private treatments and outcomes; covariates are public. Out: the sums with noise for their Euclidean
change, without units (outcomes in half-widths).

Why it is right: if the pair (A, y) of a row is replaced, (s A, A y, (1 - A) y) moves by at most 2: by
``|y - y'|`` <= 2 within an arm, and by sqrt(s^2 + y^2 + y'^2) <= 2 from one arm to the other. So the sums
move by at most twice the longest q_i. Treatments cost nothing beside outcomes, nor do more arms; k outcomes
of a row move the sums farther by the root of k.

Proof: `rows/pairs/pair_moments.proof.md`. s = 181/128 is just below the root of 2, the largest weight of
treatments that the bound leaves free.
"""

# Proof: pair_moments.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Integers, sqrt_up
from counterveil.rows.outcome_numbers import outcome_of
from counterveil.rows.outcome_window import OUTCOME_BITS, Place
from counterveil.rows.pairs.vectors import WeightedVectors, summed
from counterveil.session import Gate, ReleasedVector

# s: a rational just below the root of two, what a change of treatment weighs.
TREATED = Fraction(181, 128)
# How far a replaced pair moves (s A, A y, (1 - A) y), or indicators of arms and outcomes in them.
PAIR_LENGTH = Fraction(2)
# One step of an outcome around its centre, in parts of the half-width.
_OUTCOME = Fraction(1, 1 << OUTCOME_BITS)


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """The sums for two arms, of one or several outcomes.

    Attributes
    ----------
    vectors : WeightedVectors
        q_i, public.
    places : tuple of Place
        Where each outcome lies, the primary one first: released before, or the whole range.
    propensity_known : bool
        Whether the design says every row's chance of treatment: the sums of s A are left out then.
    """

    vectors: WeightedVectors
    places: tuple[Place, ...]
    propensity_known: bool

    def release(self, gate: Gate, name: str) -> ReleasedVector:
        """Return the noisy sums of s A, then those of A y and (1 - A) y of every outcome; p numbers each."""

        def exact() -> list[Fraction]:
            table = gate.rows.table
            outcomes = [(outcome_of(table, number), place) for number, place in enumerate(self.places)]
            return pair_sums(self.vectors, table.treated, outcomes, self.propensity_known)

        return gate.release_vector(name, exact, pair_sensitivity(self.vectors, len(self.places)))


@dataclass(frozen=True, slots=True, eq=False)
class ArmSums:
    """The sums for several arms: of q_i times every arm's indicator, then times indicator and outcome.

    Attributes
    ----------
    vectors : WeightedVectors
        q_i, public.
    arms : int
        Number of arms.
    place : Place
        Where outcomes lie: released before, or the whole range.
    """

    vectors: WeightedVectors
    arms: int
    place: Place

    def release(self, gate: Gate, name: str) -> ReleasedVector:
        """Return the noisy sums; p numbers an arm, indicators first."""

        def exact() -> list[Fraction]:
            table = gate.rows.table
            return arm_sums(self.vectors, table.arm, arms=self.arms, outcome=table.outcome, place=self.place)

        return gate.release_vector(name, exact, pair_sensitivity(self.vectors))


@dataclass(frozen=True, slots=True, eq=False)
class TreatedSums:
    """The sums of q_i over the rows of the second of two arms: a changed treatment moves them by one q_i.

    Attributes
    ----------
    vectors : WeightedVectors
        q_i, public.
    """

    vectors: WeightedVectors

    def release(self, gate: Gate, name: str) -> ReleasedVector:
        """Return the noisy sums, p numbers."""

        def exact() -> list[Fraction]:
            treated = gate.rows.table.arm == 1
            return summed(self.vectors, lambda span: treated[span, None].astype(np.int64), (Fraction(1),))

        return gate.release_vector(name, exact, self.vectors.length)


def pair_sums(
    vectors: WeightedVectors,
    treated: NDArray[np.bool_],
    outcomes: Sequence[tuple[Integers, Place]],
    propensity_known: bool = False,
) -> list[Fraction]:
    """Return the exact sums with s A, unless its chance is known, and with A y and (1 - A) y of every outcome.

    With one outcome a change of treatment weighs s, with several the root of their number times that.
    """

    def pairs(span: slice) -> Integers:
        arm = treated[span]
        columns = [] if propensity_known else [arm.astype(np.int64)]
        for outcome, place in outcomes:
            y = place.fixed(outcome[span])
            columns += [np.where(arm, y, 0), np.where(arm, 0, y)]
        return np.column_stack(columns)

    units = (_OUTCOME,) * (2 * len(outcomes))
    return summed(vectors, pairs, units if propensity_known else (TREATED * root(len(outcomes)), *units))


def root(outcomes: int) -> Fraction:
    """Return a rational no more than the root of the number of outcomes, and just below it where there are several."""
    return Fraction(isqrt(outcomes << 20), 1 << 10)


def arm_sums(
    vectors: WeightedVectors, arm: NDArray[np.intp], arms: int, outcome: Integers, place: Place
) -> list[Fraction]:
    """Return the exact sums with every arm's indicator, then with indicator and outcome."""

    def pairs(span: slice) -> Integers:
        inside = (arm[span, None] == np.arange(arms)).astype(np.int64)
        return np.column_stack([inside, inside * place.fixed(outcome[span])[:, None]])

    return summed(vectors, pairs, (Fraction(1),) * arms + (_OUTCOME,) * arms)


def pair_sensitivity(vectors: WeightedVectors, outcomes: int = 1) -> Fraction:
    """Return a bound on the Euclidean length by which a replaced row, of so many outcomes, moves the sums."""
    return PAIR_LENGTH * vectors.length * sqrt_up(Fraction(outcomes))
