"""Outcomes of a study: one, the change since before, a sum over a sum, or several.

Where a study names what was measured before treatment, everyone's outcome is their own change, so that an effect on
outcomes is a difference in differences (Heckman, Ichimura and Todd 1997; Abadie 2005). Where it names a
denominator, the outcome is its numerator, and arms are compared by sums over sums. Everyone may have several
outcomes, each with its own range. Proof: `outcomes.proof.md`. Times to an event are in `follow_up.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from counterveil.data.domains import (
    Bounds,
    Label,
    Range,
    checked_label,
    ends_of,
    first_confusable,
    interval,
    is_name,
    listed,
    plain_ends,
)
from counterveil.data.follow_up import TimeToEvent
from counterveil.data.treatment import column_name
from counterveil.data.unknown_arguments import known_fields
from counterveil.errors import CounterveilError, refusal, shown
from counterveil.privacy import Number

Ends: TypeAlias = tuple[Number, Number]

MOST_OUTCOMES = 1000


@known_fields
@dataclass(frozen=True, slots=True)
class Outcome:
    """One outcome with its public range.

    Parameters
    ----------
    column : str
        Column of the outcome.
    range : tuple of two numbers
        Lowest and highest possible value, in the unit of the column, known without looking at the data: (0,
        1) for yes or no. Values outside are clamped. The noise grows with the width.

    Attributes
    ----------
    column, range
        As declared, numbers in the shortest form that gives them back.

    Raises
    ------
    CounterveilError
        No name of a column (CV-S004), or no range (CV-S001, CV-S002, CV-S003).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Outcome("death", (0, 1))
    Outcome(column='death', range=(0, 1))
    """

    column: str
    range: Ends

    def __post_init__(self) -> None:
        column_name(self.column, "outcome")
        _put_range(self, "range", _outcome_bounds(self.range, self.column))

    def _attributes(self) -> dict[str, Any]:
        """Return what a study knows of its outcome, by the attributes of `Study`."""
        return {"outcome": self.column, "outcome_range": _outcome_bounds(self.range, self.column)}


@known_fields
@dataclass(frozen=True, slots=True)
class Change:
    """The change of an outcome since before treatment: everyone is compared with themselves.

    The effect on the change is a difference in differences. What was measured before stands in columns of the
    same row, or, with `time`, in rows of the same person in earlier periods (which needs `people`).

    Parameters
    ----------
    column : str
        Column of the outcome.
    range : tuple of two numbers
        Lowest and highest possible outcome, known without looking at the data. Values outside are clamped.
    before : str or sequence
        Column that was measured before treatment, or several in the order of time, of which the mean counts.
        With `time`: the period before treatment, or several.
    before_range : tuple of two numbers, optional
        Range of what was measured before; `range` if omitted.
    change_range : tuple of two numbers, optional
        Narrower range of the change, to which it is clamped; all that both ranges leave possible if omitted.
    time : str, optional
        Column that holds the period of a row.
    after : label or sequence of labels, optional
        With `time`: the period after treatment, or several.

    Attributes
    ----------
    column, range, before, before_range, change_range, time, after
        As declared; periods are tuples.

    Raises
    ------
    CounterveilError
        Names (CV-S004), a range (CV-S001 to CV-S003), or what was measured before (CV-S018).

    Examples
    --------
    >>> import counterveil as cv
    >>> change = cv.Change("earnings", (0, 60), before="earnings_1975", change_range=(-20, 20))
    >>> study = cv.Study("programme", change)
    >>> study.outcome_name
    'change in earnings since earnings_1975'
    >>> years = cv.Change("earnings", (0, 60), time="year", before=[1975], after=[1978])
    >>> study = cv.Study("programme", years, people="worker")
    """

    column: str
    range: Ends
    before: str | Sequence[Label] | Label
    before_range: Ends | None = None
    change_range: Ends | None = None
    time: str | None = None
    after: Sequence[Label] | Label | None = None

    def __post_init__(self) -> None:
        column_name(self.column, "outcome")
        declared = self._declared()
        _put_range(self, "range", declared.outcome_range)
        if self.before_range is not None:
            same = declared.range == declared.outcome_range
            object.__setattr__(self, "before_range", None if same else _plain_pair(declared.range))
        if declared.change is not None:
            _put_range(self, "change_range", declared.change)
        if self.time is not None:
            object.__setattr__(self, "before", declared.periods)
            object.__setattr__(self, "after", declared.after)
        elif len(declared.columns) == 1:
            object.__setattr__(self, "before", declared.columns[0])
        else:
            object.__setattr__(self, "before", declared.columns)

    def _declared(self) -> Before:
        bounds = _outcome_bounds(self.range, self.column)
        return Before.declared(
            self.before, self.before_range, self.change_range, self.time, self.after, bounds
        )

    def _attributes(self) -> dict[str, Any]:
        """Return what a study knows of its outcome, by the attributes of `Study`."""
        declared = self._declared()
        return {"outcome": self.column, "outcome_range": declared.bounds, "before": declared}


@known_fields
@dataclass(frozen=True, slots=True)
class Ratio:
    """A sum over a sum: clicks per session, cost per visit. Arms are compared by the ratio of their sums.

    Parameters
    ----------
    numerator : str
        Column of the numerator.
    range : tuple of two numbers
        Lowest and highest possible numerator of a row, known without looking at the data. Values outside are
        clamped.
    denominator : str
        Column of the denominator.
    denominator_range : tuple of two numbers
        Lowest and highest possible denominator of a row; never negative.

    Attributes
    ----------
    numerator, range, denominator, denominator_range
        As declared, numbers in the shortest form that gives them back.

    Raises
    ------
    CounterveilError
        Names (CV-S004), a range (CV-S001 to CV-S003), or a denominator that is invalid (CV-S019).

    Examples
    --------
    >>> import counterveil as cv
    >>> study = cv.Study("variant", cv.Ratio("clicks", (0, 100), "sessions", (1, 50)), assignment=cv.Trial())
    >>> study.outcome_name
    'clicks per sessions'
    """

    numerator: str
    range: Ends
    denominator: str
    denominator_range: Ends

    def __post_init__(self) -> None:
        column_name(self.numerator, "numerator")
        _put_range(self, "range", _outcome_bounds(self.range, self.numerator))
        _put_range(self, "denominator_range", self._declared().range)

    def _declared(self) -> Denominator:
        return Denominator.declared(self.denominator, self.denominator_range)

    def _attributes(self) -> dict[str, Any]:
        """Return what a study knows of its outcome, by the attributes of `Study`."""
        bounds = _outcome_bounds(self.range, self.numerator)
        return {"outcome": self.numerator, "outcome_range": bounds, "denominator": self._declared()}


@known_fields
@dataclass(frozen=True, slots=True)
class Outcomes:
    """Several outcomes, the primary one first: what `cv.outcomes` asks about at once.

    Parameters
    ----------
    ranges : mapping of str to tuple of two numbers
        2 to 1,000 columns of outcomes with their public ranges, the primary outcome first.
    baseline : mapping of str to str, optional
        In a trial: for some outcomes the column of the same number before treatment, which has the same
        range.

    Attributes
    ----------
    ranges, baseline
        As declared; both can be read only.

    Raises
    ------
    CounterveilError
        A declaration that is invalid (CV-S140, CV-S002, CV-S003).

    Examples
    --------
    >>> import counterveil as cv
    >>> outcomes = cv.Outcomes({"visits": (0, 30), "spend": (0, 500)}, baseline={"visits": "visits_before"})
    >>> study = cv.Study("variant", outcomes, assignment=cv.Trial())
    >>> study.outcome
    'visits'
    """

    ranges: Mapping[str, Ends]
    baseline: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        several = Several.declared(self.ranges, self.baseline)
        ranges = {name: _plain_pair(ends) for name, ends in several.ranges}
        object.__setattr__(self, "ranges", MappingProxyType(ranges))
        baseline = MappingProxyType(dict(several.baseline)) if several.baseline else None
        object.__setattr__(self, "baseline", baseline)

    def __hash__(self) -> int:
        return hash(tuple(self.ranges.items()))

    def __reduce__(self) -> tuple[object, ...]:
        # Read-only mappings do not pickle; the declarations do.
        return (Outcomes, (dict(self.ranges), None if self.baseline is None else dict(self.baseline)))

    def _attributes(self) -> dict[str, Any]:
        """Return what a study knows of its outcome, by the attributes of `Study`."""
        several = Several.declared(self.ranges, self.baseline)
        name, ends = several.ranges[0]
        return {"outcome": name, "outcome_range": ends, "several": several}


OutcomePart: TypeAlias = Outcome | Change | Ratio | TimeToEvent | Outcomes


def outcome_of(declared: object) -> OutcomePart:
    """Return the outcome of a study: a part of it, or columns with their ranges; raises CV-S170 for a bare column."""
    if isinstance(declared, Outcome | Change | Ratio | TimeToEvent | Outcomes):
        return declared
    if isinstance(declared, str) and is_name(declared):
        raise refusal("CV-S170", name=declared)
    if isinstance(declared, Mapping) and len(declared) == 1:
        ((name, ends),) = declared.items()
        return Outcome(name, ends)
    if isinstance(declared, Mapping):
        return Outcomes(declared)
    raise refusal("CV-S004", role="outcome", name=declared)


def _plain_pair(bounds: Bounds) -> Ends:
    low, high = plain_ends(bounds)
    return low, high


def _put_range(part: object, name: str, bounds: Bounds) -> None:
    object.__setattr__(part, name, _plain_pair(bounds))


def _outcome_bounds(given: object, outcome: str) -> Bounds:
    return ends_of(
        given, f"outcome {outcome!r}", lambda: refusal("CV-S001", name=outcome, outcome_range=given)
    )


@dataclass(frozen=True, slots=True)
class Before:
    """What outcomes are compared with: columns of the same row, or a person's rows in earlier periods.

    Attributes:
        columns: columns that were measured before treatment, in their order; none where rows lie in periods.
        time: the column that holds a row's period; None where a row holds both measurements.
        periods, after: periods before treatment and after it, in their order.
        outcome_range: of the outcome itself, as declared.
        range: of what was measured before.
        change: of the difference where a narrower one is declared, else None.
    """

    columns: tuple[str, ...]
    time: str | None
    periods: tuple[Label, ...]
    after: tuple[Label, ...]
    outcome_range: Bounds
    range: Bounds
    change: Bounds | None

    @classmethod
    def declared(
        cls,
        before: object,
        before_range: object,
        change_range: object,
        time: object,
        after: object,
        own: Bounds,
    ) -> Before:
        """Return what outcomes are compared with; raises CV-S018 for what is invalid. `own` is the outcome's range."""
        columns: tuple[str, ...] = ()
        periods: tuple[tuple[Label, ...], tuple[Label, ...]] = ((), ())
        if time is not None:
            periods = _periods(time, before, after)
        elif after is not None:
            raise _no_change("time= beside after=", "no time=")
        else:
            columns = _outcomes_columns(before)
        earlier = own
        if before_range is not None:
            earlier = _ends(before_range, "before_range", "what was measured before")
        found = cls(columns, None if time is None else str(time), *periods, own, earlier, None)
        if change_range is None:
            return found
        change = _ends(change_range, "change_range", "the change")
        if change[0] < found.bounds[0] or change[1] > found.bounds[1]:
            low, high = plain_ends(found.bounds)
            raise _no_change(f"change_range= inside [{low}, {high}]", shown(change_range))
        return replace(found, change=change)

    @property
    def bounds(self) -> Bounds:
        """The range of the change: as declared, else what both ranges leave possible."""
        (low, high), (least, most) = self.outcome_range, self.range
        return (low - most, high - least) if self.change is None else self.change

    @property
    def levels(self) -> Bounds:
        """The range of every measurement, before and after."""
        (low, high), (least, most) = self.outcome_range, self.range
        return min(low, least), max(high, most)

    def labels(self, outcome: str) -> tuple[Label, ...]:
        """Return what the measurements are called, in the order of time: periods, or columns."""
        return (*self.columns, outcome) if self.time is None else (*self.periods, *self.after)

    @property
    def earlier(self) -> int:
        """How many measurements were before treatment."""
        return len(self.columns) or len(self.periods)

    @property
    def subsets(self) -> tuple[str, ...]:
        """What periods choose, in words: people with rows in each of them."""
        if self.time is None:
            return ()
        return (f"{self.time} is each of {[*self.periods, *self.after]}",)

    def since(self) -> str:
        """Return what outcomes are compared with, in few words."""
        if self.time is None:
            return " and ".join(self.columns)
        first, last = self.periods[0], self.periods[-1]
        return f"{self.time} {first}" if len(self.periods) == 1 else f"{self.time} {first} to {last}"

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        if self.time is None:
            found: dict[str, Any] = {
                "before": self.columns[0] if len(self.columns) == 1 else list(self.columns)
            }
        else:
            found = {"time": self.time, "before": list(self.periods), "after": list(self.after)}
        if self.range != self.outcome_range:
            found["before_range"] = plain_ends(self.range)
        if self.change is not None:
            found["change_range"] = plain_ends(self.change)
        return found

    def public_fact(self, outcome: str, rule: str | None, reference: Label | None) -> str:
        """Return how changes are made of what was measured before and after, by the rule for a person's rows.

        Those of an event study are since the period that is its `reference`.
        """
        of = f"{'' if rule is None else f'{rule} '}{outcome!r}"
        if reference is not None:
            write = str if self.time is not None else repr
            others = listed([write(each) for each in self.labels(outcome) if write(each) != write(reference)])
            others = others if self.time is None else f"{of} at {self.time!r} {others}"
            clamped = "" if self.change is None else f", clamped to {interval(self.bounds)}"
            return f"that the outcomes analysed are {others}, each minus that of {write(reference)}{clamped}"
        if self.time is not None:
            since = f"{of} over {self.time!r} {listed([str(each) for each in self.periods])}"
            after = f"{of} over {listed([str(each) for each in self.after])}"
        else:
            mean = "the mean of " if len(self.columns) > 1 else ""
            since, after = f"{mean}{listed([repr(name) for name in self.columns])}", repr(outcome)
        return f"that the outcome analysed is {after} minus {since}, clamped to {interval(self.bounds)}"


@dataclass(frozen=True, slots=True)
class Denominator:
    """The denominator of a ratio: its column and its range."""

    column: str
    range: Bounds

    @classmethod
    def declared(cls, denominator: object, denominator_range: object) -> Denominator:
        """Return the denominator, or raise CV-S019 for one that is invalid."""
        if not is_name(denominator):
            raise _no_ratio("denominator=: the column of the denominator", shown(denominator))
        known = "denominator_range=(lowest, highest), known without looking at the data"
        ends = ends_of(
            denominator_range,
            f"denominator {denominator!r}",
            lambda: _no_ratio(known, shown(denominator_range)),
        )
        if ends[0] < 0:
            raise _no_ratio(
                "a denominator that is never negative", f"denominator_range={shown(denominator_range)}"
            )
        return cls(denominator, ends)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        return {"denominator": self.column, "denominator_range": plain_ends(self.range)}


def _outcomes_columns(before: object) -> tuple[str, ...]:
    names = (before,) if isinstance(before, str) else before
    if not isinstance(names, tuple | list) or not names or not all(map(is_name, names)):
        raise _no_change("before=: a column, or several in the order of time", shown(before))
    return tuple(names)


def _periods(time: object, before: object, after: object) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    if not is_name(time):
        raise _no_change("time=: the column that holds a row's period", shown(time))
    if after is None:
        raise _no_change("after=: the periods after treatment, as before= lists those before", "none")
    sides = tuple(
        tuple(
            checked_label(label, "period") for label in (side if isinstance(side, tuple | list) else [side])
        )
        for side in (before, after)
    )
    every = (*sides[0], *sides[1])
    if not sides[0] or not sides[1] or first_confusable(every) is not None:
        raise _no_change("different periods in before= and after=", f"{shown(before)}, {shown(after)}")
    return sides[0], sides[1]


def _ends(given: object, argument: str, what: str) -> Bounds:
    return ends_of(
        given,
        what,
        lambda: _no_change(f"{argument}=(lowest, highest)", shown(given)),
    )


@dataclass(frozen=True, slots=True)
class Several:
    """The outcomes of a study, the primary one first, and for some of them the column of the same number before."""

    ranges: tuple[tuple[str, Bounds], ...]
    baseline: tuple[tuple[str, str], ...] = ()

    @classmethod
    def declared(cls, outcomes: object, baseline: object) -> Several:
        """Return several outcomes, or raise CV-S140 for what is invalid."""
        if not isinstance(outcomes, Mapping) or not 2 <= len(outcomes) <= MOST_OUTCOMES:
            expected = "ranges=: two or more columns with their ranges, the primary first"
            raise _no_outcomes(expected, shown(outcomes))
        ranges = tuple((_named(name), _range_of(name, ends)) for name, ends in outcomes.items())
        return cls(ranges, _baseline(baseline, dict(ranges)))

    @property
    def names(self) -> tuple[str, ...]:
        """The outcomes, the primary one first."""
        return tuple(name for name, _ in self.ranges)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that outcomes are made of: the outcomes, then what was measured before."""
        return (*self.names, *(column for _, column in self.baseline))

    def bounds(self, column: str) -> Range:
        """Return the range of an outcome, or of what was measured of it before, which is the same."""
        of = dict(self.ranges)
        outcome = next((name for name, before in self.baseline if before == column), column)
        return Range(*of[outcome])

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        found: dict[str, Any] = {"ranges": {name: plain_ends(ends) for name, ends in self.ranges}}
        return found | ({"baseline": dict(self.baseline)} if self.baseline else {})


def _named(name: object) -> str:
    if is_name(name):
        return name
    raise _no_outcomes("names of columns", shown(name))


def _range_of(name: object, ends: object) -> Bounds:
    known = f"(lowest, highest) of {shown(name)}, known without looking at the data"
    return ends_of(
        ends,
        f"outcome {name!r}",
        lambda: _no_outcomes(known, shown(ends)),
    )


def _baseline(baseline: object, ranges: Mapping[str, Bounds]) -> tuple[tuple[str, str], ...]:
    given = {} if baseline is None else baseline
    fix = 'for example baseline={"visits": "visits_last_month"}'
    if not isinstance(given, Mapping):
        raise refusal(
            "CV-S140b",
            expected="baseline=: for outcomes, the column of the same number before treatment",
            got=shown(given),
            fix=fix,
        )
    for outcome, column in given.items():
        if outcome not in ranges or not is_name(column):
            got = f"{shown(outcome)}: {shown(column)}"
            raise refusal(
                "CV-S140b",
                expected="baseline=: outcomes of the study, and a column for each",
                got=got,
                fix=fix,
            )
    # In the order of the outcomes, so that equal declarations are equal.
    return tuple((name, given[name]) for name in ranges if name in given)


def earlier_name(outcome: str) -> str:
    """Return the name of the column, made of a person's rows, of their outcome before treatment; no source has it."""
    return f"{outcome}\nbefore"


def level_name(outcome: str, place: int) -> str:
    """Return the same for the outcome in a period, by its place."""
    return f"{outcome}\n{place}"


def _no_ratio(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S019", expected=expected, got=got)


def _no_change(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S018", expected=expected, got=got)


def _no_outcomes(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S140", expected=expected, got=got)
