"""Releases that no proof of ours covers: noise at a private scale, the textbook Gaussian, two Laplace draws.

They draw at the session's gate, from what was charged before, and are here because no sound form needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

from counterveil.privacy import ApproximateEvent, Event
from counterveil.session import Gate, Kind, KnownSensitivityMechanism, Plan, Released
from counterveil.session.any_noise import Gaussian, LaplacePair, release_with


@dataclass(frozen=True, slots=True)
class ClassicalPlan(Plan):
    """A plan in which the releases named `classical` have textbook Gaussian noise and an equal part of delta."""

    classical: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan, *classical: str) -> ClassicalPlan:
        """Return the plan with these of its releases drawn and charged as textbook Gaussian noise."""
        return cls(plan.budget, plan.mechanism, plan.amounts, plan.kinds, classical)

    def event(self, name: str, amount: Fraction) -> Event:
        """Return what the ledger is told about the release called `name`: what the paper claims for it."""
        if name in self.classical:
            return ApproximateEvent(amount, self.budget.delta / len(self.amounts))
        return Plan.event(self, name, amount)


def textbook_constant(delta: float) -> float:
    """Return sqrt(2 ln(1.25 / delta)): noise over sensitivity / epsilon, as textbooks and papers print it.

    It keeps (epsilon, delta) for epsilon below 1 only. `mu_of` gives the least noise at any epsilon.
    """
    return sqrt(2 * log(1.25 / delta))


def release_scaled(gate: Gate, name: str, value: Fraction, bound: Fraction, least: Fraction) -> Fraction:
    """Return `value` plus the plan's noise at a private `bound`; `least` is a public scale that sets the grid."""
    return release_with(gate, name, [value], lambda plan, _: plan.noise(name, bound), least=least)[0][0]


def release_vector_scaled(
    gate: Gate, name: str, values: Sequence[Fraction], scale: Fraction, least: Fraction
) -> tuple[Fraction, ...]:
    """Return `values` plus Gaussian noise of a private `scale` each, which is not returned: it follows the rows."""
    return release_with(
        gate,
        name,
        values,
        lambda _, amount: Gaussian(scale * amount, amount),
        least=least,
        kind=Kind.VECTOR,
    )[0]


def release_classical(gate: Gate, name: str, value: Fraction, sensitivity: Fraction) -> Released:
    """Return `value` plus Gaussian noise of the textbook scale; every release of the plan takes an equal delta."""

    def noise(plan: Plan, amount: Fraction) -> KnownSensitivityMechanism:
        delta = plan.budget.delta / len(plan.amounts)
        return Gaussian(sensitivity, amount / Fraction(textbook_constant(float(delta))))

    (noisy,), mechanism = release_with(gate, name, [value], noise, least=sensitivity)
    return Released(noisy, mechanism)


def release_twice(
    gate: Gate, name: str, value: Fraction, sensitivity: Fraction, narrow: Fraction
) -> Released:
    """Return `value` plus two Laplace draws: the one that the plan pays for, and one of scale `narrow`."""
    (noisy,), mechanism = release_with(
        gate, name, [value], lambda _, amount: LaplacePair(sensitivity, amount, narrow), least=sensitivity
    )
    return Released(noisy, mechanism)
