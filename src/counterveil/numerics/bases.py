"""Public functions of covariates: polynomials, cosines, splines on public knots, contrasts of labels, products.

Every function lies in [-1, 1]. Functions come in groups whose squares add up to at most one at every point:
a polynomial or a cosine is a group by itself, all splines of a covariate are one (they are not negative and add
up to one), and so are all contrasts of its labels (rows of a matrix of length one). A product of groups is a group.
A basis gives every group a weight; squared weights add up to one, so that no row is longer than one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats

# Splines of a covariate count as polynomials of this order beside others.
_SPLINE_ORDER = 2


@dataclass(frozen=True, slots=True)
class Axis:
    """Functions of one covariate.

    Numbers are mapped to [0, 1] by `low` and `width`. `size` is the degree of polynomials and cosines, the
    number of labels, or the number of functions of a cubic spline; `knots` are its inner knots in (0, 1).
    """

    source: str
    family: str
    size: int
    low: float = 0.0
    width: float = 1.0
    knots: tuple[float, ...] = ()

    @property
    def groups(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The order of every group and the places of its functions."""
        if self.family in ("legendre", "cosine"):
            return tuple((place + 1, (place,)) for place in range(self.size))
        order = 1 if self.family == "labels" else _SPLINE_ORDER
        return ((order, tuple(range(self.columns))),)

    @property
    def columns(self) -> int:
        """Number of functions."""
        if self.family == "labels":
            return self.size - 1
        return len(self.knots) + 3 if self.family == "spline" else self.size

    @property
    def squares(self) -> Floats:
        """Mean square of every function under the uniform mechanism on the covariate's range or labels."""
        points = np.arange(self.size) if self.family == "labels" else _MIDDLES * self.width + self.low
        return np.asarray((self.values(np.asarray(points, dtype=np.float64)) ** 2).mean(axis=0))

    def values(self, column: Floats) -> Floats:
        """Return the (n, columns) functions at numbers, or at codes of labels."""
        if self.family == "labels":
            return _contrasts(self.size)[np.clip(column, 0, self.size - 1).astype(np.intp)]
        t = np.clip((column - self.low) / self.width, 0.0, 1.0)
        if self.family == "legendre":
            return np.stack(list(_legendre_orders(2.0 * t - 1.0, self.size)), axis=1)
        if self.family == "cosine":
            return np.asarray(np.cos(np.pi * t[:, None] * np.arange(1, self.size + 1)))
        return _splines(t, self.knots)


_MIDDLES = (np.arange(512) + 0.5) / 512


@dataclass(frozen=True, slots=True)
class Term:
    """A group of features: the product of one group of each of these axes, of this total order."""

    axes: tuple[int, ...]
    groups: tuple[int, ...]
    order: int


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """Axes of one family and degree, evaluated together; `places` are the first columns of each."""

    axes: tuple[Axis, ...]
    places: tuple[int, ...]
    low: Floats
    width: Floats

    def fill(self, own: Floats, columns: Mapping[str, Floats], rows: slice) -> None:
        """Write the functions of all axes into their columns."""
        first = self.axes[0]
        if first.family != "legendre":
            for axis, place in zip(self.axes, self.places, strict=True):
                own[:, place : place + axis.columns] = axis.values(columns[axis.source][rows])
            return
        stacked = np.array([columns[axis.source][rows] for axis in self.axes]).T
        t = np.clip((stacked - self.low) / self.width, 0.0, 1.0)
        start = self.places[0]
        count = len(self.axes)
        # One order after another, all axes of an order side by side.
        for order, values in enumerate(_legendre_orders(2.0 * t - 1.0, first.size)):
            own[:, start + order * count : start + (order + 1) * count] = values


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Where the functions of axes stand beside each other, and which of them every feature multiplies."""

    columns: int
    families: tuple[_Family, ...]
    factors: tuple[NDArray[np.intp], ...]
    scale: Floats


@dataclass(frozen=True, slots=True)
class Basis:
    """Features w_g f(x), the constant first; `weights` are those of the groups, the constant's first."""

    axes: tuple[Axis, ...]
    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    _layout: _Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_layout", _layout_of(self.axes, self.terms, self.scale))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of features in every group, the constant's first."""
        return (1, *(self._size(term) for term in self.terms))

    @property
    def size(self) -> int:
        """Number of features."""
        return sum(self.sizes)

    @property
    def orders(self) -> Floats:
        """Total order of every feature; the constant has 0."""
        axis_orders = (0, *(term.order for term in self.terms))
        return np.repeat(np.array(axis_orders, dtype=np.float64), self.sizes)

    @property
    def scale(self) -> Floats:
        """Weight of every feature."""
        return np.repeat(np.array(self.weights), self.sizes)

    @property
    def squares(self) -> Floats:
        """Mean square of every feature under the uniform mechanism on the domain."""
        own = [axis.squares for axis in self.axes]
        parts = [np.ones(1)]
        for term in self.terms:
            found = np.ones(1)
            for axis, group in zip(term.axes, term.groups, strict=True):
                places = list(self.axes[axis].groups[group][1])
                found = np.outer(found, own[axis][places]).ravel()
            parts.append(found)
        return np.asarray(np.concatenate(parts) * self.scale**2)

    def features(self, columns: Mapping[str, Floats], part: slice | None = None) -> Floats:
        """Return the (n, size) features of columns of numbers or codes; no row is longer than one."""
        rows = slice(None) if part is None else part
        count = len(next(iter(columns.values()))[rows])
        own = np.empty((count, self._layout.columns))
        own[:, 0] = 1.0
        for family in self._layout.families:
            family.fill(own, columns, rows)
        found: Floats = own[:, self._layout.factors[0]]
        for factor in self._layout.factors[1:]:
            found *= own[:, factor]
        found *= self._layout.scale
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the basis as JSON-ready facts."""
        return {
            "kind": "products",
            "axes": [
                {
                    "source": axis.source,
                    "family": axis.family,
                    "size": axis.size,
                    "low": axis.low,
                    "width": axis.width,
                    "knots": list(axis.knots),
                }
                for axis in self.axes
            ],
            "terms": [[list(term.axes), list(term.groups)] for term in self.terms],
            "weights": list(self.weights),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Basis:
        """Return the basis written by `to_dict`."""
        axes = tuple(Axis(**{**axis, "knots": tuple(axis["knots"])}) for axis in facts["axes"])
        terms = tuple(_term(axes, tuple(places), tuple(groups)) for places, groups in facts["terms"])
        return cls(axes, terms, tuple(facts["weights"]))

    def _size(self, term: Term) -> int:
        size = 1
        for axis, group in zip(term.axes, term.groups, strict=True):
            size *= len(self.axes[axis].groups[group][1])
        return size


def make_basis(axes: Sequence[Axis], degree: int, tensor: bool, level: float = 0.7) -> Basis:
    """Return the basis of total order `degree`, with products of covariates or without.

    All groups have one weight but the constant, whose square is `level` times the mean squared length of the
    other features under the uniform mechanism.
    """
    own = tuple(axes)
    choices: list[list[int | None]] = [[None, *range(len(axis.groups))] for axis in own]
    if tensor:
        terms = []
        for picked in product(*choices):
            places = tuple(place for place, group in enumerate(picked) if group is not None)
            if places:
                terms.append(_term(own, places, tuple(group for group in picked if group is not None)))
    else:
        terms = [
            _term(own, (place,), (group,))
            for place in range(len(own))
            for group in range(len(own[place].groups))
        ]
    terms = [
        term
        for term in terms
        if term.order <= degree or (len(term.axes) == 1 and own[term.axes[0]].family in ("spline", "labels"))
    ]
    terms.sort(key=lambda term: (term.order, term.axes, term.groups))
    equal = Basis(own, tuple(terms), (1.0,) * (len(terms) + 1))
    raw = np.ones(len(terms) + 1)
    raw[0] = sqrt(level * float(equal.squares[1:].sum())) if terms else 1.0
    # A little below one, so that rounding of the features cannot carry a row beyond it.
    weights = raw / sqrt(float((raw**2).sum())) * (1.0 - 2.0**-40)
    return Basis(own, tuple(terms), tuple(float(weight) for weight in weights))


def constant_basis() -> Basis:
    """Return the basis whose only feature is the constant one."""
    return Basis((), (), (1.0,))


def _term(axes: tuple[Axis, ...], places: tuple[int, ...], groups: tuple[int, ...]) -> Term:
    order = sum(axes[place].groups[group][0] for place, group in zip(places, groups, strict=True))
    return Term(places, groups, order)


def _layout_of(axes: tuple[Axis, ...], terms: tuple[Term, ...], scale: Floats) -> _Layout:
    """Return where every function stands: a column of ones first, then the axes, family by family."""
    where: list[list[int]] = [[] for _ in axes]
    families = []
    start = 1
    kinds: dict[tuple[str, int], list[int]] = {}
    for place, axis in enumerate(axes):
        key = (axis.family, axis.size) if axis.family == "legendre" else (axis.family, -place)
        kinds.setdefault(key, []).append(place)
    for places in kinds.values():
        own = tuple(axes[place] for place in places)
        count = len(places)
        for number, place in enumerate(places):
            where[place] = [start + number + count * column for column in range(axes[place].columns)]
        low, width = (np.array([getattr(axis, name) for axis in own]) for name in ("low", "width"))
        families.append(_Family(own, tuple(where[place][0] for place in places), low, width))
        start += count * own[0].columns
    features: list[list[int]] = [[]]
    for term in terms:
        choices = [
            [where[axis][column] for column in axes[axis].groups[group][1]]
            for axis, group in zip(term.axes, term.groups, strict=True)
        ]
        features += [list(picked) for picked in product(*choices)]
    deepest = max(1, *(len(feature) for feature in features))
    padded = np.array([feature + [0] * (deepest - len(feature)) for feature in features], dtype=np.intp)
    return _Layout(start, tuple(families), tuple(padded.T), scale)


def _legendre_orders(z: Floats, degree: int) -> Iterator[Floats]:
    """Yield P_1 .. P_degree at z in [-1, 1], each of the shape of z."""
    before = np.ones_like(z)
    last = z
    for k in range(1, degree + 1):
        # Rounding may step over the ends by a few units in the last place.
        yield np.clip(last, -1.0, 1.0)
        before, last = last, ((2 * k + 1) * z * last - k * before) / (k + 1)


def _contrasts(labels: int) -> Floats:
    """Return the (labels, labels - 1) contrasts of Helmert, whose rows have length one and columns sum zero."""
    contrasts = np.zeros((labels, labels - 1))
    for label in range(labels - 1):
        contrasts[: label + 1, label] = 1.0
        contrasts[label + 1, label] = -(label + 1.0)
        contrasts[:, label] /= sqrt((label + 1.0) * (label + 2.0))
    return contrasts * (sqrt(labels / (labels - 1.0)) * (1.0 - 2.0**-45))


def _splines(t: Floats, knots: tuple[float, ...]) -> Floats:
    """Return the cubic B-splines on [0, 1] with these inner knots but the first; (n, knots + 3)."""
    degree = 3
    ends = np.concatenate((np.zeros(degree + 1), np.array(knots), np.ones(degree + 1)))
    last = len(ends) - degree - 2
    cell = np.clip(np.searchsorted(ends, t, side="right") - 1, degree, last)
    table = np.zeros((len(t), len(ends) - 1))
    table[np.arange(len(t)), cell] = 1.0
    for order in range(1, degree + 1):
        for index in range(len(ends) - order - 1):
            width = ends[index + order] - ends[index]
            right = ends[index + order + 1] - ends[index + 1]
            rising = (t - ends[index]) / width * table[:, index] if width > 0 else 0.0
            two = (ends[index + order + 1] - t) / right * table[:, index + 1] if right > 0 else 0.0
            table[:, index] = rising + two
    columns = table[:, 1 : last + 1]
    return np.clip(columns, 0.0, 1.0)
