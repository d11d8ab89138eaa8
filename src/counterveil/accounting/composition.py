"""What several releases cost together: fixed in advance, or chosen one after another.

Every rule for parameters fixed in advance is valid on its own, so the smallest figure is valid too. Later releases may
depend on earlier outputs; their privacy parameters may not, but in a ledger.
"""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import flint

from counterveil.errors import BudgetError, CounterveilError, installing, refusal
from counterveil.numerics.arrays import sqrt_down, sqrt_up
from counterveil.numerics.gaussian_profile import delta_of, epsilon_of, mu_of
from counterveil.privacy import (
    ApproximateEvent,
    Budget,
    Charge,
    Event,
    GaussianEvent,
    LaplaceEvent,
    Number,
    PureEvent,
    ResponseEvent,
    Unit,
    amounts,
    exact,
    pure_epsilon,
    read_written,
    show,
    written,
)

# How much Gaussian noise a release is worth: the mu of the Gaussian pair that dominates it.
#
# A release is mu-GDP if distinguishing two neighbours from its output is no easier than distinguishing
# N(0, 1) from N(mu, 1). Proofs: `conversion.proof.md`.


# Proof: conversion.proof.md

# Rational square roots and grids, rounded in a stated direction.
#
# Budgets are exact; where a number is irrational or its digits would grow without end, it is
# replaced by a rational on the side that costs the spender.


GRID_BITS = 64
_GRID = 1 << GRID_BITS
# Sums of human-written budgets stay exact below this denominator; above it they are rounded up.
_LONGEST_DENOMINATOR = 10**60


def square_up(value: Fraction) -> Fraction:
    """Return `value` squared, rounded up to a multiple of 2**-128 so that running sums stay short."""
    grid = _GRID * _GRID
    return Fraction(math.ceil(value * value * grid), grid)


def shorten_up(value: Fraction) -> Fraction:
    """Return `value` itself while its denominator is short, else the next multiple of 10**-60 above it."""
    if value.denominator <= _LONGEST_DENOMINATOR:
        return value
    return Fraction(math.ceil(value * _LONGEST_DENOMINATOR), _LONGEST_DENOMINATOR)


# Bits of working precision; a comparison that they cannot decide counts against the spender.
_BITS = 192


@lru_cache(maxsize=4096)
def gaussian_equivalent(event: PureEvent | LaplaceEvent | GaussianEvent | ResponseEvent) -> Fraction:
    """Return the smallest mu for which a release is mu-GDP.

    A release is mu-GDP if telling two neighbours apart from its output is no easier than telling N(0, 1) from
    N(mu, 1).

    Parameters
    ----------
    event : PureEvent or LaplaceEvent or GaussianEvent or ResponseEvent
        The release.

    Returns
    -------
    Fraction
        mu, rounded up to a multiple of 2**-64.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from counterveil.accounting import gaussian_equivalent
    >>> from counterveil.privacy import PureEvent
    >>> round(float(gaussian_equivalent(PureEvent(Fraction(1)))), 2)
    1.23
    """
    if isinstance(event, GaussianEvent):
        return event.mu
    epsilon = event.epsilon
    if isinstance(event, LaplaceEvent):
        return 2 * upper_tail_point(lambda: (-_ball(epsilon) / 2).exp() / 2)
    if isinstance(event, ResponseEvent):
        k = event.categories
        return upper_tail_point(lambda: 1 / (_ball(epsilon).exp() + k - 1)) + upper_tail_point(
            lambda: (k - 1) / (_ball(epsilon).exp() + k - 1)
        )
    return 2 * upper_tail_point(lambda: 1 / (1 + _ball(epsilon).exp()))


def pure_equivalent(mu: Fraction) -> Fraction:
    """Return the largest pure epsilon, to about 2**-40 and rounded down, whose equivalent is at most `mu`."""
    with flint.ctx.workprec(_BITS):
        half = _ball(mu) / (2 * flint.arb(2).sqrt())
        odds = ((-half).erfc() / half.erfc()).log()
        steps = int((odds.lower() * (1 << 40)).floor().unique_fmpz()) - 1
    return Fraction(max(0, steps), 1 << 40)


def upper_tail_point(alpha: Callable[[], flint.arb]) -> Fraction:
    """Return the smallest multiple u of 2**-64 for which 1 - Phi(u) <= alpha is certain."""
    with flint.ctx.workprec(_BITS):
        level = alpha()
        high = 8 * _GRID
        while not _tail(high) <= level:
            high *= 2
        low = -8 * _GRID
        while _tail(low) <= level:
            low *= 2
        while high - low > 1:
            middle = (low + high) // 2
            if _tail(middle) <= level:
                high = middle
            else:
                low = middle
        return Fraction(high, _GRID)


def _tail(point: int) -> flint.arb:
    """Return a ball around 1 - Phi(point / 2**64)."""
    scaled = flint.arb(point) / _GRID
    return (scaled / flint.arb(2).sqrt()).erfc() / 2


def _ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


# Dividing one budget among several draws.
#
# Pure epsilons add up, so epsilon is divided. Gaussian draws add up in mu squared, so mu squared is
# divided: two equal halves get mu / sqrt(2) each, not mu / 2.


def split_epsilon(epsilon: Number, shares: Sequence[Number]) -> tuple[Fraction, ...]:
    """Divide an epsilon among several pure releases; epsilons add up.

    Parameters
    ----------
    epsilon : number
        Total, above 0.
    shares : sequence of number
        Proportions, each above 0.

    Returns
    -------
    tuple of Fraction
        Epsilons in these proportions, with the sum `epsilon`.

    Raises
    ------
    CounterveilError
        An epsilon or a share that is not positive (CV-B003).

    Examples
    --------
    >>> from counterveil.accounting import split_epsilon
    >>> split_epsilon(1, [1, 3])
    (Fraction(1, 4), Fraction(3, 4))
    """
    total, weights = _total_and_weights(epsilon, "epsilon", shares)
    return tuple(total * weight for weight in weights)


def split_mu(mu: Number, shares: Sequence[Number]) -> tuple[Fraction, ...]:
    """Divide a mu among several Gaussian releases; squares add up.

    Parameters
    ----------
    mu : number
        Total (sensitivity over standard deviation), above 0.
    shares : sequence of number
        Proportions of mu squared, each above 0.

    Returns
    -------
    tuple of Fraction
        Numbers whose squares are in these proportions and add up to at most the square of `mu`.

    Raises
    ------
    CounterveilError
        A mu or a share that is not positive (CV-B003).

    Examples
    --------
    >>> from counterveil.accounting import split_mu
    >>> [round(float(mu), 2) for mu in split_mu(1, [1, 1])]
    [0.71, 0.71]
    """
    total, weights = _total_and_weights(mu, "mu", shares)
    return tuple(sqrt_down(total**2 * weight) for weight in weights)


def _total_and_weights(value: Number, name: str, shares: Sequence[Number]) -> tuple[Fraction, list[Fraction]]:
    """Return a total as an exact rational, and shares as parts of one; CV-B003 where one is not positive."""
    total = exact(value, name)
    numbers = [exact(share, "share") for share in shares]
    if total <= 0:
        raise refusal("CV-B003", expected=f"{name} > 0", got=f"{name}={value!r}")
    if not numbers or any(number <= 0 for number in numbers):
        raise refusal("CV-B003", expected="at least one share, each positive", got=f"shares={list(shares)!r}")
    whole = sum(numbers)
    return total, numbers if whole == 1 else [number / whole for number in numbers]


# The privacy loss distribution of a fixed plan, through dp-accounting's functional interface.
#
# The numbers come from floating point and Fourier transforms, so they are not certified as the
# other rules are. Every input is rounded against the spender and a slack of delta, far above the
# transforms' error, is set aside; deltas too small for that are left to the other rules.
# dp-accounting's event classes are not used: its `PLDAccountant` drops the count of randomized
# response events.


NOT_INSTALLED = f"privacy loss distribution not tried; {installing('accounting')}"
DELTA_TOO_SMALL = "privacy loss distribution not tried: delta is too small for floating point"
LOSS_TOO_LARGE = "privacy loss distribution not tried: the losses are too large for a grid"

# Set aside for rounding in the transforms (about 1e-15 a term, at most 1e4 terms that matter).
SLACK = Fraction(1, 10**10)
# The loss is discretised in steps this fine, coarser where that would need too many of them.
_FINEST_STEP = 1e-4
_MOST_STEPS = 200_000
_LARGEST_LOSS = 200.0


def loss_distribution_epsilon(events: Sequence[Event], delta: Fraction) -> Fraction | str:
    """Return epsilon at `delta` rounded up, or the reason why this rule could not be tried."""
    if delta < 100 * SLACK:
        return DELTA_TOO_SMALL
    reach = sum(_reach(event) for event in events)
    if reach > _LARGEST_LOSS:
        return LOSS_TOO_LARGE
    if importlib.util.find_spec("dp_accounting") is None:
        return NOT_INSTALLED
    step = max(_FINEST_STEP, 2 * reach / _MOST_STEPS)
    total: Any = None
    for event, count in Counter(events).items():
        one = _distribution(event, step)
        several = one if count == 1 else one.self_compose(count)
        total = several if total is None else total.compose(several)
    epsilon = float(total.get_epsilon_for_delta(_down(delta - SLACK)))
    if not math.isfinite(epsilon):
        return DELTA_TOO_SMALL
    # The last step of the search is a float; a relative 1e-9 covers it many times over.
    return Fraction(epsilon) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**9)


def _reach(event: Event) -> float:
    """Return how large the loss of one release can be, for the size of the grid."""
    if isinstance(event, GaussianEvent):
        return float(event.mu * event.mu / 2 + 10 * event.mu)
    return float(event.epsilon)


def _distribution(event: Event, step: float) -> Any:
    """Return a pessimistic loss distribution of one release."""
    # Imported here: it takes more than a second.
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    if isinstance(event, LaplaceEvent):
        return pld.from_laplace_mechanism(_down(1 / event.epsilon), value_discretization_interval=step)
    if isinstance(event, GaussianEvent):
        return pld.from_gaussian_mechanism(_down(1 / event.mu), value_discretization_interval=step)
    if isinstance(event, ResponseEvent):
        k = event.categories
        noise = k / (math.exp(_up(event.epsilon)) + k - 1)
        return pld.from_randomized_response(noise * (1 - 1e-14), k, value_discretization_interval=step)
    delta = event.delta if isinstance(event, ApproximateEvent) else Fraction(0)
    parameters = common.DifferentialPrivacyParameters(_up(event.epsilon), _up(delta))
    return pld.from_privacy_parameters(parameters, value_discretization_interval=step)


def _up(value: Fraction) -> float:
    """Return a float that is not below `value`."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def _down(value: Fraction) -> float:
    """Return a float that is not above `value`."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


@dataclass(frozen=True, slots=True)
class Figure:
    """A pair (epsilon, delta) that holds for several releases together.

    Attributes
    ----------
    epsilon : Fraction
        Epsilon, exact or rounded up.
    delta : Fraction
        Delta.
    method : str
        Name of the composition rule that gave it.
    notes : tuple of str
        Rules that could not be tried, and why.
    """

    epsilon: Fraction
    delta: Fraction
    method: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the figure as JSON-ready facts.

        Returns
        -------
        dict
            The attributes; rationals are texts.
        """
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "method": self.method,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return f"epsilon {show(self.epsilon)}, delta {show(self.delta)} ({self.method})"


@dataclass(frozen=True, slots=True)
class _Plan:
    """The events of one plan, sorted by what is known about them."""

    pure: tuple[PureEvent | LaplaceEvent | ResponseEvent, ...]
    gaussian: tuple[GaussianEvent, ...]
    # Sums over the releases of which only (epsilon, delta) is known: they simply add on.
    loose_epsilon: Fraction
    loose_delta: Fraction

    @property
    def sum_epsilon(self) -> Fraction:
        """Plain sum of every epsilon that is not Gaussian."""
        return self.loose_epsilon + sum(event.epsilon for event in self.pure)


def compose(events: Sequence[Event], delta: Number) -> Figure:
    """Return the smallest epsilon that is known to hold for several releases together.

    The releases and their privacy parameters must be fixed in advance; for requests chosen one after another
    use a ledger. Tried are plain sums, exact Gaussian composition, pure releases counted as Gaussian, and,
    with the extra ``accounting``, a numerical privacy loss distribution.

    Parameters
    ----------
    events : sequence of Event
        One event for each release: `PureEvent`, `LaplaceEvent`, `GaussianEvent`, `ResponseEvent` or
        `ApproximateEvent` of `counterveil.privacy`.
    delta : number
        Delta of the total, at least 0 and below 1.

    Returns
    -------
    Figure
        Epsilon and delta, and the rule that gave them.

    Raises
    ------
    CounterveilError
        Releases without a finite epsilon at this delta (CV-B002), or impossible privacy parameters (CV-B006).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from counterveil.accounting import compose
    >>> from counterveil.privacy import LaplaceEvent
    >>> print(compose([LaplaceEvent(Fraction(1, 10))] * 100, delta=0))
    epsilon 10, delta 0 (plain sum)
    """
    allowed = exact(delta, "delta")
    plan = _sort(events)
    _check(plan, events, allowed)
    left = allowed - plan.loose_delta
    candidates: list[Figure] = []
    notes: list[str] = []
    if not plan.gaussian:
        candidates.append(Figure(plan.sum_epsilon, plan.loose_delta, "plain sum"))
    if left > 0:
        candidates.extend(_gaussian_candidates(plan, allowed, left))
        if len(events) > 1:
            found = loss_distribution_epsilon(events, allowed)
            if isinstance(found, str):
                notes.append(found)
            else:
                candidates.append(Figure(found, allowed, "privacy loss distribution (numerical)"))
    best = min(candidates, key=lambda figure: figure.epsilon)
    return Figure(best.epsilon, best.delta, best.method, tuple(notes))


def _gaussian_candidates(plan: _Plan, delta: Fraction, left: Fraction) -> list[Figure]:
    """Return the figures that rest on the exact Gaussian profile."""
    figures = []
    if plan.gaussian:
        extra = epsilon_of(_joint_mu(plan.gaussian), left)
        name = "exact Gaussian" if plan.sum_epsilon == 0 else "plain sum + exact Gaussian"
        figures.append(Figure(plan.sum_epsilon + extra, delta, name))
    if plan.pure:
        extra = epsilon_of(_joint_mu((*plan.pure, *plan.gaussian)), left)
        figures.append(Figure(plan.loose_epsilon + extra, delta, "all as Gaussian"))
    return figures


def _joint_mu(
    events: Sequence[PureEvent | LaplaceEvent | ResponseEvent | GaussianEvent],
) -> Fraction:
    return sqrt_up(sum((gaussian_equivalent(event) ** 2 for event in events), Fraction(0)))


def _sort(events: Sequence[Event]) -> _Plan:
    loose = [event for event in events if isinstance(event, ApproximateEvent)]
    return _Plan(
        pure=tuple(event for event in events if isinstance(event, PureEvent | LaplaceEvent | ResponseEvent)),
        gaussian=tuple(event for event in events if isinstance(event, GaussianEvent)),
        loose_epsilon=sum((event.epsilon for event in loose), Fraction(0)),
        loose_delta=sum((event.delta for event in loose), Fraction(0)),
    )


def _check(plan: _Plan, events: Sequence[Event], delta: Fraction) -> None:
    """Raise CV-B002 where no finite epsilon exists at this delta."""
    if not events:
        raise _no_figure("at least one release", "an empty plan", "pass the events of the plan")
    for event in events:
        check_event(event)
    if not 0 <= delta < 1:
        raise _no_figure("0 <= delta < 1", f"delta={show(delta)}", "pass a small delta such as 1e-6")
    if plan.loose_delta > delta:
        raise _no_figure(
            f"delta >= {show(plan.loose_delta)}, the sum of the releases' own deltas",
            f"delta={show(delta)}",
            "allow a larger delta, or plan fewer approximate releases",
        )
    if plan.gaussian and plan.loose_delta == delta:
        raise _no_figure(
            "a delta above the sum of the approximate releases' deltas, because Gaussian noise needs some",
            f"delta={show(delta)}",
            "allow a positive delta, or use Laplace noise, which is pure",
        )


def check_event(event: Event) -> None:
    """Raise CV-B006 for a release whose parameters would make it cost nothing or less."""
    size = event.mu if isinstance(event, GaussianEvent) else event.epsilon
    delta = event.delta if isinstance(event, ApproximateEvent) else Fraction(0)
    least = 0 if isinstance(event, ApproximateEvent) else Fraction(1, 2**400)
    categories = event.categories if isinstance(event, ResponseEvent) else 2
    if size >= least and 0 <= delta < 1 and categories >= 2:
        return
    raise refusal("CV-B006", got=repr(event))


# Which requests a ledger may accept when analysts choose each epsilon after seeing earlier answers.
#
# Only rules whose remaining budget is a plain number stay valid then; a privacy loss distribution does not. Proofs,
# and a counterexample for the rule that is left out: `filters.proof.md`.


# Proof: filters.proof.md


RULES = ("sum", "gaussian")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a charge, or all charges so far, add up to; `mu2` is None under the rule "sum"."""

    epsilon: Fraction
    delta: Fraction
    mu2: Fraction | None
    pure: bool

    def plus(self, other: Cost) -> Cost:
        """Return the sum of both, each part rounded up where its digits would grow without end."""
        mu2 = None if self.mu2 is None or other.mu2 is None else self.mu2 + other.mu2
        return Cost(
            epsilon=shorten_up(self.epsilon + other.epsilon),
            delta=shorten_up(self.delta + other.delta),
            mu2=mu2,
            pure=self.pure and other.pure,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the cost as JSON-ready facts; rationals become text."""
        mu2 = None if self.mu2 is None else written(self.mu2)
        return {"epsilon": written(self.epsilon), "delta": written(self.delta), "mu2": mu2, "pure": self.pure}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Cost:
        """Return the cost written by `to_dict`."""
        mu2 = None if facts["mu2"] is None else read_written(facts["mu2"])
        return cls(read_written(facts["epsilon"]), read_written(facts["delta"]), mu2, bool(facts["pure"]))


@dataclass(frozen=True, slots=True)
class Remaining:
    """What remains of a budget.

    Attributes
    ----------
    epsilon : Fraction
        Largest pure epsilon that one more request may cost.
    delta : Fraction
        Largest delta.
    mu : Fraction or None
        Under the rule "gaussian": largest mu (sensitivity over standard deviation) of Gaussian noise; None
        under "sum".
    """

    epsilon: Fraction
    delta: Fraction
    mu: Fraction | None = None

    def to_dict(self) -> dict[str, str | None]:
        """Return the facts as text.

        Returns
        -------
        dict
            Epsilon, delta and mu as rationals in text; None for a mu that the rule does not have.
        """
        mu = None if self.mu is None else str(self.mu)
        return {"epsilon": str(self.epsilon), "delta": str(self.delta), "mu": mu}

    def __str__(self) -> str:
        if self.mu is not None:
            return f"a pure epsilon of {show(self.epsilon)} or Gaussian noise of mu {show(self.mu)}"
        return amounts(self.epsilon, self.delta)


@dataclass(frozen=True, slots=True)
class SumRule:
    """A filter by which face values add up: sum of epsilon and sum of delta, each at most the budget's.

    A filter says what a charge costs and whether a total still fits the budget.
    """

    budget: Budget
    name: str = "sum"

    def nothing(self) -> Cost:
        """Return the cost of no request at all."""
        return Cost(Fraction(0), Fraction(0), None, True)

    def cost(self, charge: Charge) -> Cost:
        """Return what `charge` adds: its face value."""
        return Cost(charge.face.epsilon, charge.face.delta, None, charge.face.pure)

    def fits(self, total: Cost) -> bool:
        """Return whether both sums are within the budget."""
        return total.epsilon <= self.budget.epsilon and total.delta <= self.budget.delta

    def spent(self, total: Cost) -> Figure:
        """Return the two sums."""
        return Figure(total.epsilon, total.delta, "sum")

    def remaining(self, total: Cost) -> Remaining:
        """Return budget minus sums."""
        return Remaining(self.budget.epsilon - total.epsilon, self.budget.delta - total.delta)


@dataclass(frozen=True, slots=True)
class GaussianRule:
    """A filter by which squares of mu add up, or pure epsilons while everything was pure; needs a positive delta."""

    budget: Budget
    # The mu that the budget is worth; recorded at registration so that it can never change.
    limit: Fraction
    name: str = "gaussian"

    def nothing(self) -> Cost:
        """Return the cost of no request at all."""
        return Cost(Fraction(0), Fraction(0), Fraction(0), True)

    def cost(self, charge: Charge) -> Cost:
        """Return the sum of squared mu of the draws, and their pure epsilon while there is one."""
        mu2, epsilon, pure = Fraction(0), Fraction(0), True
        for event in charge.events:
            if isinstance(event, ApproximateEvent):
                raise refusal("CV-B005", face=charge.face)
            mu2 += square_up(gaussian_equivalent(event))
            own = pure_epsilon(event)
            pure = pure and own is not None
            epsilon += own or 0
        # The face value can be above the draws' sum, never below: it is what the analyst was told.
        return Cost(max(epsilon, charge.face.epsilon) if pure else epsilon, Fraction(0), mu2, pure)

    def fits(self, total: Cost) -> bool:
        """Return whether the squares fit, or everything so far is pure and the epsilons fit."""
        return self._gaussian(total) <= self.limit**2 or (total.pure and total.epsilon <= self.budget.epsilon)

    def spent(self, total: Cost) -> Figure:
        """Return the smaller of the two figures that hold for a total that fits."""
        squares = self._gaussian(total)
        if squares == 0:
            return Figure(Fraction(0), Fraction(0), "gaussian")
        figure = Figure(epsilon_of(sqrt_up(squares), self.budget.delta), self.budget.delta, "gaussian")
        if total.pure and total.epsilon <= figure.epsilon:
            return Figure(total.epsilon, Fraction(0), "pure sum")
        return figure

    def remaining(self, total: Cost) -> Remaining:
        """Return the largest pure epsilon and the largest mu that would still be accepted."""
        squares = self.limit**2 - self._gaussian(total)
        mu = sqrt_down(squares) if squares > 0 else Fraction(0)
        pure = self.budget.epsilon - total.epsilon if total.pure else Fraction(0)
        return Remaining(max(pure, pure_equivalent(mu)), self.budget.delta, mu)

    @staticmethod
    def _gaussian(total: Cost) -> Fraction:
        return total.mu2 if total.mu2 is not None else Fraction(0)


Rule: TypeAlias = SumRule | GaussianRule


def rule_for(budget: Budget, name: str | None, limit: Fraction | None = None) -> Rule:
    """Return the rule called `name` for `budget`; plain sums unless the steward chose otherwise."""
    known = name if isinstance(name, str) else ""
    if name is None or known == "sum":
        return SumRule(budget)
    if known == "gaussian" and not budget.pure:
        return GaussianRule(budget, mu_of(budget.epsilon, budget.delta) if limit is None else limit)
    raise refusal("CV-L012", name=name, budget=budget)


def limit_holds(rule: GaussianRule) -> bool:
    """Return whether noise of size `limit` keeps the budget, proved in ball arithmetic."""
    epsilon, delta = rule.budget.epsilon, rule.budget.delta
    return rule.limit == mu_of(epsilon, delta) or delta_of(rule.limit, epsilon) <= delta


@lru_cache(maxsize=256)
def check_charge(charge: Charge) -> None:
    """Raise CV-B004 unless the draws of `charge` cost at most its face value."""
    # What could not be read back is not written: this raises CV-B007 before anything is reserved.
    charge.to_dict()
    for event in charge.events:
        check_event(event)
    if charge.events and _covered(charge):
        return
    raise refusal("CV-B004", face=charge.face, events=len(charge.events))


def _covered(charge: Charge) -> bool:
    face = charge.face
    pure = sum(pure_epsilon(event) or Fraction(0) for event in charge.events)
    squares = sum(event.mu**2 for event in charge.events if isinstance(event, GaussianEvent))
    if not any(isinstance(event, ApproximateEvent) for event in charge.events):
        left = face.epsilon - pure
        if squares == 0 and left >= 0:
            return True
        # The common case, decided by the very function that calibrates the noise.
        if squares and not face.pure and left >= 0 and squares <= mu_of(left, face.delta) ** 2:
            return True
    try:
        return compose(charge.events, face.delta).epsilon <= face.epsilon
    except BudgetError:
        return False


# The two totals of an account: what all answers cost private values, and what record-level answers cost whole records.
#
# A record-level answer protects treatments and outcomes as well, so it counts in both totals; other answers say nothing
# about private columns that they were not about, so they count in the first only. Proof: `filters.proof.md`.


@dataclass(frozen=True, slots=True)
class Totals:
    """What the requests so far cost: all of them, those that protect records, and how many they were."""

    outcome: Cost
    record: Cost
    requests: int = 0
    unproved: int = 0

    def after(self, unit: Unit, cost: Cost, unproved: bool) -> Totals:
        """Return the totals with one request more."""
        return Totals(
            outcome=self.outcome.plus(cost),
            record=self.record.plus(cost) if unit is Unit.RECORD else self.record,
            requests=self.requests + 1,
            unproved=self.unproved + unproved,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the running facts of a reserve entry."""
        return {
            "total": self.outcome.to_dict(),
            "record_total": self.record.to_dict(),
            "requests": self.requests,
            "unproved": self.unproved,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Totals:
        """Return the totals in a reserve entry."""
        outcome, record = (Cost.from_dict(facts[name]) for name in ("total", "record_total"))
        return cls(outcome, record, int(facts["requests"]), int(facts["unproved"]))


@dataclass(frozen=True, slots=True)
class Levels:
    """What was granted: a rule for everything, and one for what protects whole records; both are of one kind."""

    outcome: Rule
    record: Rule

    @classmethod
    def granted(cls, budget: Budget, record_budget: Budget | None, rule: str | None) -> Levels:
        """Return the levels of a new account; records get the whole budget where nothing is said."""
        outcome = rule_for(budget, rule)
        if record_budget is None or record_budget == budget:
            return cls(outcome, outcome)
        if record_budget.epsilon > budget.epsilon or record_budget.delta > budget.delta:
            raise refusal("CV-L047", budget=budget, record_budget=record_budget)
        return cls(outcome, rule_for(record_budget, outcome.name))

    def nothing(self) -> Totals:
        """Return the totals before the first request."""
        return Totals(self.outcome.nothing(), self.record.nothing())

    def cost(self, charge: Charge) -> Cost:
        """Return what a charge costs, which is the same in both totals."""
        return self.outcome.cost(charge)

    def exceeded(self, totals: Totals) -> Unit | None:
        """Return the level whose total no longer fits, None where both do."""
        if not self.outcome.fits(totals.outcome):
            return Unit.OUTCOME
        return None if self.record.fits(totals.record) else Unit.RECORD

    def remaining(self, totals: Totals, unit: Unit) -> Remaining:
        """Return the remaining budget of requests that protect `unit`."""
        left = self.outcome.remaining(totals.outcome)
        if unit is not Unit.RECORD:
            return left
        own = self.record.remaining(totals.record)
        mu = None if left.mu is None or own.mu is None else min(left.mu, own.mu)
        return Remaining(min(left.epsilon, own.epsilon), min(left.delta, own.delta), mu)

    def to_dict(self) -> dict[str, object]:
        """Return the facts of a register entry."""
        return {
            "budget": self.outcome.budget.to_dict(),
            "limit": _limit(self.outcome),
            "record_budget": self.record.budget.to_dict(),
            "record_limit": _limit(self.record),
            "rule": self.outcome.name,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Levels:
        """Return the levels in a register entry."""

        def rule(budget: str, limit: str) -> Rule:
            known = None if facts[limit] is None else read_written(facts[limit])
            return rule_for(Budget.from_dict(facts[budget]), facts["rule"], known)

        return cls(rule("budget", "limit"), rule("record_budget", "record_limit"))


def _limit(rule: Rule) -> str | None:
    return written(rule.limit) if isinstance(rule, GaussianRule) else None


def _no_figure(expected: str, got: str, fix: str) -> CounterveilError:
    return refusal("CV-B002", expected=expected, got=got, fix=fix)
