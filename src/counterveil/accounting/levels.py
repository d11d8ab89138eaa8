"""The two totals of an account: what all answers cost outcomes, and what record-level answers cost whole records.

A record-level answer protects the outcome as well, so it counts in both totals; an outcome-level answer says nothing
about other private columns, so it counts in the first only. Proof: `filters.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from counterveil.accounting.filters import Cost, GaussianRule, Remaining, Rule, rule_for
from counterveil.errors import LedgerError
from counterveil.privacy import Budget, Charge, Unit, read_written, written


@dataclass(frozen=True, slots=True)
class Totals:
    """What the requests so far cost: all of them, those that protect records, and how many they were."""

    outcome: Cost
    record: Cost
    requests: int = 0
    unproved: int = 0

    def after(self, unit: Unit, cost: Cost, unproved: bool) -> Totals:
        """Return the totals with one request more."""
        return replace(
            self,
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
    def from_dict(cls, facts: dict[str, Any]) -> Totals:
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
            raise LedgerError(
                "CV-L047",
                "the budget for records exceeds the total",
                expected=f"at most {budget}: an answer that protects records also costs outcomes",
                got=f"record budget: {record_budget}",
                fix="raise the total, or grant records less",
            )
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
        """Return what a request that protects `unit` can still ask for."""
        left = self.outcome.remaining(totals.outcome)
        if unit is Unit.OUTCOME:
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
    def from_dict(cls, facts: dict[str, Any]) -> Levels:
        """Return the levels in a register entry."""

        def rule(budget: str, limit: str) -> Rule:
            known = None if facts[limit] is None else read_written(facts[limit])
            return rule_for(Budget.from_dict(facts[budget]), facts["rule"], known)

        return cls(rule("budget", "limit"), rule("record_budget", "record_limit"))


def _limit(rule: Rule) -> str | None:
    return written(rule.limit) if isinstance(rule, GaussianRule) else None
