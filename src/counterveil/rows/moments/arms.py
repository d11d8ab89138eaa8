"""Sums of one outcome or several in every private arm, released as one vector.

With r in [-1, 1] an outcome in half ranges around the middle of its declared range, a row adds to its arm

    w_j (1-r)^2 / 4,    w_j (1-r^2) / 2,    w_j (1+r)^2 / 4    for every outcome j of public weight w_j,

so that the noise of outcome j is in proportion to 1 / w_j. Without the weight the three numbers sum to one:
their sums give the number of rows in the arm, the sum of r and the sum of r^2 as linear combinations.

In: private rows (arm and outcomes). Out: noisy weighted sums (outcomes, arms, 3), with no unit, with Laplace
or Gaussian noise.

Why it is right: the three numbers are not negative and sum to one, and a row is in one arm. Replacing a row
therefore moves the vector by at most sqrt(2 sum w_j^2) in Euclidean length and 2 sum w_j in the sum of
absolute changes, whatever the number of arms.
Proof: `rows/moments/arms.proof.md`.
"""

# Proof: arms.proof.md

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from counterveil.data import OUTCOME_STEPS
from counterveil.numerics.arm_totals import Arm
from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.rows.counts import release_sums
from counterveil.rows.moments.cell_sums import SCORE_TERMS, three_terms
from counterveil.rows.outcome_numbers import Outcomes, totals_by_arm
from counterveil.session import Gate

# The name of the sums in a plan.
NAME = "cells"


def bounds(weights: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """Return the largest sum of absolute changes of all weighted sums, and their largest Euclidean length."""
    squares = sum((weight**2 for weight in weights), Fraction(0))
    return SCORE_TERMS.absolute * sum(weights, Fraction(0)), SCORE_TERMS.euclidean * sqrt_up(squares)


def three_sums(arm: Arm) -> tuple[Fraction, Fraction, Fraction]:
    """Return an arm's sums of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4, r = 2 y - 1 for y in parts of the range; exact."""
    total = Fraction(2 * arm.total, OUTCOME_STEPS) - arm.count
    squares = Fraction(4 * arm.squares, OUTCOME_STEPS**2) - 2 * total - arm.count
    return three_terms(arm.count, total, squares)


def release_arm_cells(gate: Gate, outcomes: Outcomes, pure: bool) -> Floats:
    """Return the released weighted sums, (outcomes, arms, 3), with Laplace noise where `pure`, else Gaussian."""
    totals = totals_by_arm(gate.rows.batches, outcomes)
    exact = [
        weight * value
        for weight, arms in zip(outcomes.weights, totals, strict=True)
        for arm in arms
        for value in three_sums(arm)
    ]
    noisy = release_sums(gate, NAME, exact, pure, *bounds(outcomes.weights))
    return noisy.floats().reshape(len(totals), -1, 3)
