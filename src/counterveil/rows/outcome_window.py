"""Clamping of outcomes to a part of their declared range, so that noise for their sums can be smaller.

`OutcomeWindow`, the range halved h times: for an outcome y in whole steps of {0, ..., M}, M = 2^24, and a
window that begins at step l,

    z = 2^h min(max(y - l, 0), M / 2^h),

again a whole step of {0, ..., M}, of a range that is 2^-h times as wide. `Place`, a centre m and half-width
B in steps: (y - m) / B, clipped to [-1, 1] and rounded to whole parts of 2^-16.

In: private outcomes, and a window or place that is public or was released before. Out: clamped private
outcomes, which are summed elsewhere.

Why it is right: clamping acts on one outcome at a time, and a changed outcome still moves one number, by
the width of the part at most. So every bound for outcomes of the declared range holds for clamped ones with
the smaller width. Clamping may bias an estimate; privacy does not depend on where the window lies.

Proof: `rows/linear/linear_estimate.proof.md` (clamped outcomes); for `Place` also
`rows/pairs/pair_moments.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from counterveil.data import OUTCOME_STEPS, Study, Table
from counterveil.numerics.arrays import Integers


@dataclass(frozen=True, slots=True)
class OutcomeWindow:
    """The range halved `halvings` times: [low, low + 2^-halvings] in parts of the range.

    Attributes
    ----------
    low : int
        Lower end in whole steps of the declared range.
    halvings : int
        How often the range is halved; 0 is the whole range.
    """

    low: int = 0
    halvings: int = 0

    @property
    def part(self) -> Fraction:
        """Width in parts of the declared range."""
        return Fraction(1, 1 << self.halvings)

    def clamped(self, outcome: Integers) -> Integers:
        """Return outcomes within the window, in steps of which it has as many as the range."""
        return np.clip(outcome - self.low, 0, OUTCOME_STEPS >> self.halvings) << self.halvings

    def truncate(self, table: Table) -> Table:
        """Return the table with clamped outcomes, the window being their range."""
        if not self.halvings:
            return table
        study = table.study._changed(outcome_range=self.ends(table.study))
        return replace(table, study=study, outcome=self.clamped(table.outcome), measures=())

    def ends(self, study: Study) -> tuple[Fraction, Fraction]:
        """Return both ends in units of the outcome."""
        lo, hi = study.outcome_range
        low = lo + (hi - lo) * Fraction(self.low, OUTCOME_STEPS)
        return low, low + (hi - lo) * self.part


WHOLE_RANGE = OutcomeWindow()


# Fractional digits of outcomes around their centre.
OUTCOME_BITS = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where outcomes lie: the centre and the half-width around it, in whole steps of the outcome."""

    centre: int
    half_width: int

    def fixed(self, outcome: Integers) -> Integers:
        """Return outcomes from the centre on, in parts 2**-16 of the half-width, clipped to [-1, 1] and rounded."""
        moved = ((outcome - self.centre) << (OUTCOME_BITS + 1)) + self.half_width
        return np.asarray(np.clip(moved // (2 * self.half_width), -(1 << OUTCOME_BITS), 1 << OUTCOME_BITS))


WHOLE = Place(OUTCOME_STEPS // 2, OUTCOME_STEPS // 2)
