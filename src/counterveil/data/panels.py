"""Measurements of people in several periods, as changes between two of them, and passes that add them up."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import OUTCOME_STEPS, Drop, Fill, Range, outcome_unit, to_steps
from counterveil.data.outcomes import Before
from counterveil.data.passes import Sums
from counterveil.data.study import Study
from counterveil.data.table import Backend, Table
from counterveil.numerics.arm_totals import TwoArms, arm_totals


def complete(table: Table) -> Table:
    """Return the rows with a measurement in every period; others are there only where that pattern is public."""
    gaps = np.logical_or.reduce([numbers < 0 for numbers in table.measures])
    return table.take(np.flatnonzero(~gaps)) if gaps.any() else table


def _declared(study: Study) -> Before:
    assert study.before is not None
    return study.before


def study_of_changes(study: Study) -> Study:
    """Return the study whose outcome is a change between two periods, in the range of changes."""
    low, high = _declared(study).levels
    change = _declared(study).change
    return study._changed(outcome_range=(low - high, high - low) if change is None else change)


def changes_from(table: Table, place: int) -> Table:
    """Return the table whose outcome is the last change since the period at `place`, in the range of changes."""
    outcome = changes(table, len(table.measures) - 1, place)
    return replace(table, study=study_of_changes(table.study), outcome=outcome).sealed()


def changes(table: Table, period: int, place: int) -> NDArray[np.int64]:
    """Return everyone's change between two periods, in steps of the range of changes."""
    before = _declared(table.study)
    apart = table.measures[period] - table.measures[place]
    if before.change is None:
        # From the middle of a range of twice the width.
        found: NDArray[np.int64] = (apart + OUTCOME_STEPS) >> 1
        return found
    unit = float((before.levels[1] - before.levels[0]) / OUTCOME_STEPS)
    return to_steps(unit * apart.astype(np.float64), Range(*before.change))


def change_unit(study: Study) -> Fraction:
    """Return the exact width of one step of a change."""
    return outcome_unit(study_of_changes(study).outcome_bounds)


def complete_sizes(source: Backend) -> tuple[int, int]:
    """Return how many people have a measurement in every period, and how many of them are treated."""
    ((rows, treated),) = source.run(_sizes)
    return int(rows), int(treated)


def _sizes(block: Table) -> Sums:
    rows = complete(block)
    return (np.array([rows.rows, np.count_nonzero(rows.treated)]),)


# Whether people were measured in every period, by what the study declares of missing outcomes and by public counts.
BALANCED, FILLED, UNBALANCED, MAY_BE_UNBALANCED = "balanced", "filled", "unbalanced", "may_be_unbalanced"


def panel_facts(study: Study, people: tuple[int, int] | None = None) -> dict[str, float | str]:
    """Return whether a panel is balanced; nothing where rows do not lie in periods.

    `people` are those measured in every period and all of them, where the pattern of missing values is public.
    """
    if study.before is None or study.before.time is None:
        return {}
    rule = study.missing.get(study.outcome)
    if not isinstance(rule, Drop):
        # Without a rule a missing measurement is refused.
        return {"panel": FILLED if isinstance(rule, Fill) else BALANCED}
    if people is None:
        return {"panel": MAY_BE_UNBALANCED}
    complete, everyone = people
    return {
        "panel": BALANCED if complete == everyone else UNBALANCED,
        "people_in_every_period": complete,
        "people_in_any_period": everyone,
    }


def period_totals(source: Backend, place: int) -> tuple[list[TwoArms], list[TwoArms]]:
    """Return both arms' totals of every period's measurements, and of the changes since the one at `place`."""
    levels, since = source.run(partial(_totals, place=place))
    return [TwoArms.of(line) for line in levels], [TwoArms.of(line) for line in since]


def _totals(block: Table, place: int) -> Sums:
    rows = complete(block)
    levels = [arm_totals(rows.treated, numbers).sums for numbers in rows.measures]
    since = [
        arm_totals(rows.treated, changes(rows, period, place)).sums for period in range(len(rows.measures))
    ]
    return np.stack(levels), np.stack(since)
