"""Outcomes that are made of several private numbers: the change since before, a sum over a sum, several outcomes.

Where a study names what was measured before treatment, everyone's outcome is their own change, so that an effect on
outcomes is a difference in differences (Heckman, Ichimura and Todd 1997; Abadie 2005). Where it names a denominator,
the outcome is its numerator, and arms are compared by sums over sums. Everyone may have several outcomes, each with its
own range. Proof: `outcomes.proof.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from counterveil.data.domains import Bounds, Range, ends_of, interval, is_name, listed, plain_ends
from counterveil.data.labels import Label, checked_label, first_confusable
from counterveil.errors import refusal, shown

MOST_OUTCOMES = 1000


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

    KEYS: ClassVar = ("before", "before_range", "change_range", "time", "after")

    @classmethod
    def declared(
        cls,
        before: object,
        before_range: object,
        change_range: object,
        time: object,
        after: object,
        person: object,
        own: Bounds,
    ) -> Before | None:
        """Return the declaration, None where nothing was measured before; raises CV-S018 for one that is invalid.

        `own` is the range of the outcome.
        """
        if before is None:
            given = zip(cls.KEYS, (None, before_range, change_range, time, after), strict=True)
            beside = [name for name, value in given if value is not None]
            if beside:
                raise refusal(
                    "CV-S018", expected=f"before= beside {', '.join(beside)}", got="no before=", fix=_FIX
                )
            return None
        columns: tuple[str, ...] = ()
        periods: tuple[tuple[Label, ...], tuple[Label, ...]] = ((), ())
        if time is not None:
            periods = _periods(time, before, after, person)
        elif after is not None:
            raise refusal("CV-S018", expected="time= beside after=", got="no time=", fix=_FIX)
        else:
            columns = _columns(before)
        earlier = own
        if before_range is not None:
            earlier = _ends(before_range, "before_range", "what was measured before")
        found = cls(columns, None if time is None else str(time), *periods, own, earlier, None)
        if change_range is None:
            return found
        change = _ends(change_range, "change_range", "the change")
        if change[0] < found.bounds[0] or change[1] > found.bounds[1]:
            low, high = plain_ends(found.bounds)
            raise refusal(
                "CV-S018", expected=f"change_range= inside [{low}, {high}]", got=shown(change_range), fix=_FIX
            )
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
class Per:
    """The denominator of a ratio: its column and its range."""

    column: str
    range: Bounds

    KEYS: ClassVar = ("per", "per_range")

    @classmethod
    def declared(cls, per: object, per_range: object, two_arms: bool, before: Before | None) -> Per | None:
        """Return the declared denominator, or None where there is none; raises CV-S019 for one that is invalid."""
        if per is None and per_range is None:
            return None
        if not is_name(per):
            raise refusal("CV-S019", expected="per=: the column of the denominator", got=shown(per))
        known = "per_range=(lowest, highest), known without looking at the data"
        ends = ends_of(
            per_range,
            f"denominator {per!r}",
            lambda: refusal("CV-S019", expected=known, got=shown(per_range)),
        )
        if ends[0] < 0:
            raise refusal(
                "CV-S019",
                expected="a denominator that is never negative",
                got=f"per_range={shown(per_range)}",
            )
        if not two_arms or before is not None:
            raise refusal(
                "CV-S019", expected="a ratio of two arms without before=", got="several arms, or before="
            )
        return cls(per, ends)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        return {"per": self.column, "per_range": plain_ends(self.range)}


_FIX = 'for example Study(..., before="y0"), or Study(..., person="id", time="year", before=[2001], after=[2002])'


def _columns(before: object) -> tuple[str, ...]:
    names = (before,) if isinstance(before, str) else before
    if not isinstance(names, tuple | list) or not names or not all(map(is_name, names)):
        raise refusal(
            "CV-S018",
            expected="before=: a column, or several in the order of time",
            got=shown(before),
            fix=_FIX,
        )
    return tuple(names)


def _periods(
    time: object, before: object, after: object, person: object
) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    if not is_name(time):
        raise refusal(
            "CV-S018", expected="time=: the column that holds a row's period", got=shown(time), fix=_FIX
        )
    if person is None:
        raise refusal(
            "CV-S018", expected="person= beside time=: whose rows are compared", got="no person=", fix=_FIX
        )
    if after is None:
        raise refusal(
            "CV-S018",
            expected="after=: the periods after treatment, as before= lists those before",
            got="none",
            fix=_FIX,
        )
    sides = tuple(
        tuple(
            checked_label(label, "period") for label in (side if isinstance(side, tuple | list) else [side])
        )
        for side in (before, after)
    )
    every = (*sides[0], *sides[1])
    if not sides[0] or not sides[1] or first_confusable(every) is not None:
        raise refusal(
            "CV-S018",
            expected="different periods in before= and after=",
            got=f"{shown(before)}, {shown(after)}",
            fix=_FIX,
        )
    return sides[0], sides[1]


def _ends(given: object, argument: str, what: str) -> Bounds:
    return ends_of(
        given,
        what,
        lambda: refusal("CV-S018", expected=f"{argument}=(lowest, highest)", got=shown(given), fix=_FIX),
    )


@dataclass(frozen=True, slots=True)
class Several:
    """The outcomes of a study, the primary one first, and for some of them the column of the same number before."""

    ranges: tuple[tuple[str, Bounds], ...]
    earlier: tuple[tuple[str, str], ...] = ()

    KEYS: ClassVar = ("outcomes", "earlier")

    @classmethod
    def declared(
        cls, outcomes: object, earlier: object, several: object, alone: Mapping[str, object]
    ) -> Several | None:
        """Return the declared outcomes, None where the study has one; raises CV-S140 for what is invalid.

        `alone` is what a study of one outcome declares of it.
        """
        if isinstance(several, cls) and outcomes is None and alone["outcome"] == several.names[0]:
            # As `dataclasses.replace` hands it on, with the first outcome beside it.
            return several
        if outcomes is None:
            if earlier is not None:
                raise refusal(
                    "CV-S140", expected="outcomes= beside earlier=", got="no outcomes=", fix=_FIX_several
                )
            return None
        beside = [name for name, value in alone.items() if value is not None]
        if beside:
            expected = "outcomes= alone: it names and bounds all outcomes"
            raise refusal("CV-S140", expected=expected, got=f"{beside[0]}= beside it", fix=_FIX_several)
        if not isinstance(outcomes, Mapping) or not 2 <= len(outcomes) <= MOST_OUTCOMES:
            expected = "outcomes=: two or more columns with their ranges, the primary first"
            raise refusal("CV-S140", expected=expected, got=shown(outcomes), fix=_FIX_several)
        ranges = tuple((_named(name), _range_of(name, ends)) for name, ends in outcomes.items())
        return cls(ranges, _earlier(earlier, dict(ranges)))

    @property
    def names(self) -> tuple[str, ...]:
        """The outcomes, the primary one first."""
        return tuple(name for name, _ in self.ranges)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that outcomes are made of: the outcomes, then what was measured before."""
        return (*self.names, *(column for _, column in self.earlier))

    def bounds(self, column: str) -> Range:
        """Return the range of an outcome, or of what was measured of it before, which is the same."""
        of = dict(self.ranges)
        outcome = next((name for name, before in self.earlier if before == column), column)
        return Range(*of[outcome])

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        found: dict[str, Any] = {"outcomes": {name: plain_ends(ends) for name, ends in self.ranges}}
        return found | ({"earlier": dict(self.earlier)} if self.earlier else {})


_FIX_several = 'for example Study("arm", outcomes={"death": (0, 1), "days": (0, 90)})'


def _named(name: object) -> str:
    if is_name(name):
        return name
    raise refusal("CV-S140", expected="names of columns", got=shown(name), fix=_FIX_several)


def _range_of(name: object, ends: object) -> Bounds:
    known = f"(lowest, highest) of {shown(name)}, known without looking at the data"
    return ends_of(
        ends,
        f"outcome {name!r}",
        lambda: refusal("CV-S140", expected=known, got=shown(ends), fix=_FIX_several),
    )


def _earlier(earlier: object, ranges: Mapping[str, Bounds]) -> tuple[tuple[str, str], ...]:
    given = {} if earlier is None else earlier
    fix = 'for example earlier={"visits": "visits_last_month"}'
    if not isinstance(given, Mapping):
        raise refusal(
            "CV-S140",
            expected="earlier=: for outcomes, the column of the same number before treatment",
            got=shown(given),
            fix=fix,
        )
    for outcome, column in given.items():
        if outcome not in ranges or not is_name(column):
            got = f"{shown(outcome)}: {shown(column)}"
            raise refusal(
                "CV-S140", expected="earlier=: outcomes of the study, and a column for each", got=got, fix=fix
            )
    # In the order of the outcomes, so that equal declarations are equal.
    return tuple((name, given[name]) for name in ranges if name in given)


def earlier_name(outcome: str) -> str:
    """Return the name of the column, made of a person's rows, of their outcome before treatment; no source has it."""
    return f"{outcome}\nbefore"


def level_name(outcome: str, place: int) -> str:
    """Return the same for the outcome in a period, by its place."""
    return f"{outcome}\n{place}"
