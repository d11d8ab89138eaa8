"""What a request will draw, fixed in advance: the split of its budget over named releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from counterveil.accounting import split_epsilon, split_mu
from counterveil.errors import CounterveilError, refusal
from counterveil.mechanisms import (
    Box,
    Gaussian,
    KnownSensitivityMechanism,
    Laplace,
    Lomax,
    Staircase,
)
from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import (
    ApproximateEvent,
    Budget,
    Charge,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ResponseEvent,
)

MECHANISMS = ("staircase", "laplace", "gaussian")


class Kind(StrEnum):
    """What a planned release is; all but numbers and vectors have a noise of their own, whatever the mechanism."""

    NUMBER = "number"  # one statistic, noise of the plan's mechanism
    VECTOR = "vector"  # several statistics of known joint l2 sensitivity; Gaussian or l2-ball noise
    NORMAL = "normal"  # a vector with Gaussian noise in a plan of another mechanism; takes the whole delta
    CELLS = "cells"  # several statistics of known joint l1 sensitivity, Laplace noise on each
    SEVERAL = "several"  # several statistics that may all move at once, each by its own bound; Gaussian or box noise
    ROWS = "rows"  # one bounded number a row, that row's alone, Laplace noise on each
    LABELS = "labels"  # labels that nobody declared, with counts above a threshold; has its part of the delta
    RESPONSE = "response"  # one truth value a row, randomized response
    SMOOTH = "smooth"  # one statistic with a smooth bound, Lomax noise


# As many numbers as rows or labels.
_BY_ROW = frozenset({Kind.ROWS, Kind.LABELS, Kind.RESPONSE})


def choose_mechanism(budget: Budget, mechanism: str | None) -> str:
    """Return the noise distribution of a request: staircase for pure budgets, Gaussian where there is a delta."""
    if mechanism is None:
        return "staircase" if budget.pure else "gaussian"
    if not isinstance(mechanism, str) or mechanism not in MECHANISMS:
        raise refusal("CV-P010", mechanisms=" or ".join(map(repr, MECHANISMS)), mechanism=mechanism)
    if mechanism == "gaussian" and budget.pure:
        raise refusal("CV-P011")
    return mechanism


@lru_cache(maxsize=256)
def _total_mu(budget: Budget) -> Fraction:
    """Return the mu that spends the whole budget; cached because splits are compared by the dozen."""
    return mu_of(budget.epsilon, budget.delta)


@dataclass(frozen=True, slots=True)
class Plan:
    """The releases of one request, by name, and the privacy each of them pays (epsilon, or mu for Gaussian)."""

    budget: Budget
    mechanism: str
    amounts: tuple[tuple[str, Fraction], ...]
    # Only the releases that are not single numbers.
    kinds: tuple[tuple[str, Kind], ...] = ()
    # Whether releases share a price because each row enters one of them alone.
    _disjoint: ClassVar[bool] = False

    @classmethod
    def split(
        cls,
        budget: Budget,
        shares: Mapping[str, Fraction],
        mechanism: str,
        kinds: Mapping[str, Kind] | None = None,
    ) -> Plan:
        """Return the plan that gives each release its share: of epsilon, or of mu squared for Gaussian noise.

        `kinds` names the releases that are not single numbers; all but vectors have pure noise, so that
        such a plan cannot be Gaussian. Normal vectors in a plan of another mechanism share the mu that their
        part of epsilon is worth with the budget's delta.
        """
        if mechanism == "gaussian" and any(
            kind not in (Kind.VECTOR, Kind.SEVERAL) for kind in (kinds or {}).values()
        ):
            raise refusal("CV-P240", budget=budget)
        names = [name for name, share in shares.items() if share > 0]
        parts = [shares[name] for name in names]
        if mechanism == "gaussian":
            amounts = split_mu(_total_mu(budget), parts)
        else:
            amounts = split_epsilon(budget.epsilon, parts)
        kept = tuple((name, kind) for name, kind in (kinds or {}).items() if name in names)
        plan = cls(budget, mechanism, tuple(zip(names, amounts, strict=True)), kept)
        return plan._with_normal_noise() if Kind.NORMAL in dict(kept).values() else plan

    def _with_normal_noise(self) -> Plan:
        """Return the plan with the epsilons of its normal vectors exchanged for mus; needs a delta."""
        choose_mechanism(self.budget, "gaussian")
        own = {name: amount for name, amount in self.amounts if self._has_mu(name)}
        whole = _total_mu(Budget(sum(own.values(), Fraction(0)), self.budget.delta))
        mus = dict(zip(own, split_mu(whole, list(own.values())), strict=True))
        return replace(self, amounts=tuple((name, mus.get(name, amount)) for name, amount in self.amounts))

    def kind(self, name: str) -> Kind:
        """Return what the release called `name` is."""
        return self._planned_as(name)

    def _planned_as(self, name: str) -> Kind:
        """Return what one of the names that the budget was split over is."""
        return dict(self.kinds).get(name, Kind.NUMBER)

    def _has_mu(self, name: str) -> bool:
        """Whether the amount of a planned name is a mu, not an epsilon."""
        return self.mechanism == "gaussian" or self._planned_as(name) is Kind.NORMAL

    def amount(self, name: str, kind: Kind = Kind.NUMBER) -> Fraction:
        """Return what the release called `name` pays; it must have been planned as this kind."""
        for planned, amount in self.amounts:
            if planned == name and self._planned_as(name) is kind:
                return amount
        raise refusal(
            "CV-X002",
            amounts=[(planned, self._planned_as(planned).value) for planned, _ in self.amounts],
            got=repr((name, kind.value)),
        )

    def noise(self, name: str, sensitivity: Fraction) -> KnownSensitivityMechanism:
        """Return the mechanism of the release `name` for a statistic of this sensitivity; draws nothing."""
        amount = self.amount(name)
        if self.mechanism == "gaussian":
            return Gaussian(sensitivity, amount)
        return Laplace(sensitivity, amount) if self.mechanism == "laplace" else Staircase(sensitivity, amount)

    def coordinate_noise(self, name: str, sensitivity: Fraction) -> KnownSensitivityMechanism:
        """Return the mechanism of each number of the Gaussian vector `name` of this l2 sensitivity; draws nothing."""
        return Gaussian(sensitivity, self.amount(name, Kind.VECTOR))

    def cells_noise(self, name: str, sensitivity: Fraction) -> KnownSensitivityMechanism:
        """Return the mechanism of each of the cells `name`, whose changes add up to this at most; draws nothing."""
        return Laplace(sensitivity, self.amount(name, Kind.CELLS))

    def several_noise(
        self, name: str, sensitivities: Sequence[Fraction], weights: Sequence[Fraction]
    ) -> list[KnownSensitivityMechanism | Box]:
        """Return the mechanism of each of several numbers that may move together; draws nothing.

        Noise is in proportion to a number's bound and to one over its weight. Gaussian noise follows from the joint
        length of all changes, each divided by its bound and times its weight. Pure noise of equal weights comes from
        the box, else from parts of epsilon in proportion to the weights.
        """
        amount, count = self.amount(name, Kind.SEVERAL), len(sensitivities)
        if self.mechanism == "gaussian":
            length = sqrt_up(sum((weight**2 for weight in weights), Fraction(0)))
            return [Gaussian(s * length / w, amount) for s, w in zip(sensitivities, weights, strict=True)]
        if len(set(weights)) == 1:
            return [Box(s, amount, count) for s in sensitivities]
        parts = split_epsilon(amount, list(weights))
        return [Staircase(s, part) for s, part in zip(sensitivities, parts, strict=True)]

    def smooth_noise(self, name: str, smoothness: Fraction) -> Lomax:
        """Return the mechanism of the release `name` for a statistic with a bound so smooth; draws nothing."""
        return Lomax(self.amount(name, Kind.SMOOTH), smoothness)

    @property
    def one_by_one(self) -> bool:
        """Whether each release is stored as it is drawn; else all are drawn anew by a request that goes on.

        Rows may change until then, and must not move between releases that share a price. Numbers of single rows are
        too many to be stored. Proof: resuming.proof.md
        """
        return not self._disjoint and _BY_ROW.isdisjoint(kind for _, kind in self.kinds)

    @property
    def label_delta(self) -> Fraction:
        """The delta of each release of labels: they share that of the budget."""
        return self.budget.delta / max(1, sum(kind is Kind.LABELS for _, kind in self.kinds))

    def event(self, name: str, amount: Fraction) -> Event:
        """Return what the ledger is told about the release called `name`."""
        kind = self._planned_as(name)
        if kind is Kind.LABELS:
            return ApproximateEvent(amount, self.label_delta)
        if kind is Kind.RESPONSE:
            # A replaced person changes one answer, so all answers together cost what one does.
            return ResponseEvent(amount, 2)
        if self._has_mu(name):
            return GaussianEvent(amount)
        if kind is not Kind.NUMBER:
            return PureEvent(amount)
        return LaplaceEvent(amount) if self.mechanism == "laplace" else PureEvent(amount)

    @property
    def parts(self) -> dict[str, float]:
        """The part of the budget that each release takes: of mu squared for Gaussian noise, else of epsilon.

        Normal vectors in a plan of another mechanism take together the epsilon that the others leave, and divide it as
        they do their mu squared.
        """
        normal = {name for name, _ in self.amounts if self._has_mu(name)}
        pure = {name: amount / self.budget.epsilon for name, amount in self.amounts if name not in normal}
        squared = {name: amount**2 for name, amount in self.amounts if name in normal}
        left, total = 1 - sum(pure.values(), Fraction(0)), sum(squared.values(), Fraction(0))
        found = pure | {name: left * size / total for name, size in squared.items()}
        return {name: float(found[name]) for name, _ in self.amounts}

    @property
    def shares(self) -> str:
        """The parts of the budget that the releases take, in words."""
        return ", ".join(f"{name} {part:.0%}" for name, part in self.parts.items())

    @property
    def charge(self) -> Charge:
        """What the ledger is asked to reserve."""
        return Charge(self.budget, tuple(self.event(name, amount) for name, amount in self.amounts))


# Releases that cost together what one of them costs.
# Proof: parallel.proof.md


@dataclass(frozen=True, slots=True)
class ParallelPlan(Plan):
    """A plan whose amounts are paid once by a whole group of releases; made by `in_parallel`.

    `members` names, for every release, its group. Only members can be released, each once: a group's own
    name passes no gate.
    """

    members: tuple[tuple[str, str], ...] = ()
    _disjoint: ClassVar[bool] = True

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


# Chains of releases on disjoint sets of rows, which cost together what one chain costs.
# Proof: branches.proof.md

# The name under which the whole budget is charged; it is no release and passes no gate.
_WHOLE = "all branches together"
# Releases whose loss is bounded by their own amount, in the plan's unit: what one charge of the whole counts.
_COUNTED = frozenset(
    {Kind.NUMBER, Kind.VECTOR, Kind.SEVERAL, Kind.CELLS, Kind.ROWS, Kind.RESPONSE, Kind.SMOOTH}
)


@dataclass(frozen=True, slots=True)
class BranchPlan(Plan):
    """A plan of several chains, each of which spends the whole budget on rows of its own; see `in_branches`."""

    branches: tuple[Plan, ...] = ()
    _disjoint: ClassVar[bool] = True

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
        return Plan(self.budget, self.mechanism, ())  # which refuses every name


def in_branches(
    budget: Budget, mechanism: str, branches: Sequence[tuple[Mapping[str, Fraction], Mapping[str, Kind]]]
) -> BranchPlan:
    """Return the plan whose branches, each a split over names and their kinds, spend the budget in parallel.

    Right only where every row enters the releases of one branch alone, whichever data set it is in: sets of
    rows chosen by their public index. Later branches may depend on what earlier ones released.
    """
    uncounted = [kind for _, kinds in branches for kind in kinds.values() if kind not in _COUNTED]
    if uncounted:
        raise _not_counted(uncounted[0])
    plans = tuple(Plan.split(budget, shares, mechanism, kinds) for shares, kinds in branches)
    whole = Plan.split(budget, {_WHOLE: Fraction(1)}, mechanism)
    return BranchPlan(budget, mechanism, whole.amounts, ((_WHOLE, Kind.VECTOR),), plans)


def _not_counted(kind: Kind) -> CounterveilError:
    return refusal("CV-X004", counted=", ".join(sorted(_COUNTED)), got=kind.value)
