"""Several outcomes of every person, each with its own range; the first is the primary one.

All of them, and what was measured of them before treatment, are a person's private numbers. Proof:
`outcomes.proof.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from counterveil.data.domains import Range
from counterveil.data.labels import plain_number
from counterveil.errors import Refusal, shown

Bounds = tuple[Fraction, Fraction]
MOST_OUTCOMES = 1000


@dataclass(frozen=True, slots=True)
class Several:
    """The outcomes of a study in their order, and for some of them the column of the same number before treatment."""

    ranges: tuple[tuple[str, Bounds], ...]
    earlier: tuple[tuple[str, str], ...] = ()

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
        found: dict[str, Any] = {
            "outcomes": {name: [plain_number(end) for end in ends] for name, ends in self.ranges}
        }
        return found | ({"earlier": dict(self.earlier)} if self.earlier else {})


_FIX = 'for example Study("arm", outcomes={"death": (0, 1), "days": (0, 90)})'
_invalid = Refusal(
    "CV-S140",
    "the declaration of several outcomes is invalid",
    expected="{expected}",
    got="{got}",
    fix="{fix}",
)


def declared_several(given: Mapping[str, Any]) -> Several | None:
    """Return the declared outcomes, None where the study has one; raises CV-S140 for what is invalid."""
    outcomes, earlier, several = given["outcomes"], given["earlier"], given["several"]
    if isinstance(several, Several) and outcomes is None and given["outcome"] == several.names[0]:
        # As `dataclasses.replace` hands it on, with the first outcome beside it.
        return several
    if outcomes is None:
        if earlier is not None:
            raise _invalid("outcomes= beside earlier=", "no outcomes=", _FIX)
        return None
    beside = [name for name in ("outcome", "outcome_range", "before", "per") if given[name] is not None]
    if beside:
        raise _invalid("outcomes= alone: it names and bounds all outcomes", f"{beside[0]}= beside it", _FIX)
    if not isinstance(outcomes, Mapping) or not 2 <= len(outcomes) <= MOST_OUTCOMES:
        raise _invalid(
            "outcomes=: two or more columns with their ranges, the primary first", shown(outcomes), _FIX
        )
    ranges = tuple((_named(name), _bounds(name, ends)) for name, ends in outcomes.items())
    return Several(ranges, _before(earlier, dict(ranges)))


def _named(name: object) -> str:
    if isinstance(name, str) and name.strip():
        return name
    raise _invalid("names of columns", shown(name), _FIX)


def _bounds(name: object, ends: object) -> Bounds:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise _invalid(
            f"(lowest, highest) of {shown(name)}, known without looking at the data", shown(ends), _FIX
        )
    bounds = Range(ends[0], ends[1], name=f"outcome {name!r}")
    return bounds.lo, bounds.hi


def _before(earlier: object, ranges: Mapping[str, Bounds]) -> tuple[tuple[str, str], ...]:
    given = {} if earlier is None else earlier
    fix = 'for example earlier={"visits": "visits_last_month"}'
    if not isinstance(given, Mapping):
        raise _invalid(
            "earlier=: for outcomes, the column of the same number before treatment", shown(given), fix
        )
    for outcome, column in given.items():
        if outcome not in ranges or not isinstance(column, str) or not column.strip():
            got = f"{shown(outcome)}: {shown(column)}"
            raise _invalid("earlier=: outcomes of the study, and a column for each", got, fix)
    # In the order of the outcomes, so that equal declarations are equal.
    return tuple((name, given[name]) for name in ranges if name in given)
