"""The releases behind an outcome-level function under the auditor: whole vectors on worst neighbours.

Every sample runs the estimator's own release code through a real gate; the weakened copy sees a gate that draws a third
of every noise and must be caught.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from tests.statistical.noisy_vectors import nearer, noisy_vectors
from tests.unit.statistics.linear.test_linear_map import ROWS, table
from tests.unit.statistics.moments.small_records import NotingGate

from counterveil.audit import Given, ThresholdTester, audit
from counterveil.numerics.noise_shape import matrix_power, noise_shape
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.settings import Series
from counterveil.statistics.linear.function_design import functions_of
from counterveil.statistics.linear.function_releases import (
    Residuals,
    release_levels,
    release_map,
    release_squares,
)

FUNCTIONS = functions_of(table((0.0,)), Series(degree=1))
COLUMNS = np.arange(2 * FUNCTIONS.size)
SOLVE = np.linalg.inv(FUNCTIONS.gram + 1e-6 * np.eye(len(COLUMNS)))
SHAPE = noise_shape(FUNCTIONS.sample @ SOLVE.T, FUNCTIONS.gram / ROWS, 12)
WHITE = matrix_power(SHAPE, -0.5) @ SOLVE
# The row whose column is the longest: its outcome moves the whitened map most.
LONGEST = int(np.argmax(np.linalg.norm(FUNCTIONS.sample @ WHITE.T, axis=1)))


def with_outcome(value):
    """Return the table whose row of the longest column has this outcome."""
    outcomes = np.full(ROWS, 0.25)
    outcomes[LONGEST] = value
    return table(outcomes)


def shaped_map(gate, value):
    residuals = Residuals.of(with_outcome(value), np.full(ROWS, 0.5), 0.3)
    return release_map(gate, "r", FUNCTIONS, COLUMNS, WHITE, residuals)


CASES = {
    "shaped map": (shaped_map, (0.0, 1.0)),
    "levels": (lambda gate, value: release_levels(gate, "r", with_outcome(value)), (0.0, 1.0)),
    "squares": (
        lambda gate, value: release_squares(
            gate, "r", Residuals.of(with_outcome(value), np.zeros(ROWS), 0.5)
        ),
        (0.0, 0.5),
    ),
}


class WeakGate(Gate):
    """A gate that draws a third of the noise it should."""

    def release_vector(self, name, values, sensitivity):
        return super().release_vector(name, values, sensitivity / 3)


@dataclass(frozen=True)
class Release:
    """One release alone, with the whole budget: the vector that the estimator hands over, through a real gate."""

    name: str
    claim: Budget
    gate: type[Gate] = Gate
    at_once: bool = False

    def handed_over(self, value):
        gate = NotingGate()
        CASES[self.name][0](gate, value)
        return gate.values["r"], gate.sensitivity["r"]

    def sample(self, dataset, count, rng):
        mechanism = "staircase" if self.claim.pure else "gaussian"
        plan = Plan.split(self.claim, {"r": Fraction(1)}, mechanism, {"r": Kind.VECTOR})
        values, sensitivity = self.handed_over(dataset)
        known, other = (np.array(self.handed_over(one)[0], dtype=float) for one in CASES[self.name][1])
        if self.at_once:
            drawn_for = sensitivity / 3 if self.gate is WeakGate else sensitivity
            noisy = noisy_vectors(plan, "r", values, drawn_for, count, rng)
        else:
            source = SeededNoise(int(rng.integers(2**62)))
            gates = (self.gate(plan, source) for _ in range(count))
            noisy = np.array([gate.release_vector("r", values, sensitivity).floats() for gate in gates])
        return nearer(noisy, known, other, sensitivity, 2, 1 if self.claim.pure else 2)


FIRST = Given(lambda rows: rows[:, 0])
GAUSSIAN, PURE = Budget("3/2", "1e-2"), Budget(2)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("claim", [GAUSSIAN, PURE])
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(name, claim):
    tester = ThresholdTester(samples=900, projections=(FIRST,))
    whole, weak = (Release(name, claim, gate) for gate in (Gate, WeakGate))
    report = audit(claim, whole, weak, [CASES[name][1]], [tester], seed=1)
    assert report.passed, str(report)


@pytest.mark.parametrize("name", list(CASES))
def test_no_release_breaks_its_claim_over_many_samples(name):
    tester = ThresholdTester(samples=20_000, projections=(FIRST,))
    whole, weak = (Release(name, GAUSSIAN, gate, at_once=True) for gate in (Gate, WeakGate))
    report = audit(GAUSSIAN, whole, weak, [CASES[name][1]], [tester], seed=4)
    assert report.passed, str(report)


def test_worst_neighbours_move_the_map_by_all_that_is_claimed():
    """The pair above is the worst there is: it attains the bound but for truncation."""
    (one, bound), (two, _) = (Release("shaped map", GAUSSIAN).handed_over(value) for value in (0.0, 1.0))
    moved = np.linalg.norm([float(a - b) for a, b in zip(one, two, strict=True)])
    assert moved / float(bound) == pytest.approx(1, abs=1e-9)
