"""Releases that are not single numbers: charged as planned, drawn once, by their own mechanism."""

from fractions import Fraction

import numpy as np
import pytest

from counterveil.errors import InternalError, ParameterError
from counterveil.privacy import Budget, GaussianEvent, PureEvent, ResponseEvent
from counterveil.session import Gate, Kind, Plan, SeededNoise

SHARES = {name: Fraction(1, 5) for name in ("number", "vector", "cells", "rows", "response")}
KINDS = {name: Kind(name) for name in ("vector", "cells", "rows", "response")}
ONE, STEP = Fraction(1), Fraction(1, 1024)


def plan(epsilon=5):
    return Plan.split(Budget(epsilon), SHARES, "staircase", KINDS)


def gate(seed=0, epsilon=5):
    return Gate(plan(epsilon), SeededNoise(seed))


def test_every_kind_is_charged_once_for_its_share():
    events = plan().charge.events
    assert events == (*[PureEvent(ONE)] * 4, ResponseEvent(ONE, 2))
    assert sum(event.epsilon for event in events) == 5


def test_a_plan_of_pure_noise_cannot_be_gaussian():
    with pytest.raises(ParameterError, match="CV-P240"):
        Plan.split(Budget(1, 1e-6), SHARES, "gaussian", KINDS)


def test_releases_pass_once_and_only_as_what_they_were_planned():
    asked = gate()
    asked.release_vector("vector", [ONE, ONE], ONE)
    with pytest.raises(InternalError, match="CV-X003"):
        asked.release_vector("vector", [ONE, ONE], ONE)
    for call in (
        lambda: asked.release("cells", ONE, ONE),
        lambda: asked.release_cells("number", [ONE], ONE),
        lambda: asked.respond("rows", np.array([True])),
        lambda: asked.release_rows("response", np.array([0]), 0, 1, STEP),
        lambda: asked.release_vector("unknown", [ONE], ONE),
    ):
        with pytest.raises(InternalError, match="CV-X002"):
            call()


def test_vectors_and_cells_have_the_spread_they_report():
    zeros = [Fraction(0)] * 400
    vector, cells = gate(1).release_vector("vector", zeros, ONE), gate(2).release_cells("cells", zeros, ONE)
    assert cells.variance == 2.0
    assert vector.variance == 401.0
    for released in (vector, cells):
        assert np.mean(released.floats() ** 2) == pytest.approx(released.variance, rel=0.3)


def test_rows_are_clamped_before_noise_is_added():
    inside, outside = np.array([0, 10, 10]), np.array([-5, 99, 10])
    released = [gate(3).release_rows("rows", steps, 0, 10, STEP) for steps in (inside, outside)]
    assert (released[0] == released[1]).all()


def test_rows_have_laplace_noise_of_their_width():
    steps = np.full(20_000, 512)
    noisy = gate(4).release_rows("rows", steps, 0, 1024, STEP)
    assert np.mean(noisy - 512) == pytest.approx(0, abs=4 * 1024 * 2**0.5 / 20_000**0.5)
    assert np.mean(np.abs(noisy - 512)) == pytest.approx(1024, rel=0.04)


def test_responses_are_true_as_often_as_they_say():
    flags = np.arange(20_000) % 3 == 0
    answers = gate(5).respond("response", flags)
    assert answers.truth == pytest.approx(np.e / (1 + np.e))
    assert np.mean(answers.values == flags) == pytest.approx(answers.truth, abs=0.015)


def test_smooth_releases_are_charged_what_they_claim():
    shares = dict.fromkeys(("a", "b"), Fraction(1, 2))
    made = Plan.split(Budget(2), shares, "staircase", {"b": Kind.SMOOTH})
    assert made.charge.events == (PureEvent(ONE), PureEvent(ONE))
    assert made.shares == "a 50%, b 50%"
    asked = Gate(made, SeededNoise(1))
    with pytest.raises(InternalError, match="CV-X002"):
        asked.release_smooth("a", ONE, ONE, STEP, ONE)
    asked.release_smooth("b", ONE, ONE, STEP, ONE)
    with pytest.raises(InternalError, match="CV-X003"):
        asked.release_smooth("b", ONE, ONE, STEP, ONE)


def test_gaussian_vectors_are_charged_as_gaussian():
    made = Plan.split(Budget(1, "1e-6"), {"v": ONE}, "gaussian", {"v": Kind.VECTOR})
    (event,) = made.charge.events
    assert isinstance(event, GaussianEvent)
    values = Gate(made, SeededNoise(2)).release_vector("v", [Fraction(0)] * 4000, ONE)
    assert np.std(values.floats()) == pytest.approx(1 / float(event.mu), rel=0.05)
    assert values.variance == pytest.approx(1 / float(event.mu) ** 2)


def test_the_grid_of_a_private_scale_is_public():
    """However large the private bound, answers lie on the same grid: its step would tell the bound."""
    for bound in (ONE, 1000 * ONE, ONE / 1000):
        smooth = Gate(Plan.split(Budget(1), {"x": ONE}, "laplace", {"x": Kind.SMOOTH}), SeededNoise(3))
        value = smooth.release_smooth("x", ONE, bound, Fraction(1, 10), ONE)
        assert (value * 2**24).denominator == 1


def test_normal_vectors_have_gaussian_noise_in_a_plan_of_another_law():
    shares = {"model": Fraction(1, 2), "effect": Fraction(1, 2)}
    mixed = Plan.split(Budget(2, "1e-6"), shares, "staircase", {"model": Kind.NORMAL})
    asked = Gate(mixed, SeededNoise(3))
    found = asked.release_vector("model", [Fraction(0)] * 2000, ONE)
    assert found.variance == pytest.approx(1 / float(mixed.amount("model", Kind.NORMAL)) ** 2, rel=1e-6)
    noise = found.floats() / found.variance**0.5
    assert np.mean(noise**2) == pytest.approx(1, abs=0.1)
    assert np.mean(noise**4) == pytest.approx(3, abs=0.6)
    with pytest.raises(InternalError, match="CV-X003"):
        asked.release_vector("model", [ONE], ONE)
