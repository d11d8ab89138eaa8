"""The answer about groups: an effect for each, its intervals, one promise for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from counterveil.estimators.estimated import (
    StdError,
    level_of_one,
    one_of_several_facts,
    one_of_several_row,
)
from counterveil.estimators.groups.known import (
    Known,
    known_from_dict,
    known_to_dict,
    naive_interval,
    p_value_of,
    total_sd,
)
from counterveil.estimators.promise import (
    Answered,
    Shown,
    answer_facts,
    answer_from_dict,
    opening_facts,
    promise_row,
)
from counterveil.estimators.read_back import reads_facts
from counterveil.inference import adjusted_p
from counterveil.privacy import Budget, Estimand, Guarantee


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """The effect on one group, one of `groups` such effects.

    `size` is the group's number of people: exact where it is public (`size_sd` is 0), else as released.
    """

    name: str
    size: float
    size_sd: float
    known: Known
    level: float
    groups: int

    @property
    def estimate(self) -> float:
        """The released effect."""
        return self.known.estimate

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        return StdError(total_sd(self.known), self.known.sampling_sd, self.known.noise_sd)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> tuple[float, float]:
        """Return an interval for this effect; with `simultaneous`, all groups' intervals hold together."""
        return self.known.interval(level_of_one(self, self.groups, level, simultaneous))

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included."""
        return p_value_of(self.known, self.level)

    @property
    def adjusted_p_value(self) -> float:
        """The p-value for looking at all groups; below 1 - level when the simultaneous interval leaves out 0."""
        each = level_of_one(self, self.groups, None, simultaneous=True)
        return adjusted_p(p_value_of(self.known, each), self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the effect and both its intervals as JSON-ready facts."""
        return self.stored() | one_of_several_facts(self, naive_interval(self.known, self.level))

    def stored(self) -> dict[str, Any]:
        """Return the group and what is known of its effect, as released and without intervals."""
        named = {"name": self.name, "size": self.size, "size_sd": self.size_sd}
        return named | {"known": known_to_dict(self.known)}


@dataclass(frozen=True, slots=True)
class GroupsResult(Answered, Shown):
    """Released effects of public groups; nothing in it is private any more and nothing it does spends budget.

    `left_out` names groups without two people in either arm: only where that is public.
    """

    effects: tuple[GroupEffect, ...]
    by: tuple[str, ...]
    guarantee: Guarantee
    spent: Budget
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def effect(self, name: str) -> GroupEffect:
        """Return the effect of the group called `name`; a KeyError names the groups there are."""
        for one in self.effects:
            if one.name == name:
                return one
        raise KeyError(f"{name!r}; the groups are {[one.name for one in self.effects]}")

    def interval(
        self, level: float | None = None, simultaneous: bool = False
    ) -> dict[str, tuple[float, float]]:
        """Return every effect's interval by group; with `simultaneous` they hold together (Šidák)."""
        return {one.name: one.interval(level, simultaneous) for one in self.effects}

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row a group with the names that `broom` uses, ready for a data frame."""
        named: dict[str, float | str] = {"term": self.treatment, "estimand": Estimand.ATE.value}
        promise = promise_row(self.guarantee, self.spent)
        return [
            {**named, "group": one.name, "size": one.size} | one_of_several_row(one) | promise
            for one in self.effects
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `GroupsResult.from_dict` reads them back."""
        sizes = "public" if all(one.size_sd == 0 for one in self.effects) else "released, with noise"
        notes = [("Groups", f"by {', '.join(self.by)}; numbers of people are {sizes}")]
        if self.left_out:
            notes.append(("Left out", f"{'; '.join(self.left_out)}: fewer than two people in an arm"))
        return (
            opening_facts(self.guarantee)
            | answer_facts(self)
            | {
                "sentence": "average effect of the treatment on everyone in a group",
                "estimand": Estimand.ATE.value,
                "by": list(self.by),
                "effects": [one.to_dict() for one in self.effects],
                "left_out": list(self.left_out),
                "notes": notes,
            }
        )

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        return answer_facts(self) | {
            "by": list(self.by),
            "effects": [one.stored() for one in self.effects],
            "left_out": list(self.left_out),
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> GroupsResult:
        """Return the result written by `to_dict` or `stored`."""
        return cls(
            effects=effects_from_dict(facts),
            by=tuple(facts["by"]),
            left_out=tuple(facts["left_out"]),
            **answer_from_dict(facts),
        )


def effects_from_dict(facts: dict[str, Any]) -> tuple[GroupEffect, ...]:
    """Return the effects that a result wrote under "effects"."""
    return tuple(
        GroupEffect(
            one["name"],
            one["size"],
            one["size_sd"],
            known_from_dict(one["known"]),
            facts["level"],
            len(facts["effects"]),
        )
        for one in facts["effects"]
    )
