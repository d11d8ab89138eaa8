"""Sums of one outcome or several in every private arm, released as one vector.

With r in [-1, 1] an outcome in parts of half its range, a row adds (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 to the
three sums of its arm, each times the outcome's weight w_j: numbers of rows and squares come with the sums of
outcomes. Under replacement of a row the vector moves by at most sqrt(2 sum w_j^2) in length and 2 sum w_j in
the sum of changes.
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
