"""Plans: what a request will draw."""

from fractions import Fraction

import pytest

from counterveil.accounting.composition import check_charge
from counterveil.errors import InternalError, ParameterError
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, GaussianEvent, PureEvent
from counterveil.session import Kind, Plan, choose_mechanism

SHARES = {"effect": Fraction(3, 4), "variance": Fraction(1, 4)}


def test_pure_shares_add_up_exactly():
    plan = Plan.split(Budget("0.1"), SHARES, "staircase")
    assert plan.charge.events == (PureEvent(Fraction(3, 40)), PureEvent(Fraction(1, 40)))
    assert sum(event.epsilon for event in plan.charge.events) == Fraction(1, 10)


def test_gaussian_shares_split_the_square():
    plan = Plan.split(Budget(1, 1e-6), SHARES, "gaussian")
    mus = [event.mu for event in plan.charge.events if isinstance(event, GaussianEvent)]
    assert float(mus[0] / mus[1]) == pytest.approx(3**0.5)
    whole = Plan.split(Budget(1, 1e-6), {"all": Fraction(1)}, "gaussian").amount("all")
    assert sum(mu**2 for mu in mus) <= whole**2
    assert float(sum(mu**2 for mu in mus)) == pytest.approx(float(whole) ** 2)


def test_shares_of_nothing_are_left_out():
    plan = Plan.split(Budget(1), {"effect": Fraction(1), "variance": Fraction(0)}, "laplace")
    assert [name for name, _ in plan.amounts] == ["effect"]
    with pytest.raises(InternalError, match="CV-X002"):
        plan.noise("variance", Fraction(1))


def test_law_follows_the_budget():
    assert choose_mechanism(Budget(1), None) == "staircase"
    assert choose_mechanism(Budget(1, 1e-6), None) == "gaussian"
    assert choose_mechanism(Budget(1, 1e-6), "laplace") == "laplace"
    with pytest.raises(ParameterError, match="CV-P010"):
        choose_mechanism(Budget(1), "cauchy")
    with pytest.raises(ParameterError, match="CV-P011"):
        choose_mechanism(Budget(1), "gaussian")


MIXED = {"model": Fraction(1, 5), "fit": Fraction(1, 10), "effect": Fraction(7, 10)}
NORMAL = {"model": Kind.NORMAL, "fit": Kind.NORMAL}


def test_normal_vectors_beside_pure_numbers_cost_the_budget_together():
    plan = Plan.split(Budget(2, "1e-6"), MIXED, "staircase", NORMAL)
    model, fit, effect = plan.charge.events
    assert effect == PureEvent(Fraction(7, 5))
    # The part of epsilon that is not the number's is worth this mu, whose square is divided two to one.
    whole = mu_of(Fraction(3, 5), Fraction(1, 10**6))
    assert model.mu**2 + fit.mu**2 <= whole**2
    assert float(model.mu / fit.mu) == pytest.approx(2**0.5)
    assert float(model.mu**2 + fit.mu**2) == pytest.approx(float(whole) ** 2)
    check_charge(plan.charge)


def test_normal_vectors_need_a_delta():
    with pytest.raises(ParameterError, match="CV-P011"):
        Plan.split(Budget(2), MIXED, "staircase", NORMAL)
    with pytest.raises(ParameterError, match="CV-P240"):
        Plan.split(Budget(2, "1e-6"), MIXED, "gaussian", NORMAL)


def test_parts_of_the_budget_are_those_that_were_asked_for():
    """In epsilons, in mus, and where a plan has both."""
    mixed = Plan.split(Budget(2, "1e-6"), MIXED, "staircase", NORMAL)
    for plan in (
        mixed,
        *(Plan.split(Budget(2, "1e-6"), MIXED, mechanism) for mechanism in ("gaussian", "laplace")),
    ):
        assert plan.parts == pytest.approx({"model": 0.2, "fit": 0.1, "effect": 0.7}, abs=1e-9)
        assert plan.shares == "model 20%, fit 10%, effect 70%"
