"""Limits of choices for private pairs: budget parts, propensities, clips, and the least noise they leave.

A replaced pair moves a mean of clipped scores by 2 clip / n. Clips that are compared go `OCTAVES` octaves
(halvings) down from `WIDEST` times the largest score, and some row's weight is at least `_LEAST_WEIGHT`; so
no effect has less noise than that of `least_part`, in parts of the outcome's range over the number of rows.
Whoever judges the answer of a site compares its noise with this, from public numbers alone: "Least noise" of
`rows/pairs/pair_scores.proof.md`.

All of it steers choices, and privacy does not depend on it: that follows from the clip that was taken (same
page).
"""

from __future__ import annotations

from fractions import Fraction

from counterveil.privacy import Budget, Estimand

# The part of the budget that the place takes.
PLACE_PART = Fraction(1, 10)
# The parts of the rest that the models may take.
MODEL_PARTS = [Fraction(k, 20) for k in (3, 4, 6, 8, 10, 12)]
# Propensities are kept this far from 0 and 1.
LEAST_PROPENSITY = 0.02
# A bias that models left is at most what curves and products may do, in standard deviations of outcomes.
MOST_LEFT = 0.35
# How far scores of searched outcomes reach, beside outcomes times weights.
WIDEST = 1.3
# How many octaves below that clips are tried.
OCTAVES = 6
# How far from their centre the innermost outcomes lie, in halves of the range.
INNERMOST = 0.55 / 64
# Some row's largest weight is at least this, and the sum of tilts at most this part of the rows; caps are
# larger.
_LEAST_WEIGHT = {Estimand.ATE: (2.0, 1.0), Estimand.ATO: (0.5, 0.25)}


def score_amounts(budget: Budget, searched: bool) -> list[Fraction]:
    """Return the epsilons that the score may have, the largest first, by whether the place is searched."""
    rest = 1 - PLACE_PART if searched else Fraction(1)
    return [budget.epsilon * rest * (1 - share) for share in MODEL_PARTS]


def least_part(estimand: Estimand, searched: bool) -> Fraction:
    """Return the least that a pair moves an effect, in parts of the outcome's range over the number of rows.

    Scores of events are clipped to their whole range, which is twice the largest weight or more; others may
    be clipped to what the innermost outcomes reach.
    """
    weight, size = _LEAST_WEIGHT.get(estimand, (1.0, 1.0))
    inside = WIDEST * INNERMOST * 2.0**-OCTAVES if searched else 1.0
    return Fraction(inside * weight / size)
