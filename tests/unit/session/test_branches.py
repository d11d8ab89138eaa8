"""Chains on disjoint rows: the budget is charged once, each chain spends it whole."""

from fractions import Fraction

import pytest

from counterveil.errors import InternalError
from counterveil.privacy import Budget, GaussianEvent, PureEvent, ResponseEvent
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.session.session import in_branches

CHAINS = [
    ({"weights": Fraction(1)}, {"weights": Kind.VECTOR}),
    ({"effect": Fraction(3, 4), "squares": Fraction(1, 4)}, {}),
]


def test_the_whole_budget_is_charged_once_and_spent_by_each_chain():
    plan = in_branches(Budget(2), "laplace", CHAINS)
    # Not a Laplace event: a chain of Laplace draws loses more than one draw at the same epsilon.
    assert plan.charge.events == (PureEvent(Fraction(2)),)
    assert plan.amount("weights", Kind.VECTOR) == 2
    assert plan.amount("effect") + plan.amount("squares") == 2


def test_gaussian_chains_spend_mu():
    plan = in_branches(Budget(1, "1e-6"), "gaussian", CHAINS)
    (event,) = plan.charge.events
    assert isinstance(event, GaussianEvent)
    assert plan.amount("weights", Kind.VECTOR) == event.mu
    assert float(plan.amount("effect") ** 2 + plan.amount("squares") ** 2) == pytest.approx(
        float(event.mu) ** 2
    )
    assert plan.amount("effect") ** 2 + plan.amount("squares") ** 2 <= event.mu**2


def test_names_pass_once_and_only_as_what_they_were_planned():
    gate = Gate(in_branches(Budget(1), "staircase", CHAINS), SeededNoise(1))
    gate.release("effect", Fraction(0), Fraction(1))
    gate.release_vector("weights", [Fraction(0)] * 3, Fraction(1))
    with pytest.raises(InternalError, match="CV-X003"):
        gate.release("effect", Fraction(0), Fraction(1))
    for stranger in ("weights", "all branches together", "other"):
        with pytest.raises(InternalError, match="CV-X002"):
            gate.release(stranger, Fraction(0), Fraction(1))
    with pytest.raises(InternalError, match="CV-X002"):
        gate.release_vector("all branches together", [Fraction(0)], Fraction(1))


def test_noise_that_the_charge_does_not_count_is_refused():
    """What is charged by its own amount alone may be in a chain; whatever takes a delta may not."""
    for kind in Kind:
        chains = [({"a": Fraction(1)}, {}), ({"b": Fraction(1)}, {"b": kind})]
        events = Plan.split(Budget(1, "1e-6"), {"b": Fraction(1)}, "staircase", {"b": kind}).charge.events
        if isinstance(events[0], PureEvent | ResponseEvent):
            assert in_branches(Budget(1, "1e-6"), "staircase", chains).kind("b") is kind
        else:
            with pytest.raises(InternalError, match=f"(?s)CV-X004.*{kind.value}"):
                in_branches(Budget(1, "1e-6"), "staircase", chains)
