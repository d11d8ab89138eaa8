"""Every release behind a function under the auditor, white box, on its worst neighbours.

Every sample runs the estimator's own release code through a real gate and the attacker sees the whole vector; the
weakened copy sees a gate that draws a third of every noise and must be caught. Many samples are drawn all at once.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from tests.statistical.noisy_vectors import nearer, noisy_vectors
from tests.unit.statistics.moments.small_cates import TINY, arm_rows, interacted_rows
from tests.unit.statistics.moments.small_records import NotingGate

from counterveil.audit import Given, ThresholdTester, audit
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.moments.cate_random_features import solved
from counterveil.statistics.moments.cate_releases import release_gradient, release_size, release_statistics
from counterveil.statistics.moments.sensitivity import PenalisedEffect

# A length at which the record at x = 0 is exactly as long as rows may be.
LENGTH = float(np.linalg.norm(TINY.features({"x": np.zeros(1)})))
STEP = np.zeros((2, TINY.size))
INTERACTED_STEP = np.zeros((1, 2 * TINY.size))


class WeakGate(Gate):
    """A gate that draws a third of the noise it should."""

    def release_vector(self, name, values, sensitivity):
        return super().release_vector(name, values, sensitivity / 3)


def penalised(gate, record):
    """Release the weights of a strongly penalised regression on the rows by arm."""
    rows = arm_rows(record, LENGTH, TINY)
    bound = PenalisedEffect(rows.count, Fraction(1), Fraction(50), Fraction(51, 10**8))
    weights = solved(rows.form.blocks(rows.source), rows.count, rows.form.size, 50.0)
    return gate.release_vector("r", [Fraction(float(w)) for w in weights], bound.weights)


def worst_interacted(record, clip=np.inf):
    """Return interacted rows of which the one at x = 0 is as long as rows may be, in either arm."""
    return interacted_rows(record, clip, LENGTH * np.sqrt(2), TINY, 0.0)


# What is released, and the two values of the first record (x, c, t, y) that move it far.
CASES = {
    "moments by arm": (
        lambda gate, record: release_statistics(gate, "r", arm_rows(record, LENGTH, TINY)),
        ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0)),
    ),
    "moments, another arm": (
        lambda gate, record: release_statistics(gate, "r", arm_rows(record, LENGTH, TINY)),
        ((0.0, "u", 1, 1.0), (0.0, "u", 0, 0.0)),
    ),
    "interacted moments": (
        lambda gate, record: release_statistics(gate, "r", worst_interacted(record, 0.3)),
        ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0)),
    ),
    "gradient step": (
        lambda gate, record: release_gradient(gate, "r", arm_rows(record, LENGTH, TINY), STEP, 0.2),
        ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0)),
    ),
    "interacted gradient step": (
        lambda gate, record: release_gradient(gate, "r", worst_interacted(record), INTERACTED_STEP, 0.1),
        ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0)),
    ),
    "quantile": (
        lambda gate, record: release_size(gate, "r", arm_rows(record, LENGTH, TINY), STEP),
        ((0.0, "u", 1, 0.02), (0.0, "u", 1, 1.0)),
    ),
    "penalised weights": (penalised, ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0))),
}


@dataclass(frozen=True)
class Release:
    """One release alone, with the whole budget: the vector that the estimator hands over, through a real gate."""

    name: str
    claim: Budget
    gate: type[Gate] = Gate
    at_once: bool = False

    def handed_over(self, record):
        """Return the vector and the sensitivity that the estimator's own code gives to the gate."""
        gate = NotingGate()
        CASES[self.name][0](gate, record)
        return gate.values["r"], gate.sensitivity["r"]

    def sample(self, dataset, count, rng):
        mechanism = "gaussian" if self.claim.delta else "staircase"
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
# Where a third of the noise is told from all of it with fewest samples.
GAUSSIAN = Budget("3/2", "1e-2")


def check(name, claim, samples, seed, at_once=False):
    tester = ThresholdTester(samples=samples, projections=(FIRST,))
    whole, weak = (Release(name, claim, gate, at_once) for gate in (Gate, WeakGate))
    report = audit(claim, whole, weak, [CASES[name][1]], [tester], seed=seed)
    assert report.passed, str(report)


@pytest.mark.parametrize("name", list(CASES))
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(name):
    check(name, GAUSSIAN, 900, 1)


@pytest.mark.parametrize("name", list(CASES))
def test_no_release_breaks_its_claim_over_many_samples(name):
    check(name, GAUSSIAN, 20_000, 4, at_once=True)
