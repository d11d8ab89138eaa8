"""Measurements of people in several periods, as changes between two of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import Range
from counterveil.data.encoding import OUTCOME_STEPS, to_steps
from counterveil.data.outcomes import Before
from counterveil.data.table import Table


def complete(table: Table) -> Table:
    """Return the rows with a measurement in every period; others are there only where that pattern is public."""
    gaps = np.logical_or.reduce([numbers < 0 for numbers in table.measures])
    return table.take(np.flatnonzero(~gaps)) if gaps.any() else table


def declared_change(table: Table) -> bool:
    """Return whether the study declares a range of changes, which are then released themselves."""
    return _declared(table).change is not None


def _declared(table: Table) -> Before:
    assert table.study.before is not None
    return table.study.before


def changes_from(table: Table, place: int) -> Table:
    """Return the table whose outcome is the last change since the period at `place`, in the range of changes."""
    low, high = _declared(table).levels
    change = _declared(table).change
    study = table.study.changed(outcome_range=(low - high, high - low) if change is None else change)
    outcome = changes(table, len(table.measures) - 1, place)
    return replace(table, study=study, outcome=outcome).sealed()


def changes(table: Table, period: int, place: int) -> NDArray[np.int64]:
    """Return everyone's change between two periods, in steps of the range of changes."""
    before = _declared(table)
    apart = table.measures[period] - table.measures[place]
    if before.change is None:
        # From the middle of a range of twice the width.
        found: NDArray[np.int64] = (apart + OUTCOME_STEPS) >> 1
        return found
    unit = float((before.levels[1] - before.levels[0]) / OUTCOME_STEPS)
    return to_steps(unit * apart.astype(np.float64), Range(*before.change))


def change_unit(table: Table) -> Fraction:
    """Return the exact width of one step of a change."""
    return changes_from(table, 0).outcome_unit
