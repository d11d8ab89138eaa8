"""The answer about groups: an effect for each, its intervals, one guarantee for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterveil.privacy import Estimand
from counterveil.results.effect import Effect, Ends
from counterveil.results.released import Released, provenance_from_dict
from counterveil.results.saved import reads_facts


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GroupsResult(Released):
    """Released effects of public groups; nothing in it is private any more and nothing it does spends budget.

    `left_out` names groups without two people in either arm: only where that is public.
    """

    groups: tuple[Effect, ...]
    by: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect of every group."""
        return self.groups

    def effect(self, name: str) -> Effect:
        """Return the effect of the group called `name`; a KeyError names the groups there are."""
        for one in self.groups:
            if one.name == name:
                return one
        raise KeyError(f"{name!r}; the groups are {[one.name for one in self.groups]}")

    def interval(self, level: float | None = None, simultaneous: bool = False) -> dict[str, Ends]:
        """Return every effect's interval by group; with `simultaneous` they hold together (Šidák)."""
        return {str(one.name): one.interval(level, simultaneous) for one in self.groups}

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {"group": one.name, "size": one.size, "size_sd": one.size_sd, "estimand": Estimand.ATE.value}
            for one in self.groups
        ]

    def _numbers(self) -> dict[str, Any]:
        return {
            "by": list(self.by),
            "effects": [one.stored() for one in self.groups],
            "left_out": list(self.left_out),
        }

    def _shown(self) -> dict[str, Any]:
        sizes = "public" if all(one.size_sd == 0 for one in self.groups) else "released, with noise"
        notes = [("Groups", f"by {', '.join(self.by)}; numbers of people are {sizes}")]
        if self.left_out:
            notes.append(("Left out", f"{'; '.join(self.left_out)}: fewer than two people in an arm"))
        return {
            "sentence": "average effect of the treatment on everyone in a group",
            "estimand": Estimand.ATE.value,
            "effects": [one.stored() | one.facts() for one in self.groups],
            "notes": notes,
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> GroupsResult:
        """Return the result written by `to_dict` or `stored`."""
        return cls(
            groups=effects_from_dict(facts),
            by=tuple(facts["by"]),
            left_out=tuple(facts["left_out"]),
            **provenance_from_dict(facts),
        )


def effects_from_dict(facts: dict[str, Any]) -> tuple[Effect, ...]:
    """Return the effects that a result wrote under "effects"."""
    found, level = facts["effects"], facts["level"]
    return tuple(Effect.from_dict(one, level, len(found)) for one in found)
