"""What a covariate may hold: a range, two labels, or a list of categories; all public."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from counterveil.data.labels import Label, checked_label, first_confusable, plain_number
from counterveil.errors import ParameterError, StudyError
from counterveil.privacy import Number, exact

# Double precision holds these with room for the differences and products taken of them.
_LARGEST_BOUND = Fraction(10) ** 300
_SMALLEST_WIDTH = Fraction(1, 10**200)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Range:
    """Numbers between two public bounds; what lies outside is clamped to the nearer bound."""

    lo: Fraction
    hi: Fraction

    def __init__(self, lo: Number, hi: Number, name: str = "Range") -> None:
        object.__setattr__(self, "lo", _bound(lo, f"the lower bound of {name}"))
        object.__setattr__(self, "hi", _bound(hi, f"the upper bound of {name}"))
        if self.lo >= self.hi:
            raise StudyError(
                "CV-S002",
                f"the bounds of {name} are reversed or equal",
                expected="lower bound < upper bound",
                got=f"({lo!r}, {hi!r})",
                fix="put the lower bound first and leave room between the two",
            )
        low, high = self.floats()
        if self.width < _SMALLEST_WIDTH or low >= high:
            raise StudyError(
                "CV-S003",
                f"the bounds of {name} are too close to be told apart in double precision",
                expected="a wider range",
                got=f"({lo!r}, {hi!r})",
                fix="shift or rescale the column so that its range is not tiny beside its size",
            )

    @property
    def width(self) -> Fraction:
        """The exact distance between the bounds."""
        return self.hi - self.lo

    def __repr__(self) -> str:
        return f"Range({plain_number(self.lo)!r}, {plain_number(self.hi)!r})"

    def floats(self) -> tuple[float, float]:
        """Return the outermost doubles inside the exact bounds."""
        # Rounded inwards, so that a clamped double never lies outside the rational bounds.
        low, high = float(self.lo), float(self.hi)
        low = low if Fraction(low) >= self.lo else math.nextafter(low, math.inf)
        high = high if Fraction(high) <= self.hi else math.nextafter(high, -math.inf)
        return low, high


@dataclass(frozen=True, slots=True)
class Binary:
    """Two labels, coded 1 and 0; by default the numbers (or truth values) 1 and 0."""

    one: Label = 1
    zero: Label = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "one", checked_label(self.one, "Binary one"))
        object.__setattr__(self, "zero", checked_label(self.zero, "Binary zero"))
        _tell_apart((self.zero, self.one), "Binary")

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels in the order of their codes."""
        return (self.zero, self.one)


@dataclass(frozen=True, slots=True, init=False)
class Categories:
    """A public list of labels, coded 0, 1, 2, ... in the order given."""

    labels: tuple[Label, ...]

    def __init__(self, labels: Iterable[Label]) -> None:
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise _bad_categories("a list of labels", repr(labels))
        checked = tuple(checked_label(label, "a category") for label in labels)
        object.__setattr__(self, "labels", checked)
        if len(checked) < 2:
            raise _bad_categories("at least two labels", f"{len(checked)} label(s)")
        _tell_apart(checked, "Categories")


Domain: TypeAlias = Range | Binary | Categories


def _bound(value: Number, name: str) -> Fraction:
    try:
        bound = exact(value, name)
    except ParameterError:
        bound = None
    if bound is None or abs(bound) > _LARGEST_BOUND:
        raise StudyError(
            "CV-S003",
            f"{name} is not a finite number",
            expected="a finite number between -1e300 and 1e300",
            got=repr(value),
            fix="state a bound from what is known in public about the measure, never from the data",
        )
    return bound


def _tell_apart(labels: tuple[Label, ...], kind: str) -> None:
    pair = first_confusable(labels)
    if pair is not None:
        raise _bad_categories(
            "labels that differ as text and as numbers", f"{kind} with {pair[0]!r} and {pair[1]!r}"
        )


def _bad_categories(expected: str, got: str) -> StudyError:
    return StudyError(
        "CV-S006",
        "the list of labels is not usable",
        expected=expected,
        got=got,
        fix="list every label once, from the public description of the column",
    )
