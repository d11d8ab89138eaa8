"""Private outcomes as whole numbers around a released centre, clipped to a released half-width."""

# Proof: pair_moments.proof.md

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from counterveil.data import OUTCOME_STEPS, Backend, Study, Table
from counterveil.numerics.arrays import Integers
from counterveil.session import Gate

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


def outcome_of(table: Table, number: int) -> Integers:
    """Return one of a table's outcomes in whole steps, the primary one being number 0."""
    return table.outcome if number == 0 else table.measures[number - 1]


def outcome_alone(gate: Gate, number: int, study: Study) -> Backend:
    """Return the gate's rows with one outcome alone, which the `study` is about."""
    table = gate.rows.table
    return replace(table, study=study, outcome=outcome_of(table, number))
