"""What an honest site may say: bounds on the figures of an answer, as values that one function checks.

A coordinator does not see rows, yet knows the question, the declaration and the number of rows. From these alone
follow what figures can be: an effect lies in the width of the outcome's range, the numbers of people in the arms add
up to the rows, a noise has at least the variance that its budget leaves. Each such fact is a value here:

- `Within`: a figure lies between two ends. `Above`: it is larger than a number.
- `Equal`, `Near`: it is another number, exactly or but for rounding. `OneOf`: it is one of a few values.
- `Count`: it is a whole number between two ends. `Sum`: figures add up to another.

Kinds of answers declare those that follow from the declaration (`_site_bounds` beside their fields, given a
`PublicShape`); methods declare those that follow from their plan (`counterveil.estimators.site_bounds`).
`first_broken` reads either, in order, and stops at the first bound that does not hold: a later bound may be computed
from figures that an earlier one has checked.

Every number of a bound is public or was sent by the site; nothing here is private. Where a number is not a number
(nan), no bound on it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from fractions import Fraction
from math import isclose
from typing import Any, TypeAlias

from counterveil.data.domains import Label
from counterveil.inference.estimates import Known
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.results.effect import Effect, Linear

Figure: TypeAlias = float | Fraction

# What is a fraction at a site and a float in its message agrees to this part.
NEAR = 1e-6
# A person is one row: no arm that has a mean with an error has fewer, and no table in use has more.
FEWEST_IN_ARM, MOST_ROWS = 2, 10**12


class Breach(Enum):
    """What is wrong with an answer whose figure breaks a bound."""

    KIND = auto()  # not an answer of this kind
    QUESTION = auto()  # an answer to another question
    PRIVACY = auto()  # another guarantee or another cost
    STATEMENT = auto()  # it says of itself what its method does not say
    LIMITS = auto()  # its limits are not those of the declared outcome
    REACH = auto()  # a number beyond what the declared outcome and its noise allow
    NOISE = auto()  # a noise or a variance that does not follow from the question
    ROWS = auto()  # more people than the site has


@dataclass(frozen=True, slots=True)
class Within:
    """A figure lies in [low, high]; an end that is None is not checked."""

    figure: str
    value: Figure
    low: Figure | None = None
    high: Figure | None = None
    breach: Breach = Breach.NOISE

    @property
    def holds(self) -> bool:
        """Whether the figure lies there."""
        above = self.low is None or bool(self.low <= self.value)
        return above and (self.high is None or bool(self.value <= self.high))


@dataclass(frozen=True, slots=True)
class Above:
    """A figure is larger than a number."""

    figure: str
    value: Figure
    than: Figure = 0.0
    breach: Breach = Breach.NOISE

    @property
    def holds(self) -> bool:
        """Whether the figure is larger."""
        return bool(self.value > self.than)


@dataclass(frozen=True, slots=True)
class Equal:
    """A figure, or anything else that a site repeats, is what follows from the question."""

    figure: str
    value: Any
    to: Any
    breach: Breach = Breach.NOISE

    @property
    def holds(self) -> bool:
        """Whether both are equal."""
        return bool(self.value == self.to)


@dataclass(frozen=True, slots=True)
class Near:
    """A figure is another number but for rounding: they differ by `part` of the larger at most."""

    figure: str
    value: Figure
    to: Figure
    part: float = NEAR
    breach: Breach = Breach.NOISE

    @property
    def holds(self) -> bool:
        """Whether both are nearly equal."""
        return isclose(self.value, self.to, rel_tol=self.part)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A figure, or a name, is one of a few."""

    figure: str
    value: Any
    among: Collection[Any]
    breach: Breach = Breach.NOISE

    @property
    def holds(self) -> bool:
        """Whether it is among them."""
        return self.value in self.among


@dataclass(frozen=True, slots=True)
class Count:
    """A figure is a whole number from `least` to `most`; None is none."""

    figure: str
    value: Figure | None
    least: int = FEWEST_IN_ARM
    most: int = MOST_ROWS
    breach: Breach = Breach.NOISE

    @property
    def holds(self) -> bool:
        """Whether it is such a number."""
        return (
            self.value is not None and self.least <= self.value <= self.most and self.value == int(self.value)
        )


@dataclass(frozen=True, slots=True)
class Sum:
    """Figures add up to another: exactly, or but for rounding of `part` of the larger."""

    figure: str
    values: tuple[Figure, ...]
    total: Figure
    part: float = 0.0
    breach: Breach = Breach.NOISE

    @property
    def holds(self) -> bool:
        """Whether they do."""
        total = sum(self.values)
        return isclose(total, self.total, rel_tol=self.part) if self.part else bool(total == self.total)


Bound: TypeAlias = Within | Above | Equal | Near | OneOf | Count | Sum


def first_broken(bounds: Iterable[Bound]) -> Bound | None:
    """Return the first bound that does not hold, None where all do; bounds after it are not computed."""
    return next((bound for bound in bounds if not bound.holds), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicShape:
    """What a declaration and a question say of an answer before there is one.

    Attributes
    ----------
    rows : int
        Number of people at the site.
    names : tuple of str, int or float
        Names of what the answer has figures of, in order: arms, groups, outcomes or columns.
    ranges : tuple of (float, float)
        What each of them can be; one for all of them where there is one outcome.
    by : tuple of str
        Covariates that make groups.
    columns : tuple of (str, tuple of str)
        Covariates that are several columns, with these.
    formulas : tuple of str
        Regressions that were asked for with errors of their own.
    grids : mapping of int to tuple of float
        Ends of time cells, by the number of parts that cells are cut into.
    causes : tuple of str
        Names of competing events.
    convention : str
        Where in a time cell people are censored.
    measure, estimand : str
        What was asked for.
    sizes_public : bool
        Whether the numbers of people in groups and arms are public.
    """

    rows: int
    names: tuple[Label, ...] = ()
    ranges: tuple[Ends, ...] = ()
    by: tuple[str, ...] = ()
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    formulas: tuple[str, ...] = ()
    grids: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    causes: tuple[str, ...] = ()
    convention: str = ""
    measure: str = ""
    estimand: str = ""
    sizes_public: bool = True


@dataclass(frozen=True, slots=True)
class SiteFigure:
    """One number of a site's answer by the roles in which it is pooled.

    Attributes
    ----------
    name : str
        What it is of; figures of one name are pooled.
    numbers : Linear, IndependentArmMeans, JointArmMeans or another estimate
        Estimate, sampling error and noise as released.
    size : float or None
        Public number of people behind it, by which it is weighted; None for everyone at the site.
    """

    name: str
    numbers: Any
    size: float | None = None


def of_one_site(known: Known, limits: Ends) -> Iterator[Bound]:
    """Yield that a number has the error of one site, and the limits that follow from the declared outcome."""
    linear = isinstance(known, Linear) and type(known.uncertainty) is Uncertainty
    yield Equal("whether it is a number of one site", linear, True, breach=Breach.KIND)
    assert isinstance(known, Linear)
    yield Equal("limits", known.limits, limits, breach=Breach.LIMITS)


def of_public_size(effect: Effect) -> Iterator[Bound]:
    """Yield that the number of people behind an effect is public: a whole number without noise."""
    yield Equal("noise of a size", effect.size_sd, 0)
    yield Count("size", effect.size)
