"""Labels: when a cell of a column means a declared label.

The same column reaches us as numbers from a frame and as text from a CSV file, so a label is
compared by its meaning: text with text letter by letter, everything else as exact numbers, with
`true` and `false` standing for 1 and 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from counterveil.data.cells import BLANKS, double_of, says_nothing, truth_of
from counterveil.errors import refusal, shown
from counterveil.privacy import Number

Label: TypeAlias = str | int | float

# The numerals of `cell_rules` with at most three digits of exponent: a cell must not be able to ask for a number of a
# billion digits.
_PLAIN_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)

# From here on a double stands for several whole numbers: a gap anywhere in a column may turn others into it.
EXACT_DOUBLES = 2**53


def number_of(cell: object) -> Fraction | None:
    """Return the number a label or a cell stands for, None where it stands for none."""
    if isinstance(cell, str):
        text = cell.strip(BLANKS)
        if _PLAIN_NUMBER.fullmatch(text):
            return Fraction(text)
        truth = truth_of(text)
        return None if truth is None else Fraction(truth)
    if isinstance(cell, float | np.floating):
        # Doubles first: a wider float is narrowed as in a column of them. Then the shortest decimal text, so that
        # 0.1 in a frame is the 0.1 of a file.
        double = double_of(cell)
        return None if double is None or not np.isfinite(double) else Fraction(repr(double))
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, Decimal):
        return Fraction(cell) if cell.is_finite() and abs(cell.adjusted()) < 1000 else None
    if isinstance(cell, int | Fraction):
        return Fraction(cell)
    return None


def double_meaning(number: Fraction) -> float | None:
    """Return the one double that stands for an exact number, None where none does."""
    try:
        nearest = float(number)
    except OverflowError:
        return None
    return nearest if number_of(nearest) == number else None


def plain_number(value: Fraction) -> int | float | str:
    """Return an exact rational as the shortest form that gives it back: an int, a decimal, or a/b."""
    if value.denominator == 1:
        whole = value.numerator
        # TOML and JSON readers need not keep integers beyond 64 bits.
        return whole if abs(whole) < 2**63 else str(whole)
    double = double_meaning(value)
    return str(value) if double is None else double


def checked_label(label: object, role: str) -> Label:
    """Return `label` as a text, an int or a float in one form per meaning, or raise CV-S007."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, str):
        return plain
    if isinstance(plain, int | float) and abs(plain) < EXACT_DOUBLES:
        return int(plain) if isinstance(plain, int) or plain.is_integer() else plain
    raise refusal("CV-S007", role=role, label=label)


def first_confusable(labels: Sequence[Label]) -> tuple[Label, Label] | None:
    """Return two labels that the same cell could mean, None if all are distinct."""
    seen: dict[object, Label] = {}
    for label in labels:
        number = number_of(label)
        keys: list[object] = [] if number is None else [number]
        keys += [label] if isinstance(label, str) else []
        for key in keys:
            if key in seen:
                return seen[key], label
        seen.update(dict.fromkeys(keys, label))
    return None


class LabelIndex:
    """The place of a cell's label in a list of declared labels."""

    def __init__(self, labels: Sequence[Label]) -> None:
        self.labels = tuple(labels)
        self.numbers: dict[Fraction, int] = {}
        # The doubles that stand for these numbers, where there are any.
        self.doubles: dict[float, int] = {}
        self._texts: dict[str, int] = {}
        self._numbers_for_text: dict[Fraction, int] = {}
        for code, label in enumerate(self.labels):
            number = number_of(label)
            if number is not None and abs(number) < EXACT_DOUBLES:
                self.numbers[number] = code
                double = double_meaning(number)
                if double is not None:
                    self.doubles[double] = code
            if isinstance(label, str):
                self._texts[label] = code
            elif number is not None:
                self._numbers_for_text[number] = code

    def code(self, cell: object) -> int | None:
        """Return the place of the label that `cell` means, None where it means none of them."""
        if isinstance(cell, str) and cell in self._texts:
            return self._texts[cell]
        number = number_of(cell)
        if number is None:
            return None
        return (self._numbers_for_text if isinstance(cell, str) else self.numbers).get(number)


@lru_cache(maxsize=256)
def index_of(labels: tuple[Label, ...]) -> LabelIndex:
    """Return the index of declared labels, made once for all parts of a column; equal labels mean the same."""
    return LabelIndex(labels)


def is_missing_text(cell: object, index: LabelIndex | None) -> bool:
    """Return whether a text cell stands for no value, unless it is a declared label."""
    if not isinstance(cell, str):
        return False
    return says_nothing(cell) and (index is None or index.code(cell) is None)


@dataclass(frozen=True, slots=True)
class Fill:
    """Replace missing values with a public constant; nothing else becomes public. Without a rule they are refused."""

    value: Number | Label

    def __post_init__(self) -> None:
        # One form per meaning, so that equal studies have equal text.
        number = None if isinstance(self.value, str) else number_of(self.value)
        if number is not None:
            object.__setattr__(self, "value", plain_number(number))

    def to_dict(self) -> Any:
        """Return the rule as a study file declares it."""
        return {"fill": self.value}

    def public_fact(self, name: str) -> str:
        """Return what the rule makes public of a column."""
        return f"the constant put in where {name!r} is missing; whether it was missing stays as private as the value"


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave out rows with a missing value; which rows those are becomes public."""

    def to_dict(self) -> Any:
        """Return the rule as a study file declares it."""
        return "drop"

    def public_fact(self, name: str) -> str:
        """Return what the rule makes public of a column."""
        return (
            f"which rows have no value of {name!r}: those rows are left out, and the pattern of "
            "missing values is public by declaration and not protected"
        )


MissingRule: TypeAlias = Fill | Drop


_FEWEST_ARMS = 3


def arm_labels(arms: object, reference: object, two_arms: Mapping[str, object]) -> tuple[Label, ...] | None:
    """Return the labels of a study of several arms, the reference first; None for a study of two arms.

    `two_arms` holds the declarations that belong to two arms, None where they were not made.
    """
    if arms is None:
        if reference is not None:
            raise refusal(
                "CV-S062",
                expected="no reference without arms=",
                got=f"reference={shown(reference)} and no arms",
            )
        return None
    made = {name: value for name, value in two_arms.items() if value is not None}
    if made:
        raise refusal("CV-S061", got=", ".join((f"{name}={shown(value)}" for name, value in made.items())))
    labels = _labels(arms)
    if reference is None:
        raise refusal("CV-S062", expected=f"one of {list(labels)!r}", got="no reference")
    place = LabelIndex(labels).code(checked_label(reference, "reference"))
    if place is None:
        raise refusal("CV-S062", expected=f"one of {list(labels)!r}", got=f"reference={shown(reference)}")
    return (labels[place], *labels[:place], *labels[place + 1 :])


def _labels(arms: object) -> tuple[Label, ...]:
    if isinstance(arms, tuple | list):
        labels = tuple(checked_label(label, "arm") for label in arms)
        if len(labels) >= _FEWEST_ARMS and first_confusable(labels) is None:
            return labels
    raise refusal("CV-S060", arms=arms)
