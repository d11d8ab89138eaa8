"""Public linear estimates under the auditor: the seven-row matching on its worst neighbours."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from tests.thinned import thinned

import counterveil as cv
from counterveil.audit import Cloud, ExactTester, ThresholdTester, audit
from counterveil.data import Table
from counterveil.numerics.linear_form import linear_form, paired_variance
from counterveil.numerics.matching import matching_coefficients
from counterveil.privacy import Budget
from counterveil.session import Gate, Plan, SeededNoise
from counterveil.statistics.linear import effect as linear_effect
from counterveil.statistics.linear.kernels.pairing import score_pairs
from counterveil_lab.attacks.watching import WeakGate

CLAIM = Budget(2)
TREATED = np.array([True] * 3 + [False] * 4)
SCORE = np.array([0.40, 0.41, 0.9, 0.40, 0.40, 0.41, 0.41])
STUDY = cv.Study("t", "y", (0, 1))


@dataclass(frozen=True)
class SevenRows:
    """The estimator's own release code on seven outcomes; effect and variance leave together."""

    gate: type[Gate] = Gate
    mechanism: str = "staircase"

    def parts(self, outcomes):
        c = matching_coefficients(TREATED, SCORE, 2, 2, 2).coefficients
        form, paired = linear_form(c), paired_variance(c, *score_pairs(TREATED, SCORE))
        table = Table.attach({"t": TREATED.astype(int), "y": np.array(outcomes, float)}, STUDY)
        sensitivity = linear_effect.sensitivity_of(table, form, paired)
        plan = Plan.split(CLAIM, {"effect": Fraction(3, 4), "variance": Fraction(1, 4)}, self.mechanism)
        return table, form, paired, sensitivity, plan

    def sample(self, dataset, count, rng):
        table, form, paired, sensitivity, plan = self.parts(dataset)
        source = SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 2))
        for row in rows:
            gate = self.gate(plan, source)
            row[:] = [float(part) for part in linear_effect.release(gate, table, form, paired, sensitivity)]
        return rows

    def log_density(self, dataset, outputs):
        table, form, paired, sensitivity, plan = self.parts(dataset)
        part = 3 if self.gate is WeakGate else 1
        effect = float(form.total(table.outcome) * table.outcome_unit)
        variance = float(paired.value(table.outcome, 24))
        first = plan.noise("effect", sensitivity.estimate / part).log_density(outputs[:, 0] - effect)
        second = plan.noise("variance", sensitivity.variance / part).log_density(outputs[:, 1] - variance)
        return first + second


# Row 3 has the coefficient 3/7; its outcome goes from one end to the other.
PAIRS = [((0, 0, 0, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0, 0))]


def test_the_sensitivity_of_the_seven_rows_is_three_ranges():
    *_, sensitivity, _ = SevenRows().parts(PAIRS[0][0])
    assert float(sensitivity.estimate * 7) == pytest.approx(3, rel=1e-8)


@pytest.mark.parametrize("mechanism", thinned(["staircase", "laplace"], "staircase"))
def test_one_draw_keeps_its_claim_and_a_third_of_the_noise_does_not(mechanism):
    testers = [ExactTester(Cloud(draws=512)), ThresholdTester(samples=800)]
    report = audit(
        CLAIM, SevenRows(mechanism=mechanism), SevenRows(WeakGate, mechanism), PAIRS, testers, seed=3
    )
    assert report.passed, str(report)
