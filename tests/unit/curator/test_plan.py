"""Plans: what a request will draw."""

from fractions import Fraction

import pytest

from counterveil.curator import Plan, choose_law
from counterveil.errors import InternalError, ParameterError
from counterveil.privacy import Budget, GaussianEvent, PureEvent

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
    assert choose_law(Budget(1), None) == "staircase"
    assert choose_law(Budget(1, 1e-6), None) == "gaussian"
    assert choose_law(Budget(1, 1e-6), "laplace") == "laplace"
    with pytest.raises(ParameterError, match="CV-P010"):
        choose_law(Budget(1), "cauchy")
    with pytest.raises(ParameterError, match="CV-P011"):
        choose_law(Budget(1), "gaussian")
