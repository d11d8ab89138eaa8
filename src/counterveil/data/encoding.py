"""From cells to arrays: gaps, numbers, codes of labels, arms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeGuard

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
    number_of,
)
from counterveil.data.wrong_data import constant_treatment, strange_treatment, text_for_number, undeclared_arm
from counterveil.numerics.arrays import Floats, Integers

if TYPE_CHECKING:
    from counterveil.data.study import Study


_NO_LABEL = -1


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
            raise text_for_number(name)
        # Not copied where nothing is filled in: what is made of the numbers is.
        values = column.values.astype(np.float64, copy=bool(np.count_nonzero(hole)))
    else:
        parsed = [double_of(cell) for cell in column.cells]
        doubles = np.array([fill if value is None else value for value in parsed], dtype=np.float64)
        refused = np.array([value is None for value in parsed], dtype=np.bool_)
        if (column.take(refused, for_missing=False) & ~hole).any():
            raise text_for_number(name)
        values = column.take(doubles, for_missing=fill)
    if np.count_nonzero(hole):
        values[hole] = fill
    return values


def codes(column: Column, hole: Mask, index: LabelIndex, rule: MissingRule | None) -> NDArray[np.int64]:
    """Return for each row the place of its label, or of the label filled in; -1 where it has none."""
    found = _codes(column, index)
    place = index.code(rule.value) if isinstance(rule, Fill) else None
    if np.count_nonzero(hole):
        found[hole] = _NO_LABEL if place is None else place
    return found


def domain_codes(
    column: Column, hole: Mask, domain: Binary | Categories, rule: MissingRule | None
) -> NDArray[np.int64]:
    """Return the same for a covariate, whose labels that are not listed may all count as one of them."""
    found = codes(column, hole, index_of(domain.labels), rule)
    if isinstance(domain, Categories) and domain.other_code is not None:
        found[(found == _NO_LABEL) & ~hole] = domain.other_code
    return found


# Rows of a short column, and cells of such columns that are worked on at once.
_SHORT, TOGETHER = 1 << 13, 1 << 14


def short_and_whole(column: Column, hole: Mask) -> TypeGuard[Numbers]:
    """Return whether a column is one of few doubles without gaps."""
    return (
        isinstance(column, Numbers)
        and len(hole) <= _SHORT
        and column.text is None
        and column.values.dtype == np.float64
        and not np.count_nonzero(hole)
    )


def codes_of_doubles(values: Floats, domain: Binary | Categories) -> Floats:
    """Return the same as doubles for columns of doubles without gaps, all with the labels of this domain."""
    found, listed = np.zeros(values.shape), np.zeros(values.shape, dtype=np.bool_)
    for number, place in index_of(domain.labels).doubles.items():
        meant = values == number
        listed |= meant
        if place:
            found += np.multiply(meant, float(place))
    if not listed.all():
        other = domain.other_code if isinstance(domain, Categories) else None
        found[~listed] = _NO_LABEL if other is None else other
    return found


def _codes(column: Column, index: LabelIndex) -> NDArray[np.int64]:
    if isinstance(column, Coded):
        places = [index.code(cell) for cell in column.cells]
        per_cell = np.array([_NO_LABEL if place is None else place for place in places], dtype=np.int64)
        return column.take(per_cell, for_missing=_NO_LABEL)
    found = np.full(len(column), _NO_LABEL, dtype=np.int64)
    meant: Mapping[Any, int] = index.doubles
    if column.values.dtype.kind in "biu":
        meant = {int(number): place for number, place in index.numbers.items() if number.denominator == 1}
    for number, place in meant.items():
        found = np.where(column.values == number, place, found)
    return found


def arms(column: Column, hole: Mask, study: Study) -> NDArray[np.intp]:
    """Return the arm of every row: 1 treated and 0 control, or the place in `study.arms`.

    Labels that are not declared raise CV-D017; in a study of two arms CV-D004 or CV-D005.
    """
    seen = SeenArms(study)
    found = seen.add(column, hole)
    seen.check()
    return found


class SeenArms:
    """The arms of rows that are read part by part, and whether all parts together fit the study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        # Rows of each arm; of two arms, control first.
        self.counts = np.zeros(2 if study.arms is None else len(study.arms), dtype=np.int64)
        # Labels that are not declared, by a digest, one or more of them, and how many rows have such a label.
        self._others: set[int] = set()
        self._other_rows = 0

    def facts(self) -> dict[str, Any]:
        """Return what was seen so far, in whole numbers."""
        # Two tell as much as more do.
        others = sorted(self._others)[:2]
        return {"counts": self.counts.tolist(), "others": others, "other_rows": self._other_rows}

    def join(self, facts: Mapping[str, Any]) -> None:
        """Add what was seen of other rows of the same study."""
        self.counts += np.array(facts["counts"], dtype=np.int64)
        self._others |= set(facts["others"])
        self._other_rows += facts["other_rows"]

    def add(self, column: Column, hole: Mask) -> NDArray[np.intp]:
        """Return the arm of every row of a part, as `arms` does; rows with undeclared labels count as control."""
        study = self._study
        found = codes(column, hole, index_of(study.treatment_labels), study.missing.get(study.treatment))
        other: Mask = found == _NO_LABEL
        strangers = int(np.count_nonzero(other))
        if strangers and len(self._others) < 2:
            self._others |= {_digest(label) for label in _labels_in(column.keep(other & ~hole))}
        self._other_rows += strangers
        place = np.where(other, 0, found) if study.arms is not None else (found == 0)
        arm: NDArray[np.intp] = place.astype(np.intp)
        self.counts += np.bincount(arm, minlength=len(self.counts))
        return arm

    def check(self) -> None:
        """Raise what the labels of all parts together are refused for."""
        study = self._study
        if not self._other_rows:
            return
        if study.arms is not None:
            raise undeclared_arm(study.treatment, study.arms)
        single = len(self._others) == 1
        if single and self._other_rows == self.counts.sum():
            raise constant_treatment(study.treatment)
        if study.control is not None or not single or not self.counts[1]:
            raise strange_treatment(study.treatment, study.treated, study.control)


def _labels_in(column: Column) -> set[object]:
    """Return the different labels of a column; a text and a number that it is written as are one."""
    if isinstance(column, Numbers):
        same = len(column) > 0 and bool((column.values == column.values[0]).all())
        return set((column.values[:1] if same else np.unique(column.values)).tolist())
    cells = [column.cells[code] for code in np.unique(column.codes)]
    return {cell if number_of(cell) is None else number_of(cell) for cell in cells}


def _digest(label: object) -> int:
    """Return a whole number that tells a label from others; equal numbers of several types have the same."""
    number = number_of(label)
    text = f"text {label}" if number is None else f"number {number}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())


# Outcomes in fixed point: whole steps between two public bounds, so that sums are exact.
#
# The map is the same for every row and looks at that row alone. Whatever the row holds, the result
# is an integer in [0, OUTCOME_STEPS]; this, and nothing about floating point, is what a sensitivity
# proof needs.


OUTCOME_STEPS = 2**24


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


def clamp_each(values: Floats, bounds: Sequence[Range]) -> Floats:
    """Return the same for several columns without a NaN, one a row, each with bounds of its own; in place."""
    low, high = np.array([each.floats() for each in bounds]).T[:, :, None]
    np.maximum(values, low, out=values)
    np.minimum(values, high, out=values)
    values += 0.0
    return values


def _between(values: Floats, low: float, high: float) -> Floats:
    """Return a copy of the values between the bounds; what is not above the lower one, as a NaN is not, becomes it."""
    # By comparison: on signalling NaNs, the maximum differs between processors.
    found: Floats = np.where(values > low, values, low)
    np.minimum(found, high, out=found)
    return found
