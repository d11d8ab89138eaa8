"""Outcomes that are made of several private numbers: the change since before, and a sum over a sum.

Where a study names what was measured before treatment, everyone's outcome is their own change, so that an effect on
outcomes is a difference in differences (Heckman, Ichimura and Todd 1997; Abadie 2005). Where it names a denominator,
the outcome is its numerator, and arms are compared by sums over sums. Proof: `outcomes.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from counterveil.data.domains import Range
from counterveil.data.labels import Label, checked_label, first_confusable, plain_number
from counterveil.errors import Refusal, shown

if TYPE_CHECKING:
    from counterveil.data.study import Study

Bounds = tuple[Fraction, Fraction]


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
            found["before_range"] = [plain_number(end) for end in self.range]
        if self.change is not None:
            found["change_range"] = [plain_number(end) for end in self.change]
        return found


@dataclass(frozen=True, slots=True)
class Per:
    """The denominator of a ratio: its column and its range."""

    column: str
    range: Bounds

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        return {"per": self.column, "per_range": [plain_number(end) for end in self.range]}


_FIX = 'for example Study(..., before="y0"), or Study(..., person="id", time="year", before=[2001], after=[2002])'
_invalid = Refusal(
    "CV-S018",
    "the declaration of what was measured before is invalid",
    expected="{expected}",
    got="{got}",
    fix="{fix}",
)


def declared_before(
    study: Study,
    before: object,
    before_range: object,
    change_range: object,
    time: object,
    after: object,
    person: object,
) -> Before | None:
    """Return the declaration, or None where nothing was measured before; raises CV-S018 for one that is invalid."""
    if before is None:
        given = {"before_range": before_range, "change_range": change_range, "time": time, "after": after}
        beside = [name for name, value in given.items() if value is not None]
        if beside:
            raise _invalid(f"before= beside {', '.join(beside)}", "no before=", _FIX)
        return None
    columns: tuple[str, ...] = ()
    periods: tuple[tuple[Label, ...], tuple[Label, ...]] = ((), ())
    if time is None:
        if after is not None:
            raise _invalid("time= beside after=", "no time=", _FIX)
        columns = _columns(before)
    else:
        periods = _periods(time, before, after, person)
    own = study.outcome_range
    earlier = own
    if before_range is not None:
        earlier = _bounds(before_range, "before_range", "what was measured before")
    when = None if time is None else str(time)
    found = Before(columns, when, *periods, own, earlier, None)
    if change_range is None:
        return found
    change = _bounds(change_range, "change_range", "the change")
    if change[0] < found.bounds[0] or change[1] > found.bounds[1]:
        low, high = map(plain_number, found.bounds)
        raise _invalid(f"change_range= inside [{low}, {high}]", shown(change_range), _FIX)
    return replace(found, change=change)


def _columns(before: object) -> tuple[str, ...]:
    names = (before,) if isinstance(before, str) else before
    if (
        not isinstance(names, tuple | list)
        or not names
        or not all(isinstance(name, str) and name.strip() for name in names)
    ):
        raise _invalid("before=: a column, or several in the order of time", shown(before), _FIX)
    return tuple(names)


def _periods(
    time: object, before: object, after: object, person: object
) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    if not isinstance(time, str) or not time.strip():
        raise _invalid("time=: the column that holds a row's period", shown(time), _FIX)
    if person is None:
        raise _invalid("person= beside time=: whose rows are compared", "no person=", _FIX)
    if after is None:
        raise _invalid("after=: the periods after treatment, as before= lists those before", "none", _FIX)
    sides = tuple(
        tuple(
            checked_label(label, "period") for label in (side if isinstance(side, tuple | list) else [side])
        )
        for side in (before, after)
    )
    every = (*sides[0], *sides[1])
    if not sides[0] or not sides[1] or first_confusable(every) is not None:
        raise _invalid("different periods in before= and after=", f"{shown(before)}, {shown(after)}", _FIX)
    return sides[0], sides[1]


def _bounds(given: object, argument: str, what: str) -> Bounds:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise _invalid(f"{argument}=(lowest, highest)", shown(given), _FIX)
    bounds = Range(given[0], given[1], name=what)
    return bounds.lo, bounds.hi


def declared_per(study: Study, per: object, per_range: object) -> Per | None:
    """Return the declared denominator, or None where there is none; raises CV-S019 for one that is invalid."""
    if per is None and per_range is None:
        return None
    if not isinstance(per, str) or not per.strip():
        raise _invalid_ratio("per=: the column of the denominator", shown(per))
    if not isinstance(per_range, tuple | list) or len(per_range) != 2:
        raise _invalid_ratio(
            "per_range=(lowest, highest), known without looking at the data", shown(per_range)
        )
    bounds = Range(per_range[0], per_range[1], name=f"denominator {per!r}")
    if bounds.lo < 0:
        raise _invalid_ratio("a denominator that is never negative", f"per_range={shown(per_range)}")
    if study.arms is not None or study.before is not None:
        raise _invalid_ratio("a ratio of two arms without before=", "several arms, or before=")
    return Per(per, (bounds.lo, bounds.hi))


_invalid_ratio = Refusal(
    "CV-S019",
    "the declaration of a ratio is invalid",
    expected="{expected}",
    got="{got}",
    fix='for example Study("variant", outcome="clicks", outcome_range=(0, 100), per="sessions", per_range=(1, 50))',
)


# Columns that the rows of a person become, beside those that were read; no column of a source is called so.


def earlier_name(outcome: str) -> str:
    """Return the name of the column that holds everyone's outcome before treatment."""
    return f"{outcome}\nbefore"


def level_name(outcome: str, place: int) -> str:
    """Return the name of the column that holds everyone's outcome in a period, by its place."""
    return f"{outcome}\n{place}"
