"""Chains of releases on disjoint sets of rows, which cost together what one chain costs. Proof: branches.proof.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from counterveil.curator.plan import Kind, Plan
from counterveil.errors import InternalError
from counterveil.privacy import Budget

# The name under which the whole budget is charged; it is no release and passes no gate.
_WHOLE = "all branches together"
# Releases whose loss is bounded by their own amount, in the plan's unit: what one charge of the whole counts.
_COUNTED = frozenset({Kind.NUMBER, Kind.VECTOR, Kind.CELLS, Kind.ROWS, Kind.RESPONSE, Kind.SMOOTH})


@dataclass(frozen=True, slots=True)
class BranchPlan(Plan):
    """A plan of several chains, each of which spends the whole budget on rows of its own; see `in_branches`."""

    branches: tuple[Plan, ...] = ()

    def kind(self, name: str) -> Kind:
        """Return what the release called `name` is: what its own branch planned it as."""
        return self._branch(name).kind(name)

    def amount(self, name: str, kind: Kind = Kind.NUMBER) -> Fraction:
        """Return what the release called `name` draws with: its share of its own branch."""
        return self._branch(name).amount(name, kind)

    def _branch(self, name: str) -> Plan:
        for branch in self.branches:
            if any(planned == name for planned, _ in branch.amounts):
                return branch
        return Plan(self.budget, self.law, ())  # which refuses every name


def in_branches(
    budget: Budget, law: str, branches: Sequence[tuple[Mapping[str, Fraction], Mapping[str, Kind]]]
) -> BranchPlan:
    """Return the plan whose branches, each a split over names and their kinds, spend the budget in parallel.

    Right only where every row enters the releases of one branch alone, whichever data set it is in: sets of
    rows chosen by their public index. Later branches may depend on what earlier ones released.
    """
    uncounted = [kind for _, kinds in branches for kind in kinds.values() if kind not in _COUNTED]
    if uncounted:
        raise _not_counted(uncounted[0])
    plans = tuple(Plan.split(budget, shares, law, kinds) for shares, kinds in branches)
    whole = Plan.split(budget, {_WHOLE: Fraction(1)}, law)
    return BranchPlan(budget, law, whole.amounts, ((_WHOLE, Kind.VECTOR),), plans)


def _not_counted(kind: Kind) -> InternalError:
    return InternalError(
        "CV-X004",
        "a chain of releases holds noise that its charge does not count",
        expected=f"releases of these kinds: {', '.join(sorted(_COUNTED))}",
        got=kind.value,
        fix="this is a fault of the estimator: please report it",
    )
