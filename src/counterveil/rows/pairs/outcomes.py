"""Private outcomes as whole numbers around a released centre, clipped to a released half-width."""

# Proof: pair_moments.proof.md

from __future__ import annotations

from counterveil.data import Table
from counterveil.numerics.arrays import Integers


def outcome_of(table: Table, number: int) -> Integers:
    """Return one of a table's outcomes in whole steps, the primary one being number 0."""
    return table.outcome if number == 0 else table.measures[number - 1]
