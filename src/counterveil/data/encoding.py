"""From cells to arrays: gaps, numbers, codes of labels, and outcomes in fixed point.

Outcomes are whole steps between two public bounds, so that sums are exact. The map is the same for every row and looks
at that row alone. Whatever the row holds, the result is an integer in [0, OUTCOME_STEPS]; this, and nothing about
floating point, is what a sensitivity proof needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cells import Coded, Column, Mask, Numbers, double_of
from counterveil.data.domains import Binary, Categories, Range
from counterveil.data.labels import (
    Fill,
    LabelIndex,
    MissingRule,
    index_of,
    is_missing_text,
)
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats, Integers

NO_LABEL = -1
OUTCOME_STEPS = 2**24


def gaps(column: Column, index: LabelIndex | None) -> Mask:
    """Return which rows hold no value; blank text counts as none unless it is a declared label."""
    if isinstance(column, Numbers):
        return column.missing
    blank = np.array([is_missing_text(cell, index) for cell in column.cells], dtype=np.bool_)
    return column.take(blank, for_missing=True)


def numbers(column: Column, hole: Mask, fill: float, name: str) -> NDArray[np.float64]:
    """Return the column as doubles with `fill` in its gaps, or raise CV-D002."""
    if isinstance(column, Numbers):
        if column.text is not None and column.text.any():
            raise refusal("CV-D002", name=name)
        # Not copied where nothing is filled in: what is made of the numbers is.
        values = column.values.astype(np.float64, copy=bool(np.count_nonzero(hole)))
    else:
        parsed = [double_of(cell) for cell in column.cells]
        doubles = np.array([fill if value is None else value for value in parsed], dtype=np.float64)
        refused = np.array([value is None for value in parsed], dtype=np.bool_)
        if (column.take(refused, for_missing=False) & ~hole).any():
            raise refusal("CV-D002", name=name)
        values = column.take(doubles, for_missing=fill)
    if np.count_nonzero(hole):
        values[hole] = fill
    return values


def codes(column: Column, hole: Mask, index: LabelIndex, rule: MissingRule | None) -> NDArray[np.int64]:
    """Return for each row the place of its label, or of the label filled in; -1 where it has none."""
    found = _codes(column, index)
    place = index.code(rule.value) if isinstance(rule, Fill) else None
    if np.count_nonzero(hole):
        found[hole] = NO_LABEL if place is None else place
    return found


def domain_codes(
    column: Column, hole: Mask, domain: Binary | Categories, rule: MissingRule | None
) -> NDArray[np.int64]:
    """Return the same for a covariate, whose labels that are not listed may all count as one of them."""
    found = codes(column, hole, index_of(domain.labels), rule)
    if isinstance(domain, Categories) and domain.other_code is not None:
        found[(found == NO_LABEL) & ~hole] = domain.other_code
    return found


def _codes(column: Column, index: LabelIndex) -> NDArray[np.int64]:
    if isinstance(column, Coded):
        places = [index.code(cell) for cell in column.cells]
        per_cell = np.array([NO_LABEL if place is None else place for place in places], dtype=np.int64)
        return column.take(per_cell, for_missing=NO_LABEL)
    found = np.full(len(column), NO_LABEL, dtype=np.int64)
    meant: Mapping[Any, int] = index.doubles
    if column.values.dtype.kind in "biu":
        meant = {int(number): place for number, place in index.numbers.items() if number.denominator == 1}
    for number, place in meant.items():
        found = np.where(column.values == number, place, found)
    return found


def outcome_unit(bounds: Range) -> Fraction:
    """Return the exact width of one step: an outcome is about lo + unit * steps."""
    return bounds.width / OUTCOME_STEPS


def to_steps(values: Floats, bounds: Range) -> Integers:
    """Return each value, clamped and rounded down to whole steps, in [0, OUTCOME_STEPS].

    Defined for every double. A NaN, which no reader lets through, gives 0: nothing that is not finite is ever made an
    integer, since processors disagree on the result.
    """
    low, high = float(bounds.lo), float(bounds.hi)
    steps_per_unit = float(OUTCOME_STEPS / bounds.width)
    # Subtraction and multiplication round monotonically, so the whole map is monotone.
    steps = np.floor((_between(values, low, high) - low) * steps_per_unit)
    # The upper bound itself is a full number of steps, whichever way the product was rounded.
    steps[values >= high] = OUTCOME_STEPS
    return np.clip(steps, 0, OUTCOME_STEPS).astype(np.int64)


def clamp(values: Floats, bounds: Range) -> Floats:
    """Return each value moved to the nearer bound where it lies outside; infinities are outside, a NaN is below."""
    found = _between(values, *bounds.floats())
    # Adding zero makes one zero of the two, so that equal values are equal to the bit.
    found += 0.0
    return found


def _between(values: Floats, low: float, high: float) -> Floats:
    """Return a copy of the values between the bounds; what is not above the lower one, as a NaN is not, becomes it."""
    # By comparison: on signalling NaNs, the maximum differs between processors.
    found: Floats = np.where(values > low, values, low)
    np.minimum(found, high, out=found)
    return found
