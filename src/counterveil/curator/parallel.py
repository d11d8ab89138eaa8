"""Releases that cost together what one of them costs. Proof: parallel.proof.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

from counterveil.curator.plan import Kind, Plan


@dataclass(frozen=True, slots=True)
class ParallelPlan(Plan):
    """A plan whose amounts are paid once by a whole group of releases; made by `in_parallel`.

    `members` names, for every release, its group. Only members can be released, each once: a group's own
    name passes no gate.
    """

    members: tuple[tuple[str, str], ...] = ()

    def kind(self, name: str) -> Kind:
        """Return what the release called `name` is: what its group was planned as."""
        return self._planned_as(self._group(name))

    def amount(self, name: str, kind: Kind = Kind.NUMBER) -> Fraction:
        """Return what the release called `name` draws with: its group's whole amount."""
        return Plan.amount(self, self._group(name), kind)

    def _group(self, name: str) -> str:
        return dict(self.members).get(name, f"{name}, of no group")


def in_parallel(plan: Plan, groups: Mapping[str, Sequence[str]]) -> ParallelPlan:
    """Return the plan under which every member of a group draws with the group's whole amount.

    Right only where no two neighbouring data sets differ in more than one member of a group: for instance
    statistics of disjoint sets of rows whose membership is public.
    """
    inherited = {field.name: getattr(plan, field.name) for field in fields(plan)}
    members = tuple((member, group) for group, names in groups.items() for member in names)
    return ParallelPlan(**inherited, members=members)
