"""Subsets of rows: a small language of conditions over columns, read and applied without evaluating code.

A condition is made of comparisons joined by `and`, `or` and `not`:

    age >= 18 and site in ['A', 'B']
    18 <= age < 65 and not (arm == 'open label')
    `visit date` is not missing

Each row is judged by itself. As in SQL, a comparison with a missing value is unknown, and rows for which the whole
condition is unknown are left out. Proof of what that does to a guarantee: `where.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from counterveil.data import encoding
from counterveil.data.cells import Column, Mask
from counterveil.data.conditions import Among, Compared, Condition, Joined, Missing, Not, read_condition
from counterveil.data.labels import Label, index_of
from counterveil.errors import StudyError, shown
from counterveil.numerics.arrays import Floats


@dataclass(frozen=True, slots=True)
class Where:
    """A condition that was read: its text in one form, and the columns it looks at."""

    text: str
    condition: Condition = field(compare=False)

    @classmethod
    def of(cls, text: object) -> Where:
        """Return the condition in a text, or raise CV-S121."""
        if isinstance(text, Where):
            return text
        found = read_condition(text)
        return cls(found.text(), found)

    def both(self, other: Where | None) -> Where:
        """Return the condition that holds where this one and the other do."""
        if other is None or other == self:
            return self
        parts: list[Condition] = []
        for each in (self.condition, other.condition):
            parts += each.parts if isinstance(each, Joined) and each.word == "and" else [each]
        joined = Joined("and", tuple(dict.fromkeys(parts)))
        return Where(joined.text(), joined)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it looks at, in the order in which they appear."""
        return tuple(dict.fromkeys(_columns(self.condition)))

    def holds(self, columns: Mapping[str, Column]) -> Mask:
        """Return for which rows the condition is true; texts where numbers are compared raise CV-D002."""
        return _judge(self.condition, columns)[0]


def declared(where: object, others: object, treatment: str, labels: tuple[Label, ...]) -> Where | None:
    """Return the condition of a study, that of its declared arms included; raises CV-S121 and CV-S122."""
    found = None if where is None else Where.of(where)
    if others is None:
        return found
    if others != "leave out" or len(labels) < 2:
        raise StudyError(
            "CV-S122",
            "rows of other arms cannot be left out",
            expected='others="leave out" beside treated= and control=, or beside arms=',
            got=f"others={shown(others)} and {len(labels)} declared label(s)",
            fix="declare the label of every arm that is compared",
        )
    arms = Among(treatment, labels)
    only = Where(arms.text(), arms)
    return only if found is None else found.both(only)


def only_subset(columns: dict[str, Column], where: Where | None) -> dict[str, Column]:
    """Return the columns without the rows for which the condition does not hold."""
    if where is None:
        return columns
    kept = where.holds(columns)
    return {name: column.keep(kept) for name, column in columns.items()}


# Judging: for every row whether a condition is true and whether it is false; unknown where it is neither.


def _judge(condition: Condition, columns: Mapping[str, Column]) -> tuple[Mask, Mask]:
    if isinstance(condition, Not):
        true, false = _judge(condition.part, columns)
        return false, true
    if isinstance(condition, Joined):
        judged = [_judge(part, columns) for part in condition.parts]
        trues, falses = [each[0] for each in judged], [each[1] for each in judged]
        if condition.word == "and":
            return np.logical_and.reduce(trues), np.logical_or.reduce(falses)
        return np.logical_or.reduce(trues), np.logical_and.reduce(falses)
    column = columns[condition.column]
    index = index_of(condition.labels) if isinstance(condition, Among) else None
    hole = encoding.gaps(column, index)
    if isinstance(condition, Missing):
        return hole, ~hole
    if index is not None:
        held = encoding.codes(column, hole, index, None) >= 0
    else:
        assert isinstance(condition, Compared)
        held = _compared(encoding.numbers(column, hole, 0.0, condition.column), condition)
    return held & ~hole, ~held & ~hole


def _compared(values: Floats, condition: Compared) -> Mask:
    # The number is read as a double, as the cells are: 0.1 in a file is the 0.1 of the condition.
    number = float(condition.number)
    if condition.sign in ("<", "<="):
        return np.asarray(values < number if condition.sign == "<" else values <= number)
    return np.asarray(values > number if condition.sign == ">" else values >= number)


def _columns(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Not):
        yield from _columns(condition.part)
    elif isinstance(condition, Joined):
        for part in condition.parts:
            yield from _columns(part)
    else:
        yield condition.column
