"""Plans: what a request will draw, in chains on disjoint rows and in parallel."""

from fractions import Fraction

import pytest

from counterveil.accounting.composition import check_charge
from counterveil.errors import InternalError, ParameterError
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, GaussianEvent, PureEvent, ResponseEvent
from counterveil.session import Gate, Kind, Plan, SeededNoise, choose_mechanism
from counterveil.session.session import in_branches, in_parallel

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


PARALLEL_SHARES = {"means": Fraction(3, 4), "variances": Fraction(1, 4)}
GROUPS = {"means": ["a", "b", "c"], "variances": ["va", "vb", "vc"]}


def plan(mechanism="staircase", delta=0):
    return in_parallel(Plan.split(Budget(1, delta), PARALLEL_SHARES, mechanism), GROUPS)


def test_a_group_is_charged_once():
    assert plan().charge.events == (PureEvent(Fraction(3, 4)), PureEvent(Fraction(1, 4)))
    first, second = plan("gaussian", 1e-6).charge.events
    assert isinstance(first, GaussianEvent)
    assert plan("gaussian", 1e-6).amount("b") == first.mu
    assert plan("gaussian", 1e-6).amount("vb") == second.mu


def test_every_member_draws_with_the_whole_amount_and_its_own_sensitivity():
    gate = Gate(plan(), SeededNoise(1))
    for name, sensitivity in (("a", 1), ("b", 2), ("c", 3)):
        released = gate.release(name, Fraction(0), Fraction(sensitivity))
        assert released.noise.event == PureEvent(Fraction(3, 4))
        assert released.noise.sensitivity == sensitivity


def test_a_member_passes_once_and_the_group_never():
    gate = Gate(plan(), SeededNoise(1))
    gate.release("a", Fraction(0), Fraction(1))
    with pytest.raises(InternalError, match="CV-X003"):
        gate.release("a", Fraction(0), Fraction(1))
    for stranger in ("means", "variances", "d"):
        with pytest.raises(InternalError, match="CV-X002"):
            gate.release(stranger, Fraction(0), Fraction(1))


def test_a_group_that_gets_nothing_releases_nothing():
    shares = {"means": Fraction(1), "variances": Fraction(0)}
    gate = Gate(in_parallel(Plan.split(Budget(1), shares, "laplace"), GROUPS), SeededNoise(1))
    gate.release("a", Fraction(0), Fraction(1))
    with pytest.raises(InternalError, match="CV-X002"):
        gate.release("va", Fraction(0), Fraction(1))


def test_members_are_what_their_group_was_planned_as():
    """Gaussian vectors in a plan of another mechanism are drawn with the group's mu, and charged for it once."""
    split = Plan.split(
        Budget(1, "1e-6"),
        {"model": Fraction(1, 2), "effect": Fraction(1, 2)},
        "staircase",
        {"model": Kind.NORMAL},
    )
    # A member may have the name of another group.
    made = in_parallel(split, {"model": ["half 1", "effect"], "effect": ["all"]})
    model, effect = made.charge.events
    assert isinstance(model, GaussianEvent)
    assert effect == PureEvent(Fraction(1, 2))
    assert [made.kind(name) for name in ("half 1", "effect", "all")] == [
        Kind.NORMAL,
        Kind.NORMAL,
        Kind.NUMBER,
    ]
    gate = Gate(made, SeededNoise(1))
    for member in ("half 1", "effect"):
        found = gate.release_vector(member, [Fraction(0)] * 3, Fraction(1))
        assert found.variance == pytest.approx(1 / float(model.mu) ** 2)
    with pytest.raises(InternalError, match="CV-X002"):
        gate.release_vector("model", [Fraction(0)], Fraction(1))


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
