"""The answer about a rule: what it gains per person over treating nobody and over treating everybody."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from counterveil.privacy import Budget, Guarantee
from counterveil.results.estimated import one_of_several_row
from counterveil.results.groups import GroupEffect, effects_from_dict
from counterveil.results.result import (
    Answered,
    Shown,
    answer_facts,
    answer_from_dict,
    opening_facts,
    promise_row,
)
from counterveil.results.saved import reads_facts


@dataclass(frozen=True, slots=True)
class PolicyValue(Answered, Shown):
    """Released gains of a rule, per person of everybody and after its cost; nothing it does spends budget.

    `gains` are policy - nobody, policy - everybody and everybody - nobody; `share` is the part of people whom
    the rule treats, as released.
    """

    gains: tuple[GroupEffect, ...]
    policy: str
    cost: float
    share: float
    guarantee: Guarantee
    spent: Budget
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)

    @property
    def over_none(self) -> GroupEffect:
        """What the rule gains over treating nobody."""
        return self.gains[0]

    @property
    def over_all(self) -> GroupEffect:
        """What the rule gains over treating everybody."""
        return self.gains[1]

    @property
    def estimate(self) -> float:
        """The gain over treating nobody."""
        return self.over_none.estimate

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """Return the two ends of an interval for the gain over treating nobody."""
        return self.over_none.interval(level)

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row a comparison with the names that `broom` uses, ready for a data frame."""
        named: dict[str, float | str] = {
            "term": self.treatment,
            "policy": self.policy,
            "cost": self.cost,
            "share": self.share,
        }
        promise = promise_row(self.guarantee, self.spent)
        return [{**named, "contrast": one.name} | one_of_several_row(one) | promise for one in self.gains]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `PolicyValue.from_dict` reads them back."""
        return (
            opening_facts(self.guarantee)
            | answer_facts(self)
            | {
                "sentence": f"value of a rule per person, after a cost of {self.cost:g} for everyone treated",
                "policy": self.policy,
                "cost": self.cost,
                "share": self.share,
                "effects": [one.to_dict() for one in self.gains],
                "notes": [("Policy", f"{self.policy}; it treats {self.share:.1%} of people (released)")],
            }
        )

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        own = {"policy": self.policy, "cost": self.cost, "share": self.share}
        return answer_facts(self) | own | {"effects": [one.stored() for one in self.gains]}

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> PolicyValue:
        """Return the result written by `to_dict` or `stored`."""
        own = {name: facts[name] for name in ("policy", "cost", "share")}
        return cls(gains=effects_from_dict(facts), **own, **answer_from_dict(facts))
