"""Plans in parallel: a group pays once, each member draws with the whole amount, once."""

from fractions import Fraction

import pytest

from counterveil.errors import InternalError
from counterveil.privacy import Budget, GaussianEvent, PureEvent
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.session.session import in_parallel

SHARES = {"means": Fraction(3, 4), "variances": Fraction(1, 4)}
GROUPS = {"means": ["a", "b", "c"], "variances": ["va", "vb", "vc"]}


def plan(mechanism="staircase", delta=0):
    return in_parallel(Plan.split(Budget(1, delta), SHARES, mechanism), GROUPS)


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
