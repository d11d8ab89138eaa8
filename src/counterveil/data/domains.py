"""Labels, the declared domains of columns, and how cells are encoded by them.

The same column reaches us as numbers from a frame and as text from a CSV file, and one cell may make texts of all
numbers of a column. So a label is compared by its meaning, which depends on the cell alone: what is a number, or reads
as one, by its nearest double, with truth words standing for 1 and 0; other text letter by letter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from numbers import Real
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cells import (
    BLANKS,
    EXACT_DOUBLES,
    Coded,
    Column,
    Mask,
    Numbers,
    double_of,
    meaning_of,
    says_nothing,
    truth_of,
)
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.frozen import frozen
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import Number, exact, show

Label: TypeAlias = str | int | float

# The numerals of `cell_rules` with at most three digits of exponent: a cell must not be able to ask for a number of a
# billion digits.
_PLAIN_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)


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
        return whole if abs(whole) < 2**63 else str(Decimal(whole))
    double = double_meaning(value)
    # Python writes no int of more than 4,300 digits; a decimal has no limit.
    return f"{Decimal(value.numerator)}/{Decimal(value.denominator)}" if double is None else double


def checked_label(label: object, role: str) -> Label:
    """Return `label` as a text, an int or a float in one form per meaning, or raise CV-S007, CV-S160 or CV-S161."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, str):
        if says_nothing(plain):
            raise refusal("CV-S161", role=role, label=plain)
        meaning = meaning_of(plain)
        if isinstance(meaning, float) and math.isinf(meaning):
            raise refusal("CV-S160", role=role, label=plain)
        return plain
    if isinstance(plain, int | float) and abs(plain) < EXACT_DOUBLES:
        return int(plain) if isinstance(plain, int) or plain.is_integer() else plain
    raise refusal("CV-S007", role=role, label=label)


def first_confusable(labels: Sequence[Label]) -> tuple[Label, Label] | None:
    """Return two labels that the same cell could mean, None if all are distinct."""
    seen: dict[object, Label] = {}
    for label in labels:
        meaning = meaning_of(label)
        if meaning in seen:
            return seen[meaning], label
        seen[meaning] = label
    return None


class LabelIndex:
    """The place of a cell's label in a list of declared labels: a text and the number that it reads as are one label.

    So what one row means does not change where another cell makes texts of a column of numbers.
    """

    def __init__(self, labels: Sequence[Label]) -> None:
        self.labels = tuple(labels)
        meanings = [meaning_of(label) for label in self.labels]
        # By the doubles that are meant, and by other texts.
        self.doubles = {each: code for code, each in enumerate(meanings) if isinstance(each, float)}
        self._texts = {each: code for code, each in enumerate(meanings) if isinstance(each, str)}

    def code(self, cell: object) -> int | None:
        """Return the place of the label that `cell` means, None where it means none of them."""
        # Before it is looked at in detail: most cells are declared texts.
        if isinstance(cell, str) and cell in self._texts:
            return self._texts[cell]
        meaning = meaning_of(cell)
        return self.doubles.get(meaning) if isinstance(meaning, float) else None


@lru_cache(maxsize=256)
def index_of(labels: tuple[Label, ...]) -> LabelIndex:
    """Return the index of declared labels, made once for all parts of a column; equal labels mean the same."""
    return LabelIndex(labels)


class CellIndex(LabelIndex):
    """The place of the cell of a cut range that a number lies in; its labels are the middles of the cells."""

    def __init__(self, labels: Sequence[Label], cells: Range) -> None:
        super().__init__(labels)
        self._thresholds = cells.thresholds()
        self._places = np.array([self.labels.index(middle) for middle in cell_middles(cells)])

    def code(self, cell: object) -> int | None:
        """Return the place of the cell's label, None for what is no number."""
        double = double_of(cell)
        return None if double is None or math.isnan(double) else int(self.codes(np.array([double]))[0])

    def codes(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return the places of numbers; those beyond the range are in its outer cells."""
        return self._places[np.searchsorted(self._thresholds, values, "right")]


def cell_middles(cells: Range) -> tuple[Label, ...]:
    """Return the middle of every cell of a cut range."""
    middles = ((low + high) / 2 for low, high in pairwise((cells.lo, *cells.cuts, cells.hi)))
    return tuple(int(middle) if middle.denominator == 1 else float(middle) for middle in middles)


@dataclass(frozen=True, slots=True)
class Fill:
    """Replace missing values of a column with a public constant.

    Only the constant becomes public; whether a value was missing stays as private as the value. Without a
    rule, a missing value is refused.

    Attributes
    ----------
    value : number or str
        The constant: a value of the column's range or one of its labels.

    Raises
    ------
    CounterveilError
        A constant that is no number, truth value or text (CV-S007).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Fill(50)
    Fill(value=50)
    """

    value: Number | Label

    def __post_init__(self) -> None:
        # One form per meaning, so that equal studies have equal text.
        number = None if isinstance(self.value, str) else number_of(self.value)
        if number is not None:
            object.__setattr__(self, "value", plain_number(number))
        elif not isinstance(self.value, str | Real):
            raise refusal("CV-S007", role="Fill", label=shown(self.value))

    def to_dict(self) -> Any:
        """Return the rule as a study file declares it.

        Returns
        -------
        dict
            ``{"fill": value}``.
        """
        return {"fill": self.value}

    def public_fact(self, name: str) -> str:
        """Return what the rule makes public of a column.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        str
            One sentence.
        """
        return f"the constant put in where {name!r} is missing; whether it was missing stays as private as the value"


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave out rows with a missing value in a column; which rows those are becomes public.

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Drop()
    Drop()
    """

    def to_dict(self) -> Any:
        """Return the rule as a study file declares it.

        Returns
        -------
        str
            ``"drop"``.
        """
        return "drop"

    def public_fact(self, name: str) -> str:
        """Return what the rule makes public of a column.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        str
            One sentence.
        """
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
    if isinstance(arms, Range):
        return _cell_labels(arms, reference)
    labels = _labels(arms)
    if reference is None:
        raise refusal("CV-S062", expected=f"one of {list(labels)!r}", got="no reference")
    place = LabelIndex(labels).code(checked_label(reference, "reference"))
    if place is None:
        raise refusal("CV-S062", expected=f"one of {list(labels)!r}", got=f"reference={shown(reference)}")
    return (labels[place], *labels[:place], *labels[place + 1 :])


def _cell_labels(cells: Range, reference: object) -> tuple[Label, ...]:
    """Return the middles of a dose's cells, that of the reference first: the lowest if none is named."""
    labels = cell_middles(cells)
    if len(labels) < _FEWEST_ARMS or len({*labels}) < len(labels):
        raise refusal("CV-S131", cells=cells)
    place = 0 if reference is None else CellIndex(labels, cells).code(reference)
    if place is None:
        raise refusal(
            "CV-S062", expected="a dose of the reference's cell", got=f"reference={shown(reference)}"
        )
    return (labels[place], *labels[:place], *labels[place + 1 :])


def _labels(arms: object) -> tuple[Label, ...]:
    if isinstance(arms, tuple | list):
        labels = tuple(checked_label(label, "arm") for label in arms)
        if len(labels) >= _FEWEST_ARMS and first_confusable(labels) is None:
            return labels
    raise refusal("CV-S060", arms=arms)


Bounds: TypeAlias = tuple[Fraction, Fraction]
# Labels that a sentence lists; the study holds them all.
_MOST_WORDS = 12
# Double precision holds these with room for the differences and products taken of them.
_LARGEST_BOUND = Fraction(10) ** 300
_SMALLEST_WIDTH = Fraction(1, 10**200)


@frozen
class Range:
    """Numbers between two public bounds; values outside are clamped to the nearer bound.

    Choose the bounds without looking at the data. Noise is proportional to the width of an outcome's range.

    Parameters
    ----------
    lo : number
        Lower bound, in units of the column: a finite number or exact text such as "1/3".
    hi : number
        Upper bound, above `lo`.
    name : str, default "Range"
        What an error calls the range.

    Attributes
    ----------
    lo : Fraction
        Lower bound, exact.
    hi : Fraction
        Upper bound, exact.
    cuts : tuple of Fraction
        Public cut points, which strata use; `cut` makes them. Empty by default.

    Raises
    ------
    CounterveilError
        Bounds that are no finite numbers, are not in order, or are too close for double precision (CV-S002,
        CV-S003).

    Examples
    --------
    >>> import counterveil as cv
    >>> age = cv.Range(18, 90)
    >>> age.width
    Fraction(72, 1)
    >>> age.cut(40, 65)
    Range(18, 90).cut(40, 65)
    """

    lo: Fraction
    hi: Fraction
    cuts: tuple[Fraction, ...]
    _ends: tuple[float, float] = field(compare=False)

    def __init__(self, lo: Number, hi: Number, name: str = "Range") -> None:
        object.__setattr__(self, "cuts", ())
        object.__setattr__(self, "lo", _bound(lo, f"the lower bound of {name}"))
        object.__setattr__(self, "hi", _bound(hi, f"the upper bound of {name}"))
        if self.lo >= self.hi:
            raise refusal("CV-S002", name=name, lo=lo, hi=hi)
        object.__setattr__(self, "_ends", _inside(self.lo, self.hi))
        low, high = self.floats()
        if self.width < _SMALLEST_WIDTH or low >= high:
            raise refusal("CV-S003b", name=name, lo=lo, hi=hi)

    @property
    def width(self) -> Fraction:
        """The exact distance between the bounds."""
        return self.hi - self.lo

    def cut(self, *points: Number) -> Range:
        """Return the same range with public cut points, which make bins [lo, c1), [c1, c2), ..., [ck, hi].

        Parameters
        ----------
        *points : number
            Cut points in increasing order, strictly inside the range, in units of the column.

        Returns
        -------
        Range
            A range with these cut points.

        Raises
        ------
        CounterveilError
            No points, or points that are not increasing or not inside (CV-S070).

        Examples
        --------
        >>> import counterveil as cv
        >>> len(cv.Range(18, 90).cut(40, 65).cuts)
        2
        """
        made = Range(self.lo, self.hi)
        object.__setattr__(made, "cuts", tuple(_bound(point, "a cut point") for point in points))
        low, high = self.floats()
        edges = (low, *made.thresholds())
        # Compared as doubles too: a bin without a double in it is a mistake.
        apart = all(left < right for left, right in pairwise(edges)) and edges[-1] <= high
        if not points or not apart or not all(self.lo < cut < self.hi for cut in made.cuts):
            raise refusal("CV-S070", bounds=self, points=", ".join(map(repr, points)))
        return made

    def thresholds(self) -> tuple[float, ...]:
        """Return for each cut point the least double that is not below it.

        Returns
        -------
        tuple of float
            A value v is past cut point c if and only if v >= its threshold.
        """
        nearest = ((float(cut), cut) for cut in self.cuts)
        return tuple(
            double if Fraction(double) >= cut else math.nextafter(double, math.inf) for double, cut in nearest
        )

    def __repr__(self) -> str:
        cuts = ", ".join(repr(plain_number(cut)) for cut in self.cuts)
        written = f"Range({plain_number(self.lo)!r}, {plain_number(self.hi)!r})"
        return f"{written}.cut({cuts})" if cuts else written

    def floats(self) -> tuple[float, float]:
        """Return the outermost doubles inside the exact bounds.

        Returns
        -------
        (float, float)
            Lowest and highest.
        """
        return self._ends

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a study file declares it.

        Returns
        -------
        dict
            ``{"range": [lo, hi]}``, with ``"cuts"`` where there are any.
        """
        document: dict[str, Any] = {"range": plain_ends((self.lo, self.hi))}
        return document | ({"cuts": [plain_number(cut) for cut in self.cuts]} if self.cuts else {})

    def words(self) -> str:
        """Return the domain as a sentence names it.

        Returns
        -------
        str
            The interval and its cut points.
        """
        cuts = f" cut at {listed([show(cut) for cut in self.cuts])}" if self.cuts else ""
        return interval((self.lo, self.hi)) + cuts


@dataclass(frozen=True, slots=True)
class Binary:
    """Two labels, coded 1 and 0.

    A label and the number that it reads as are one label: ``1``, ``"1"``, ``1.0`` and ``True`` mean the same.

    Attributes
    ----------
    one : number or str, default 1
        The label that is coded 1.
    zero : number or str, default 0
        The label that is coded 0.

    Raises
    ------
    CounterveilError
        A label that cannot be used, or two that the same cell could mean (CV-S006, CV-S007, CV-S160,
        CV-S161).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Binary(one="yes", zero="no").labels
    ('no', 'yes')
    """

    one: Label = 1
    zero: Label = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "one", checked_label(self.one, "Binary one"))
        object.__setattr__(self, "zero", checked_label(self.zero, "Binary zero"))
        _tell_apart((self.zero, self.one), "Binary")

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels in the order of their codes: `zero`, `one`."""
        return (self.zero, self.one)

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a study file declares it.

        Returns
        -------
        dict
            ``{"binary": {"one": one, "zero": zero}}``.
        """
        return {"binary": {"one": self.one, "zero": self.zero}}

    def words(self) -> str:
        """Return the domain as a sentence names it.

        Returns
        -------
        str
            The labels.
        """
        return _labels_in_words(self.labels)


@frozen
class Categories:
    """A public list of labels, coded 0, 1, 2, ... in the order given.

    A label that is not listed is refused, unless `other` says what it counts as.

    Parameters
    ----------
    labels : iterable of number or str
        At least two different labels. A label and the number that it reads as are one label.
    other : number or str, optional
        One of `labels`, which stands for every label that is not listed. Default: such a label is refused.

    Attributes
    ----------
    labels : tuple of number or str
        The labels in the order of their codes.
    other : number or str or None
        The label that stands for all that are not listed.

    Raises
    ------
    CounterveilError
        Fewer than two labels, labels that the same cell could mean, or an `other` that is none of them
        (CV-S006, CV-S007, CV-S160, CV-S161).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Categories(["A", "B", "other"], other="other").other_code
    2
    """

    labels: tuple[Label, ...]
    other: Label | None

    def __init__(self, labels: Iterable[Label], other: Label | None = None) -> None:
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise refusal("CV-S006", expected="a list of labels", got=shown(labels))
        try:
            listed = tuple(labels)
        except TypeError:
            # A zero-dimensional array claims to be iterable and is not.
            raise refusal("CV-S006", expected="a list of labels", got=shown(labels)) from None
        checked = tuple(checked_label(label, "a category") for label in listed)
        object.__setattr__(self, "labels", checked)
        if len(checked) < 2:
            raise refusal("CV-S006", expected="at least two labels", got=f"{len(checked)} label(s)")
        _tell_apart(checked, "Categories")
        named = None if other is None else checked_label(other, "other")
        if named is not None and named not in checked:
            raise refusal("CV-S006", expected="other= as one of the labels", got=f"other={shown(other)}")
        object.__setattr__(self, "other", named)

    @property
    def other_code(self) -> int | None:
        """Code of labels that are not listed; None where they are refused."""
        return None if self.other is None else self.labels.index(self.other)

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a study file declares it.

        Returns
        -------
        dict
            ``{"categories": [...]}``, with ``"other"`` where it is given.
        """
        other: dict[str, Any] = {} if self.other is None else {"other": self.other}
        return {"categories": list(self.labels)} | other

    def words(self) -> str:
        """Return the domain as a sentence names it.

        Returns
        -------
        str
            The labels.
        """
        other = "" if self.other is None else f", every other label counting as {self.other!r}"
        return _labels_in_words(self.labels) + other

    def __repr__(self) -> str:
        other = "" if self.other is None else f", other={self.other!r}"
        return f"Categories(labels={self.labels!r}{other})"


Domain: TypeAlias = Range | Binary | Categories


@runtime_checkable
class Described(Protocol):
    """What a codebook says of a column."""

    def domain(self, name: str) -> Domain:
        """Return the domain of the column of this name, or raise CV-S008."""
        ...


# A domain as people write it: a pair is a range, a list or a set are labels, "binary" is 1 and 0.
Declared: TypeAlias = (
    Domain | Described | tuple[Number, Number] | list[Any] | set[Any] | frozenset[Any] | Literal["binary"]
)


def as_domain(name: str, value: object) -> Domain:
    """Return the domain that was written for a column, or raise CV-S008; a list of two numbers could be either."""
    if isinstance(value, Range | Binary | Categories):
        return value
    if isinstance(value, Described):
        return value.domain(name)
    if isinstance(value, tuple) and len(value) == 2 and not any(isinstance(end, str) for end in value):
        return Range(*value, name=repr(name))
    if isinstance(value, str) and value == "binary":
        return Binary()
    if isinstance(value, list | set | frozenset):
        # Sets have no order of their own, and a study has one.
        labels = value if isinstance(value, list) else sorted(value, key=repr)
        numbers = [label for label in labels if isinstance(label, int | float)]
        if len(labels) > 2 or len(numbers) < 2 or set(numbers) == {0, 1}:
            return Categories(labels)
    raise refusal("CV-S008", what=f"covariate {name!r}", got=shown(value))


def domain_from(name: str, value: Any) -> Domain:
    """Return the domain that a document declares for a covariate, or raise CV-S013."""
    if isinstance(value, str) and value == "binary":
        return Binary()
    told: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    kinds = set(told)
    if (
        kinds in ({"range"}, {"range", "cuts"})
        and _is_list(told["range"], 2)
        and _is_list(told.get("cuts", []))
    ):
        low, high = told["range"]
        bounds = Range(low, high, name=repr(name))
        return bounds.cut(*told["cuts"]) if "cuts" in told else bounds
    if kinds in ({"categories"}, {"categories", "other"}):
        return Categories(**{"labels": told["categories"]} | {key: told[key] for key in kinds & {"other"}})
    if kinds == {"binary"} and told["binary"] is True:
        return Binary()
    if kinds == {"binary"} and isinstance(told["binary"], Mapping) and set(told["binary"]) <= {"one", "zero"}:
        return Binary(**told["binary"])
    raise refusal(
        "CV-S013",
        expected=f"covariate {name!r} as a range, a binary or a list of categories",
        got=shown(value),
        fix='write { range = [0, 1] }, { range = [18, 90], cuts = [30, 60] }, "binary", '
        '{ binary = { one = "yes", zero = "no" } } or { categories = ["a", "b"] }',
    )


def _is_list(value: object, length: int | None = None) -> bool:
    return isinstance(value, list | tuple) and length in (None, len(value))


def is_name(name: object) -> TypeGuard[str]:
    """Return whether a value can be the name of a column."""
    return isinstance(name, str) and bool(name.strip())


def ends_of(given: object, name: str, refusal: Callable[[], CounterveilError]) -> Bounds:
    """Return a pair of declared bounds, exact; what is no pair raises the refusal."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise refusal()
    bounds = Range(given[0], given[1], name=name)
    return bounds.lo, bounds.hi


def plain_ends(bounds: Bounds) -> list[int | float | str]:
    """Return both bounds as a study file writes them."""
    return [plain_number(end) for end in bounds]


def interval(bounds: Bounds) -> str:
    """Return bounds as a sentence names them."""
    return f"[{show(bounds[0])}, {show(bounds[1])}]"


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _labels_in_words(labels: tuple[Label, ...]) -> str:
    words = [repr(label) for label in labels]
    if len(words) <= _MOST_WORDS:
        return "{" + ", ".join(words) + "}"
    return "{" + ", ".join([*words[:3], "...", words[-1]]) + f"}} ({len(labels)} labels)"


def _inside(lo: Fraction, hi: Fraction) -> tuple[float, float]:
    """Return both bounds as doubles, rounded inwards: a clamped double never lies outside the rational bounds."""
    low, high = float(lo), float(hi)
    low = low if Fraction(low) >= lo else math.nextafter(low, math.inf)
    high = high if Fraction(high) <= hi else math.nextafter(high, -math.inf)
    return low, high


def _bound(value: Number, name: str) -> Fraction:
    try:
        bound = exact(value, name)
    except ParameterError:
        bound = None
    if bound is None or abs(bound) > _LARGEST_BOUND:
        raise refusal("CV-S003", name=name, value=value)
    return bound


def _tell_apart(labels: tuple[Label, ...], kind: str) -> None:
    pair = first_confusable(labels)
    if pair is not None:
        raise refusal(
            "CV-S006",
            expected="labels that differ as text and as numbers",
            got=f"{kind} with {pair[0]!r} and {pair[1]!r}",
        )


# From cells to arrays: gaps, numbers, codes of labels, and outcomes in fixed point.
#
# Outcomes are whole steps between two public bounds, so that sums are exact. The map is the same for every row and
# looks at that row alone. Whatever the row holds, the result is an integer in [0, OUTCOME_STEPS]; this, and nothing
# about floating point, is what a sensitivity proof needs.


NO_LABEL = -1
OUTCOME_STEPS = 2**24


def gaps(column: Column) -> Mask:
    """Return which rows hold no value; text that says so counts as none."""
    if isinstance(column, Numbers):
        return column.missing
    blank = np.array([isinstance(cell, str) and says_nothing(cell) for cell in column.cells], dtype=np.bool_)
    return column.take(blank, for_missing=True)


def numbers(column: Column, is_missing: Mask, fill: float, name: str) -> NDArray[np.float64]:
    """Return the column as doubles with `fill` in its gaps, or raise CV-D002."""
    if isinstance(column, Numbers):
        if column.text is not None and column.text.any():
            raise refusal("CV-D002", name=name)
        # Not copied where nothing is filled in: what is made of the numbers is.
        values = column.values.astype(np.float64, copy=bool(np.count_nonzero(is_missing)))
    else:
        parsed = [double_of(cell) for cell in column.cells]
        doubles = np.array([fill if value is None else value for value in parsed], dtype=np.float64)
        refused = np.array([value is None for value in parsed], dtype=np.bool_)
        if (column.take(refused, for_missing=False) & ~is_missing).any():
            raise refusal("CV-D002", name=name)
        values = column.take(doubles, for_missing=fill)
    if np.count_nonzero(is_missing):
        values[is_missing] = fill
    return values


def codes(column: Column, is_missing: Mask, index: LabelIndex, rule: MissingRule | None) -> NDArray[np.int64]:
    """Return for each row the place of its label, or of the label filled in; -1 where it has none."""
    found = _codes(column, index)
    place = index.code(rule.value) if isinstance(rule, Fill) else None
    if np.count_nonzero(is_missing):
        found[is_missing] = NO_LABEL if place is None else place
    return found


def domain_codes(
    column: Column, is_missing: Mask, domain: Binary | Categories, rule: MissingRule | None
) -> NDArray[np.int64]:
    """Return the same for a covariate, whose labels that are not listed may all count as one of them."""
    found = codes(column, is_missing, index_of(domain.labels), rule)
    if isinstance(domain, Categories) and domain.other_code is not None:
        found[(found == NO_LABEL) & ~is_missing] = domain.other_code
    return found


def _codes(column: Column, index: LabelIndex) -> NDArray[np.int64]:
    if isinstance(column, Coded):
        places = [index.code(cell) for cell in column.cells]
        per_cell = np.array([NO_LABEL if place is None else place for place in places], dtype=np.int64)
        return column.take(per_cell, for_missing=NO_LABEL)
    if isinstance(index, CellIndex):
        found = index.codes(column.values)
        return found if column.text is None else np.where(column.text, NO_LABEL, found)
    found = np.full(len(column), NO_LABEL, dtype=np.int64)
    values, meant = column.values, index.doubles
    if values.dtype.kind in "iu" and any(abs(number) >= EXACT_DOUBLES for number in meant):
        # As doubles, which one gap makes of them.
        values = values.astype(np.float64)
    if values.dtype.kind != "f":
        meant = {int(number): place for number, place in meant.items() if number.is_integer()}
    for number, place in meant.items():
        found = np.where(values == number, place, found)
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


def borrowed(values: Floats, bounds: Range) -> Floats:
    """Return what `clamp` does, or the values themselves, not to be written to, where they equal it to the bit."""
    low, high = bounds.floats()
    # A NaN is not inside.
    inside = len(values) > 0 and float(values.min()) >= low and float(values.max()) <= high
    if not inside or bool((np.signbit(values) & (values == 0.0)).any()):
        return clamp(values, bounds)
    found = values.view()
    found.setflags(write=False)
    return found


def _between(values: Floats, low: float, high: float) -> Floats:
    """Return a copy of the values between the bounds; what is not above the lower one, as a NaN is not, becomes it."""
    # By comparison: on signalling NaNs, the maximum differs between processors.
    found: Floats = np.where(values > low, values, low)
    np.minimum(found, high, out=found)
    return found
