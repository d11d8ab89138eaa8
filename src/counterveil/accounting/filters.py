"""Which requests a ledger may accept when analysts choose each epsilon after seeing earlier answers.

Only rules whose remaining budget is a plain number stay valid then; a privacy loss
distribution does not. Proofs, and a counterexample for the rule that is left out: `filters.proof.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from counterveil.accounting.composition import (
    Figure,
    check_event,
    compose,
    gaussian_equivalent,
    pure_equivalent,
    shorten_up,
    square_up,
)
from counterveil.errors import BudgetError, CounterveilError, refusal
from counterveil.numerics.arrays import sqrt_down, sqrt_up
from counterveil.numerics.gaussian_profile import delta_of, epsilon_of, mu_of
from counterveil.privacy import (
    ApproximateEvent,
    Budget,
    Charge,
    GaussianEvent,
    Unit,
    pure_epsilon,
    read_written,
    show,
    written,
)

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
    """What remains: the largest pure epsilon, the delta, and the largest Gaussian mu."""

    epsilon: Fraction
    delta: Fraction
    mu: Fraction | None = None

    def to_dict(self) -> dict[str, str | None]:
        """Return the facts as text."""
        mu = None if self.mu is None else str(self.mu)
        return {"epsilon": str(self.epsilon), "delta": str(self.delta), "mu": mu}

    def __str__(self) -> str:
        if self.mu is not None:
            return f"a pure epsilon of {show(self.epsilon)} or Gaussian noise of mu {show(self.mu)}"
        return f"epsilon {show(self.epsilon)}" + (f", delta {show(self.delta)}" if self.delta else "")


class Rule(Protocol):
    """A filter: it says what a charge costs and whether a total still fits the budget."""

    @property
    def name(self) -> str:
        """The word under which a data set is registered."""
        ...

    @property
    def budget(self) -> Budget:
        """The total budget."""
        ...

    def nothing(self) -> Cost:
        """Return the cost of no request at all."""
        ...

    def cost(self, charge: Charge) -> Cost:
        """Return what `charge` adds, or raise CV-B005 where the rule cannot count it."""
        ...

    def fits(self, total: Cost) -> bool:
        """Return whether `total` is within the budget."""
        ...

    def spent(self, total: Cost) -> Figure:
        """Return the total as (epsilon, delta)."""
        ...

    def remaining(self, total: Cost) -> Remaining:
        """Return what remains after `total`."""
        ...


@dataclass(frozen=True, slots=True)
class SumRule:
    """Face values add up: sum of epsilon and sum of delta, each at most the budget's."""

    budget: Budget
    name: str = "sum"

    def nothing(self) -> Cost:
        """Return the cost of no request at all."""
        return Cost(Fraction(0), Fraction(0), None, True)

    def cost(self, charge: Charge) -> Cost:
        """Return the face value of `charge`."""
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
    """Squares of mu add up, or pure epsilons do while everything was pure; needs a positive delta."""

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
                raise _uncountable(charge)
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


def rule_for(budget: Budget, name: str | None, limit: Fraction | None = None) -> Rule:
    """Return the rule called `name` for `budget`; plain sums unless the steward chose otherwise."""
    if name is None or name == "sum":
        return SumRule(budget)
    if name == "gaussian" and not budget.pure:
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


def _uncountable(charge: Charge) -> CounterveilError:
    return refusal("CV-B005", face=charge.face)


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
