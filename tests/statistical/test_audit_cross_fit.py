"""The published form of cross-fitting under the auditor: its noise does not hide a row that only its models see."""

from dataclasses import dataclass

import numpy as np

import counterveil as cv
from counterveil.audit import ThresholdTester
from counterveil.data import Table
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget
from counterveil.published import doubly_robust as published
from counterveil.results.question import Question
from counterveil.session import Gate, SeededNoise

ROWS = 10_000
STUDY = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)}, treated=1, control=0)


@dataclass(frozen=True)
class Published:
    """The published form's own code; a data set is the outcome of the only treated row of one half."""

    claim: Budget

    def sample(self, dataset, count, rng):
        first, second = two_parts(ROWS, ROWS // 2)
        treated, y = np.zeros(ROWS, dtype=int), np.full(ROWS, 0.5)
        treated[first[0]], y[first[0]] = 1, dataset[0]
        treated[second[: 2 * len(second) // 5]] = 1
        table = Table.attach({"t": treated, "y": y, "x": np.linspace(0, 1, ROWS)}, STUDY)
        words = {"epsilon": self.claim.epsilon, "delta": self.claim.delta, "estimand": "ATE", "level": 0.95}
        asked = Question.ask(
            method="published.cross_fit", protects="record", mechanism=None, request_id=None, **words
        )
        plan = published.paper_plan(asked)
        found, source = published.influence(table, 0.1), SeededNoise(int(rng.integers(2**62)))
        draws = [published.release_printed(Gate(plan, source), plan, table, found) for _ in range(count)]
        return np.array([effect for (effect, _), _ in draws])


def test_the_published_noise_does_not_hide_a_row_that_only_the_models_see():
    claim = Budget(1, "1e-5")
    finding = ThresholdTester(samples=400).examine(
        Published(claim), ((0.0,), (1.0,)), claim, error=1e-3, rng=np.random.default_rng(5)
    )
    assert finding.violated, finding
    assert finding.found > 2 * float(claim.epsilon)
