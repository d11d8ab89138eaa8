"""Domains of covariates: a range, two labels, or a list of categories; all public."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, runtime_checkable

from counterveil.data.labels import Label, checked_label, first_confusable, plain_number
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.privacy import Number, exact, show

Bounds: TypeAlias = tuple[Fraction, Fraction]
# Labels that a sentence lists; the study holds them all.
_MOST_WORDS = 12
# Double precision holds these with room for the differences and products taken of them.
_LARGEST_BOUND = Fraction(10) ** 300
_SMALLEST_WIDTH = Fraction(1, 10**200)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Range:
    """Numbers between two public bounds; values outside are clamped to the nearer bound.

    `cuts` are public cut points, made by `cut`; they are used for strata only.
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
        """Return the same range with public cut points: bins [lo, c1), [c1, c2), ..., [ck, hi]."""
        made = Range(self.lo, self.hi)
        object.__setattr__(made, "cuts", tuple(_cut_point(point) for point in points))
        low, high = self.floats()
        edges = (low, *made.thresholds())
        # Compared as doubles too: a bin without a double in it is a mistake.
        apart = all(left < right for left, right in pairwise(edges)) and edges[-1] <= high
        if not points or not apart or not all(self.lo < cut < self.hi for cut in made.cuts):
            raise _bad_cuts(self, points)
        return made

    def thresholds(self) -> tuple[float, ...]:
        """Return for each cut point the least double that is not below it: a value v is past c where v >= it."""
        nearest = ((float(cut), cut) for cut in self.cuts)
        return tuple(
            double if Fraction(double) >= cut else math.nextafter(double, math.inf) for double, cut in nearest
        )

    def __repr__(self) -> str:
        cuts = ", ".join(repr(plain_number(cut)) for cut in self.cuts)
        written = f"Range({plain_number(self.lo)!r}, {plain_number(self.hi)!r})"
        return f"{written}.cut({cuts})" if cuts else written

    def floats(self) -> tuple[float, float]:
        """Return the outermost doubles inside the exact bounds."""
        return self._ends

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a study file declares it."""
        document: dict[str, Any] = {"range": plain_ends((self.lo, self.hi))}
        return document | ({"cuts": [plain_number(cut) for cut in self.cuts]} if self.cuts else {})

    def words(self) -> str:
        """Return the domain as a sentence names it."""
        cuts = f" cut at {listed([show(cut) for cut in self.cuts])}" if self.cuts else ""
        return interval((self.lo, self.hi)) + cuts


@dataclass(frozen=True, slots=True)
class Binary:
    """Two labels, coded 1 and 0; by default the numbers (or booleans) 1 and 0."""

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

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a study file declares it."""
        return {"binary": {"one": self.one, "zero": self.zero}}

    def words(self) -> str:
        """Return the domain as a sentence names it."""
        return _labels_in_words(self.labels)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Categories:
    """A public list of labels, coded 0, 1, 2, ... in the order given.

    `other` names the one of them that stands for every label which is not listed; without it, such a label is refused.
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
        """The code of labels that are not listed, None where they are refused."""
        return None if self.other is None else self.labels.index(self.other)

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a study file declares it."""
        other: dict[str, Any] = {} if self.other is None else {"other": self.other}
        return {"categories": list(self.labels)} | other

    def words(self) -> str:
        """Return the domain as a sentence names it."""
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


def _cut_point(value: Number) -> Fraction:
    return _bound(value, "a cut point")


def _bad_cuts(bounds: Range, points: tuple[Number, ...]) -> CounterveilError:
    return refusal("CV-S070", bounds=bounds, points=", ".join(map(repr, points)))


def _tell_apart(labels: tuple[Label, ...], kind: str) -> None:
    pair = first_confusable(labels)
    if pair is not None:
        raise refusal(
            "CV-S006",
            expected="labels that differ as text and as numbers",
            got=f"{kind} with {pair[0]!r} and {pair[1]!r}",
        )
