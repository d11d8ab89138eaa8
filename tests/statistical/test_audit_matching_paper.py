"""The published noise of limited matching under the auditor, on the example where units run out.

The auditor catches it at the published claim, and passes it at the epsilon that the result names.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from tests.thinned import ALL

import counterveil as cv
from counterveil.audit import ExactTester, Line, ThresholdTester, audit
from counterveil.data import Table
from counterveil.mechanisms import LaplacePair
from counterveil.numerics.matching import matching_coefficients
from counterveil.numerics.products import linear_form
from counterveil.privacy import Budget
from counterveil.published.matching import published_noise, release_estimate
from counterveil.session import Gate, Plan, SeededNoise

CLAIM = Budget(2)
TREATED = np.array([True] * 3 + [False] * 4)
SCORE = np.array([0.40, 0.41, 0.9, 0.40, 0.40, 0.41, 0.41])
STUDY = cv.Study("t", "y", (0, 1))
NEIGHBOURS, LIMITS = 2, (2, 2)
PAIR = ((0, 0, 0, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0, 0))


@dataclass(frozen=True)
class Published:
    """The published form's own release code on seven outcomes."""

    shrink: int = 1

    def parts(self, outcomes):
        form = linear_form(matching_coefficients(TREATED, SCORE, NEIGHBOURS, *LIMITS).coefficients)
        table = Table.attach({"t": TREATED.astype(int), "y": np.array(outcomes, float)}, STUDY)
        noise = published_noise(table, form, LIMITS, NEIGHBOURS)
        return table, form, noise

    def sample(self, dataset, count, rng):
        table, form, noise = self.parts(dataset)
        loss = self.shrink * noise.loss(CLAIM.epsilon)
        plan = Plan(Budget(loss), "laplace", (("effect", loss),))
        source = SeededNoise(int(rng.integers(2**62)))
        claim = Budget(CLAIM.epsilon * self.shrink)
        return np.array(
            [float(release_estimate(Gate(plan, source), table, form, noise, claim)) for _ in range(count)]
        )

    def log_density(self, dataset, outputs):
        table, form, noise = self.parts(dataset)
        _, narrow = noise.scales(CLAIM.epsilon * self.shrink)
        mechanism = LaplacePair(noise.estimate, self.shrink * noise.loss(CLAIM.epsilon), narrow)
        return mechanism.log_density(outputs - float(form.total(table.outcome) * table.outcome_unit))


TESTERS = [ExactTester(Line(centres=(0.0, 3 / 7), scale=0.1, reach=1e4)), ThresholdTester(samples=5_000)]


def findings(mechanism, claim):
    return [
        tester.examine(mechanism, PAIR, claim, error=1e-3, rng=np.random.default_rng(5)) for tester in TESTERS
    ]


def test_the_published_noise_breaks_its_claim():
    exact, sampled = findings(Published(), CLAIM)
    assert exact.violated
    assert 1.45 * float(CLAIM.epsilon) < exact.found <= 1.5 * float(CLAIM.epsilon) + 1e-6
    assert sampled.violated, sampled
    assert sampled.found > float(CLAIM.epsilon)


def test_the_epsilon_that_the_result_names_holds_and_a_third_of_the_noise_is_caught():
    true = Budget(Fraction(3, 2) * CLAIM.epsilon)
    # Densities decide; samples are drawn beside them above, and here in `make test-all`.
    report = audit(true, Published(), Published(3), [PAIR], TESTERS if ALL else TESTERS[:1], seed=4)
    assert report.passed, str(report)
