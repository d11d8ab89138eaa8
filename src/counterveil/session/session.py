"""The session: plans fix what a request draws, the gate draws it; the table, budget and ledger behind both."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import (
    AccessPolicy,
    Account,
    Answered,
    Ledger,
    Reservation,
    Uses,
    open_ledger,
    split_epsilon,
    split_mu,
)
from counterveil.accounting.access_policy import quoted, rules_of
from counterveil.accounting.accounts import canonical
from counterveil.data import (
    Backend,
    Layout,
    SpooledRows,
    Study,
    Table,
    check_columns,
    check_study,
    cores,
    histogram_of_rows,
    histogram_of_source,
    named_table,
    rows_are_made,
    rows_of_source,
    silence,
    source_elsewhere,
    strata_of_rows,
    strata_of_source,
    strata_of_table,
    table_of_source,
    without_positions,
)
from counterveil.data.cells import Column
from counterveil.data.people import first_of_each
from counterveil.data.public_columns import PublicColumn, public_columns
from counterveil.data.sources import read
from counterveil.data.spark import SparkRows
from counterveil.data.table import arm_sizes
from counterveil.errors import refusal
from counterveil.mechanisms import (
    Ball,
    BitSource,
    Box,
    Gaussian,
    Grid,
    KnownSensitivityMechanism,
    Laplace,
    Lomax,
    RandomizedResponse,
    StableHistogram,
    Staircase,
    SystemNoise,
)
from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.strata import Strata
from counterveil.privacy import (
    ApproximateEvent,
    Budget,
    Charge,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ResponseEvent,
    Unit,
    written,
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
        amount = self.amount(name, Kind.SEVERAL)
        count = len(sensitivities)
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
        left = 1 - sum(pure.values(), Fraction(0))
        total = sum(squared.values(), Fraction(0))
        found = pure | {name: left * size / total for name, size in squared.items()}
        return {name: float(found[name]) for name, _ in self.amounts}

    @property
    def shares(self) -> str:
        """The parts of the budget that the releases take, in words."""
        return ", ".join(f"{name} {part:.0%}" for name, part in self.parts.items())

    @property
    def listed(self) -> tuple[tuple[str, str], ...]:
        """What is released, by its name in the plan, and the mechanism."""
        return tuple((name, self.mechanism) for name, _ in self.amounts)

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
        planned = [planned for branch in self.branches for planned, _ in branch.amounts]
        raise refusal("CV-X002", amounts=planned, got=repr(name))


def in_branches(
    budget: Budget, mechanism: str, branches: Sequence[tuple[Mapping[str, Fraction], Mapping[str, Kind]]]
) -> BranchPlan:
    """Return the plan whose branches, each a split over names and their kinds, spend the budget in parallel.

    Right only where every row enters the releases of one branch alone, whichever data set it is in: sets of
    rows chosen by their public index. Later branches may depend on what earlier ones released.
    """
    uncounted = [kind for _, kinds in branches for kind in kinds.values() if kind not in _COUNTED]
    if uncounted:
        raise refusal("CV-X004", counted=", ".join(sorted(_COUNTED)), got=uncounted[0].value)
    plans = tuple(Plan.split(budget, shares, mechanism, kinds) for shares, kinds in branches)
    whole = Plan.split(budget, {_WHOLE: Fraction(1)}, mechanism)
    return BranchPlan(budget, mechanism, whole.amounts, ((_WHOLE, Kind.VECTOR),), plans)


Label = TypeVar("Label")
# Numbers, or the pass over rows that makes them, which is not run where they were released before.
Values = Sequence[Fraction] | Callable[[], Sequence[Fraction]]
# Stores what is drawn under a name for public bounds before it is used, or returns what was stored: `Ledger.release`.
Keep = Callable[[str, list[str], Callable[[], list[str]]], list[str]]


@dataclass(frozen=True, slots=True)
class Released:
    """A released number: the noisy value and the public noise distribution.

    Attributes
    ----------
    value : Fraction
        The number with its noise, in the units of what was released; ``float(released)`` is the nearest double.
    noise : mechanism
        Distribution of the noise: `variance`, `cdf` and `quantile`.
    """

    value: Fraction
    noise: KnownSensitivityMechanism | Box

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True, slots=True)
class ReleasedVector:
    """Numbers released together.

    Attributes
    ----------
    values : tuple of Fraction
        The numbers with their noise, in the units of what was released.
    variance : float
        Variance of the noise of each of them.
    """

    values: tuple[Fraction, ...]
    variance: float

    def floats(self) -> NDArray[np.float64]:
        """Return the values as an array.

        Returns
        -------
        ndarray of float64
            The nearest doubles, in their order.
        """
        return np.array([float(value) for value in self.values])


@dataclass(frozen=True, slots=True)
class Responses:
    """Randomized booleans, one per row; each is the true one with probability `truth`."""

    values: NDArray[np.bool_]
    truth: float


# Proof: resuming.proof.md
class Gate:
    """Lets each release of a reserved plan through once; made by `Session.run` after the budget is reserved.

    With `keep` what was stored under a name is released again, and what is drawn is stored first.
    """

    def __init__(
        self,
        plan: Plan,
        source: BitSource,
        keep: Keep | None = None,
        rows: BaseSession | None = None,
    ) -> None:
        self._plan = plan
        self._source = source
        self._keep = keep
        self._rows = rows
        self._passed: set[str] = set()

    @property
    def rows(self) -> BaseSession:
        """The private rows that are summed before noise is added; only `counterveil.rows` asks for them."""
        assert self._rows is not None  # a gate without rows releases what it is given
        return self._rows

    def kind(self, name: str) -> Kind:
        """Return what the release called `name` was planned as."""
        return self._plan.kind(name)

    @property
    def forgetful(self) -> bool:
        """Whether something passed that is not stored: the next gate of this request would draw it anew."""
        return self._keep is None and bool(self._passed)

    def noise(self, name: str, sensitivity: Fraction) -> KnownSensitivityMechanism:
        """Return the noise of the number `name` for a statistic of this sensitivity; draws nothing."""
        return self._plan.noise(name, sensitivity)

    def release(self, name: str, value: Fraction, sensitivity: Fraction) -> Released:
        """Return `value` plus the noise that the plan pays for under `name`; a second time is refused."""
        amount = self._pay(name, Kind.NUMBER)
        mechanism = self.noise(name, sensitivity)
        return Released(self._on_each(name, [value], mechanism, sensitivity, amount)[0], mechanism)

    def release_smooth(
        self, name: str, value: Fraction, bound: Fraction, smoothness: Fraction, least: Fraction
    ) -> Fraction:
        """Return `value` plus noise whose scale follows `bound`, a smooth bound of its local sensitivity.

        The bound stays private, so nothing but the value is returned. `least` is a public scale below which
        the noise is not expected to fall; the grid is fine beside it.
        """
        amount = self._pay(name, Kind.SMOOTH)
        mechanism = self._plan.smooth_noise(name, smoothness)
        grid = grid_for(least, amount)
        return self._drawn(
            name,
            (least,),
            [value],
            lambda exact: [mechanism.release(exact[0], bound, grid, self._source)],
        )[0]

    def release_vector(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return `values` plus noise; `sensitivity` bounds the Euclidean length of their change.

        The noise is Gaussian where the plan's mechanism is or they were planned so, else from the l2 ball.
        """
        normal_vector = self._plan.kind(name) is Kind.NORMAL
        amount = self._pay(name, Kind.NORMAL if normal_vector else Kind.VECTOR)
        if self._plan.mechanism == "gaussian" or normal_vector:
            normal = Gaussian(sensitivity, amount)
            return ReleasedVector(self._on_each(name, values, normal, sensitivity, amount), normal.variance)

        def add(exact: Sequence[Fraction]) -> Sequence[Fraction]:
            ball = Ball(sensitivity, amount, len(exact))
            return ball.release(exact, grid_for(sensitivity, amount), self._source)

        noisy = self._drawn(name, (sensitivity,), values, add)
        return ReleasedVector(noisy, Ball(sensitivity, amount, len(noisy)).variance)

    def release_several(
        self,
        name: str,
        values: Sequence[Fraction],
        sensitivities: Sequence[Fraction],
        weights: Sequence[Fraction],
    ) -> list[Released]:
        """Return `values` plus noise; every one of them may move by its own bound at once, see `Plan.several_noise`."""
        amount = self._pay(name, Kind.SEVERAL)
        noises = self._plan.several_noise(name, sensitivities, weights)

        def add(exact: Sequence[Fraction]) -> list[Fraction]:
            if isinstance(noises[0], Box):
                unit = Box(1, amount, len(exact))
                scaled = [value / bound for value, bound in zip(exact, sensitivities, strict=True)]
                drawn = unit.release(scaled, grid_for(Fraction(1), amount), self._source)
                return [value * bound for value, bound in zip(drawn, sensitivities, strict=True)]
            return [
                noise.release_all([value], grid_for(noise.sensitivity, amount), self._source)[0]
                for value, noise in zip(exact, noises, strict=True)
                if not isinstance(noise, Box)
            ]

        noisy = self._drawn(name, sensitivities, values, add)
        return [Released(value, noise) for value, noise in zip(noisy, noises, strict=True)]

    def release_cells(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return `values` plus Laplace noise on each; `sensitivity` bounds the sum of their changes."""
        amount = self._pay(name, Kind.CELLS)
        mechanism = Laplace(sensitivity, amount)
        return ReleasedVector(self._on_each(name, values, mechanism, sensitivity, amount), mechanism.variance)

    def release_rows(
        self, name: str, steps: NDArray[np.int64], low: int, high: int, step: Fraction
    ) -> NDArray[np.float64]:
        """Return every row's number plus Laplace noise of its own, in units of `step`.

        `steps[i]` must be computed from row i and public or released numbers alone; it is clamped to
        [low, high]. A replaced person moves one entry, by at most the width.
        """
        amount = self._pay(name, Kind.ROWS)
        noise = Laplace((high - low) * step, amount).draw(len(steps), Grid(step), self._source)
        noisy = np.clip(steps, low, high) + noise
        return noisy.astype(np.float64)

    def release_labels(self, name: str, counts: Mapping[Label, int]) -> dict[Label, int]:
        """Return labels that many rows have, with noisy counts, from those that occur; a row has one at most."""
        amount = self._pay(name, Kind.LABELS)
        return StableHistogram(amount, self._plan.label_delta).release(counts, self._source)

    def respond(self, name: str, flags: NDArray[np.bool_]) -> Responses:
        """Return every row's truth value through randomized response."""
        mechanism = RandomizedResponse(self._pay(name, Kind.RESPONSE), 2)
        answers = mechanism.release_many(flags.astype(np.int64), self._source)
        return Responses(answers.astype(np.bool_), mechanism.truth)

    def _on_each(
        self,
        name: str,
        values: Values,
        mechanism: KnownSensitivityMechanism,
        bound: Fraction,
        amount: Fraction,
    ) -> tuple[Fraction, ...]:
        """Return the numbers with noise of one mechanism on each; the grid follows a public bound."""
        grid = grid_for(bound, amount)
        return self._drawn(
            name, (bound,), values, lambda exact: mechanism.release_all(exact, grid, self._source)
        )

    def _drawn(
        self,
        name: str,
        bounds: Sequence[Fraction],
        values: Values,
        add: Callable[[Sequence[Fraction]], Sequence[Fraction]],
    ) -> tuple[Fraction, ...]:
        """Return the numbers stored under a name; if there are none, the values with noise that `add` adds, stored."""

        def draw() -> list[str]:
            return [_text(noisy) for noisy in add(values() if callable(values) else values)]

        stored = draw() if self._keep is None else self._keep(name, [_text(bound) for bound in bounds], draw)
        return tuple(map(_number, stored))

    def _pay(self, name: str, kind: Kind) -> Fraction:
        """Return what the plan reserved for this release; each name passes once."""
        amount = self._plan.amount(name, kind)
        if name in self._passed:
            raise refusal("CV-X003", got=repr(name))
        self._passed.add(name)
        return amount


def _text(value: Fraction) -> str:
    """Return an exact number; digits to the base 16 are written and read at any length."""
    return f"{value.numerator:x}/{value.denominator:x}"


def _number(text: str) -> Fraction:
    above, below = text.split("/")
    return Fraction(int(above, 16), int(below, 16))


@lru_cache(maxsize=256)
def grid_for(sensitivity: Fraction, amount: Fraction) -> Grid:
    """Return a grid that is fine beside the noise of a release of this sensitivity that pays this amount."""
    return Grid.for_scale(sensitivity / max(amount, Fraction(1)))


@dataclass(frozen=True, slots=True)
class Request:
    """One question: the plan it pays for, the public description that identifies it, and what it uses."""

    plan: Plan
    description: dict[str, object]
    uses: Uses
    request_id: str | None = None

    def fingerprint(self) -> str:
        """Return a hash of what is asked and what it uses; the same question always has the same one.

        The description must be JSON: an object's own text may hide in what it differs from another.
        """
        return hashlib.sha256(
            canonical(self.description | {"uses": self.uses.to_dict()}).encode()
        ).hexdigest()

    @property
    def recorded(self) -> dict[str, object]:
        """What the ledger writes down: the description and what each release pays, which a request keeps to the end."""
        return self.description | {"releases": {name: written(amount) for name, amount in self.plan.amounts}}


class BaseSession:
    """Holds private rows, the remaining budget and the noise source; `run` is the only way to an answer."""

    # Whether covariates that need no clamping are read where they are, for as long as the session lasts.
    borrows: ClassVar[bool] = False

    def __init__(
        self,
        source: object,
        study: Study,
        *,
        budget: Budget | None = None,
        ledger: str | Path | Ledger | None = None,
        dataset: str | None = None,
        noise: BitSource | None = None,
        attach: bool = True,
        analyst: str | None = None,
        access_policy: AccessPolicy | None = None,
    ) -> None:
        check_study(study)
        self.study = study
        self._source = named_table(source)
        self._table: Table | None = None
        self._streamed: Backend | None = None
        # Rows that were counted where they lie, and not attached.
        self._counted: int | None = None
        self._noise = SystemNoise() if noise is None else noise
        if not hasattr(self._noise, "simulated"):
            raise refusal("CV-P010c", kind=type(noise).__name__)
        self._analyst = analyst
        self._owns_ledger = not isinstance(ledger, Ledger)
        self.ledger = _open(ledger)
        try:
            self.dataset, registered = _account_name(self.ledger, dataset, budget, access_policy)
            if registered:
                # Rows are checked under the account's missing rules only: the check tells which columns have gaps.
                self.ledger.check_missing(self.dataset, study.columns, study.missing_kinds)
            # Rows of a subset or of clusters are looked at once the policy allowed these, at the question's level.
            at_once = attach and study.free_to_attach and not source_elsewhere(source)
            if isinstance(source, Table) or at_once:
                self.attach()
            else:
                # What lies in a file or a database stays there until a question needs its rows.
                check_columns(self._source, study)
            if not registered and budget is not None:
                self.ledger.register(self.dataset, budget, access_policy=access_policy)
        except BaseException:
            self.close()
            raise

    def attach(self, method: str = "a method that reads all rows into this process") -> None:
        """Read the rows, or say why they do not fit the study.

        Where rows have no public positions, `method` is refused by this name.
        """
        if without_positions(self._source):
            raise refusal("CV-D050", method=method)
        if self._table is None:
            self._table = _attached(self._source, self.study, self.borrows)

    @property
    def table(self) -> Table:
        """The rows, attached when they are first asked for."""
        if self._table is None:
            self.attach()
        return cast("Table", self._table)

    @property
    def in_memory(self) -> Table | None:
        """The rows if they were attached, None where they were not or lie elsewhere."""
        return self._table

    def restricted(self, table: Table) -> Self:
        """Return this session with some of its rows; they must have been chosen by what the question holds public."""
        part = copy(self)
        # Whoever is left out is protected too.
        part._counted = self.batches.rows
        part._table = table
        part._streamed = None
        return part

    def attach_batches(self) -> None:
        """Check the rows, or say why they do not fit the study; those of large files are not read into memory."""
        cores()  # so that a wrong number of them is refused before anything is spent
        if self._table is None and self._streamed is None:
            found = rows_of_source(self._source, self.study)
            if isinstance(found, Table):
                self._table = found
            else:
                self._streamed = found

    @property
    def batches(self) -> Backend:
        """The rows in batches, for methods that add them up in passes."""
        if self._table is None and self._streamed is None:
            self.attach_batches()
        return cast("Backend", self._table if self._table is not None else self._streamed)

    def first_rows(self, names: tuple[str, ...]) -> dict[str, Column]:
        """Return columns as they stand in the source, to ask what they hold; a person's first row alone."""
        person = self.study.person
        wanted = names if person is None else tuple(dict.fromkeys((*names, person.column)))
        with silence():
            columns = read(self._source, wanted, frozenset())
            if person is not None:
                first = first_of_each(columns[person.column], person.column)
                columns = {name: columns[name].keep(first) for name in names}
        self._counted = len(columns[names[0]]) if names else 0
        return columns

    def strata(self, layout: Layout, most: int | None = None) -> Strata:
        """Return counts and sums by stratum; rows that are not attached are aggregated inside the database or engine.

        `most` is the number of strata that they may be counted in later.
        """
        if self._table is not None:
            return strata_of_table(self._table, layout)
        if rows_are_made(self.study):
            return strata_of_rows(self.batches, layout)
        found = strata_of_source(self._source, self.study, layout, most)
        self._counted = found.rows
        return found

    def histogram(self, name: str, cuts: tuple[Fraction, ...]) -> NDArray[np.int64]:
        """Return how many rows have a numeric covariate in each bin that the cut points make."""
        if self._table is not None or rows_are_made(self.study):
            # Rows are made once, for all that is asked of them.
            return histogram_of_rows(self.batches, name, cuts)
        return histogram_of_source(self._source, self.study, name, cuts)

    @property
    def simulated(self) -> bool:
        """Whether the noise comes from a seed: then answers are marked as simulated and protect nobody."""
        return self._noise.simulated

    def admit(self, uses: Uses) -> None:
        """Raise the refusal of a study that the account's access policy does not allow; asked before rows are used.

        CV-L090 names columns that the account's first request would make public, for good.
        """
        self._check_published(uses)
        self.ledger.check_study(self.dataset, uses)

    def _check_published(self, uses: Uses) -> None:
        hidden = self.ledger.unpublished(self.dataset, uses.made_public)
        if hidden:
            known = {column.name: column.words() for column in public_columns(self.study, uses.unit)}
            said = "; ".join(known.get(name, repr(name)) for name in hidden)
            raise refusal("CV-L090", dataset=self.dataset, said=said, columns=quoted(hidden))

    def publish(self, *columns: str) -> None:
        """Make columns public in this session's account, for good, before its first request.

        Answers may then show every value of them, in tables by arm and in models; no later request can protect them,
        and no further column becomes public after the first request.

        Parameters
        ----------
        *columns : str
            Names of covariates and of the treatment; no outcome.

        Raises
        ------
        CounterveilError
            CV-L092 for outcomes; ledger (CV-L) after the first request, and where an access policy says what is
            public.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.simulated_trial(n=200, effect=0.3)
        >>> with cv.Session(data.frame, data.study, budget=cv.Budget(1)) as session:
        ...     session.publish("treated", "x")
        """
        outcomes = [name for name in columns if name in self.study.outcomes]
        if outcomes:
            raise refusal("CV-L092", outcomes=quoted(outcomes))
        self.ledger.publish(self.dataset, columns)

    def run(self, request: Request, compute: Callable[[Gate], dict[str, object]]) -> dict[str, object]:
        """Return the answer to a request: reserve its budget, store each release as it is drawn, settle the answer.

        A delta that permits publishing a row is refused first (CV-P006).
        A request id that was answered before gets its stored answer and costs nothing. If `compute` fails or the
        process dies, the budget stays spent, and the request goes on when it is asked again by its id, at no cost.
        """
        budget = request.plan.budget
        if not budget.pure:
            budget.check_rows(self._rows())
        self._check_published(request.uses)
        self.ledger.check_rows(self.dataset, self._rows, partial(self.smallest_arm, request.uses.unit))
        reserved = self.ledger.reserve(
            self.dataset,
            uuid.uuid4().hex if request.request_id is None else request.request_id,
            request.plan.charge,
            uses=request.uses,
            fingerprint=request.fingerprint(),
            description=request.recorded,
            simulated=self.simulated,
            asked_by=self._analyst,
        )
        if isinstance(reserved, Answered):
            return cast("dict[str, object]", json.loads(reserved.answer))
        gate = self._gate(request.plan, reserved)
        try:
            with silence():
                found = compute(gate)
        except Exception:
            if gate.forgetful:
                self.ledger.abandon(reserved)
            raise
        # Read back from its text, so that a first answer and a resent one cannot differ.
        settled = self.ledger.settle(reserved, json.dumps(found))
        return cast("dict[str, object]", settled)

    def _rows(self) -> int:
        return self.batches.rows if self._counted is None else self._counted

    def smallest_arm(self, unit: Unit) -> int | None:
        """Return the size of the smallest arm: counted where arms are public, else as a design plans it."""
        if unit.treatment_public:
            (sizes,) = self.batches.run(partial(arm_sizes, arms=len(self.study.treatment_labels)))
            return int(sizes.min())
        return planned_arm(self.study, self._rows())

    def public(self, name: str, numbers: tuple[int, ...], least: int = 0) -> tuple[tuple[int, ...], ...]:  # noqa: ARG002
        """Return public numbers of every site whose parts are summed: here of this one, which has all rows."""
        return (numbers,)

    def _gate(self, plan: Plan, reservation: Reservation) -> Gate:
        """Return the gate of a plan that was reserved; an audit puts one in its place that it can watch."""
        keep = partial(self.ledger.release, reservation) if plan.one_by_one else None
        return Gate(plan, self._noise, keep, rows=self)

    def account(self) -> Account:
        """Return what was granted, what is spent and what remains for this data set.

        Returns
        -------
        Account
            With `budget`, `spent`, `remaining` and the rule by which requests add up.

        Raises
        ------
        CounterveilError
            Ledger (CV-L) where it cannot be read.
        """
        return self.ledger.account(self.dataset)

    def remarks(self, unit: Unit) -> tuple[str, ...]:
        """Return what the guarantee of an answer that protects `unit` must say about the account."""
        return self.ledger.remarks(self.dataset, unit, self.study.treatment)

    def noise_pages(self, mechanisms: tuple[str, ...]) -> tuple[str, ...]:
        """Return the proof pages of the noise of these mechanisms."""
        return tuple(f"mechanisms/{mechanism}.proof.md" for mechanism in mechanisms)

    def close(self) -> None:
        """Close the ledger if it was opened here, and delete scratch rows; a ``with`` block does so at its end."""
        if isinstance(self._streamed, SpooledRows | SparkRows):
            self._streamed.close()
            self._streamed = None
        if self._owns_ledger:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _attached(source: object, study: Study, borrow: bool) -> Table:
    """Return the table; one that was attached before must have been attached under the same study."""
    if not isinstance(source, Table):
        return table_of_source(source, study, borrow)
    if source.study != study:
        raise refusal("CV-P017")
    return source


def _open(ledger: str | Path | Ledger | None) -> Ledger:
    """Return the ledger to use; a persistent one must exist: a new one would not know what was spent."""
    if isinstance(ledger, Ledger):
        return ledger
    if ledger is None:
        return open_ledger(":memory:", create=True)
    return open_ledger(ledger)


def _listed(names: Iterable[str]) -> str:
    found = [repr(name) for name in names]
    return ", ".join([*found[:10], *(["..."] if len(found) > 10 else [])]) or "no data set"


def _account_name(
    ledger: Ledger, dataset: str | None, budget: Budget | None, access_policy: AccessPolicy | None
) -> tuple[str, bool]:
    """Return the name of the data set's account and whether it is registered; a new one needs a budget."""
    if budget is not None and not isinstance(budget, Budget):
        raise refusal("CV-P662", got=budget)
    if dataset is not None and not isinstance(dataset, str):
        raise refusal("CV-L011", name="dataset", value=dataset)
    known = {account.dataset: account.budget for account in ledger.datasets()}
    if dataset is None:
        if len(known) > 1:
            raise refusal("CV-P013b", known=_listed(known))
        dataset = next(iter(known), "data")
    if dataset not in known:
        if budget is None:
            raise refusal("CV-P012", dataset=dataset, known=_listed(known))
        return dataset, False
    if access_policy is not None:
        ledger.check_access_policy(dataset, access_policy)
    if budget is not None and known[dataset] != budget:
        raise refusal("CV-P014", known=known[dataset], budget=budget)
    return dataset, True


def columns_to_publish(ledger: Ledger, dataset: str, study: Study, unit: Unit) -> tuple[PublicColumn, ...]:
    """Return the columns that a first request at this level would make public, for good, unless they are already.

    Empty where an access policy or an earlier request says what is public. `Ledger.publish` makes them public.
    """
    columns = public_columns(study, unit)
    hidden = set(ledger.unpublished(dataset, [column.name for column in columns]))
    return tuple(column for column in columns if column.name in hidden)


def planned_arm(study: Study, rows: int) -> int | None:
    """Return the size of the smaller arm that a trial's design plans, None where it plans none."""
    share = study.treated_share
    return None if share is None else int(min(share, 1 - share) * rows)


def drafted_access_policy(study: Study, unit: Unit) -> AccessPolicy:
    """Return an access policy that permits a study at one level of protection and nothing beyond it."""
    outcomes = study.outcomes if unit.covariates_public else None
    return AccessPolicy(
        outcomes=outcomes, protects=(unit,), **shown_columns(study, (unit,)), **study.unit_columns
    )


def shown_columns(study: Study, units: Iterable[Unit]) -> dict[str, Any]:
    """Return what a study shows at these levels, as arguments of an access policy: public columns, and what of others.

    That is which rows have values, which are chosen, by text, and clusters.
    """
    listed = tuple(units)
    public = {name for unit in listed for name in study.public_columns(unit)}
    shown: dict[str, Any] = {
        "public": public,
        "missing": rules_of(study.treatment, study.missing_kinds, public),
    }
    if all(unit.treatment_public for unit in listed):
        return shown
    assigned = study.cluster is not None and study.cluster.assigned
    field = "assigned_clusters" if assigned else "clusters"
    return shown | {"subsets": study.subsets, field: study.cluster_columns}
