"""Releases that only published forms need: what they draw, on which grid, and what they are charged."""

from fractions import Fraction

import numpy as np
import pytest

from counterveil.errors import InternalError
from counterveil.privacy import ApproximateEvent, Budget, LaplaceEvent
from counterveil.published.asking import (
    ClassicalPlan,
    release_classical,
    release_scaled,
    release_twice,
    release_vector_scaled,
    textbook_constant,
)
from counterveil.session import Gate, Kind, Plan, SeededNoise

ONE = Fraction(1)


def plan(*names):
    return Plan.split(Budget(len(names)), dict.fromkeys(names, Fraction(1, len(names))), "laplace")


def test_textbook_releases_are_charged_what_they_claim():
    thirds = dict.fromkeys(("a", "b", "c"), Fraction(1, 3))
    made = ClassicalPlan.of(Plan.split(Budget(3, "3e-6"), thirds, "laplace"), "c")
    assert made.charge.events == (
        LaplaceEvent(ONE),
        LaplaceEvent(ONE),
        ApproximateEvent(ONE, Fraction(1, 10**6)),
    )
    assert made.shares == "a 33%, b 33%, c 33%"
    asked = Gate(made, SeededNoise(1))
    # The textbook's constant, for a third of delta.
    assert release_classical(asked, "c", ONE, ONE).noise.variance == pytest.approx(2 * np.log(1.25 / 1e-6))
    with pytest.raises(InternalError, match="CV-X003"):
        release_classical(asked, "c", ONE, ONE)


def test_the_textbook_constant():
    assert textbook_constant(1e-5) == pytest.approx(4.8448, abs=1e-4)


def test_what_was_not_planned_is_not_released():
    with pytest.raises(InternalError, match="CV-X002"):
        release_scaled(Gate(plan("x"), SeededNoise(1)), "y", ONE, ONE, ONE)
    with pytest.raises(InternalError, match="CV-X002"):
        release_vector_scaled(Gate(plan("x"), SeededNoise(1)), "x", [ONE], ONE, ONE)


def test_two_draws_have_the_variance_of_both():
    values = [
        float(release_twice(Gate(plan("x"), SeededNoise(seed)), "x", ONE, ONE, ONE / 2))
        for seed in range(1500)
    ]
    noise = release_twice(Gate(plan("x"), SeededNoise(0)), "x", ONE, ONE, ONE / 2).noise
    assert noise.variance == pytest.approx(2 * (1 + 1 / 4))
    assert np.var(values) == pytest.approx(noise.variance, rel=0.2)  # 3.5 standard errors
    assert np.mean(values) == pytest.approx(1, abs=0.1)


def test_the_grid_of_a_private_scale_is_public():
    """However large the private bound, answers lie on the same grid: its step would disclose the bound."""
    for bound in (ONE, 1000 * ONE, ONE / 1000):
        value = release_scaled(Gate(plan("x"), SeededNoise(3)), "x", ONE, bound, ONE)
        assert (value * 2**24).denominator == 1


def test_a_vector_at_a_private_scale_is_drawn_once_on_a_grid_that_the_scale_does_not_set():
    split = Plan.split(Budget(1, 1e-6), {"vector": ONE}, "gaussian", {"vector": Kind.VECTOR})
    asked, least = Gate(split, SeededNoise(3)), Fraction(1, 2**10)
    noisy = release_vector_scaled(asked, "vector", [Fraction(5)] * 2000, Fraction(7, 10), least)
    values = np.array([float(value) for value in noisy])
    assert values.mean() == pytest.approx(5, abs=0.06)
    assert values.std() == pytest.approx(0.7, rel=0.05)
    again = Gate(split, SeededNoise(3))
    other = release_vector_scaled(again, "vector", [Fraction(5)], Fraction(1, 3), least)
    steps = {value.denominator for value in (*noisy, *other)}
    assert max(steps) <= 2**40
    assert all(size & (size - 1) == 0 for size in steps)
    with pytest.raises(InternalError, match="CV-X003"):
        release_vector_scaled(asked, "vector", [ONE], ONE, least)
