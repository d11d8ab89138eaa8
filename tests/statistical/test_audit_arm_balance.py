"""Balance and overlap of private arms under the auditor, on worst neighbours; a third of the noise is caught."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from tests.statistical.noisy_vectors import nearer, noisy_vectors
from tests.thinned import thinned_rows

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Table
from counterveil.privacy import Budget
from counterveil.session import Plan
from counterveil.statistics.histogram import COUNTS_L1, COUNTS_L2
from counterveil.statistics.moments.arm_balance import CELLS, Columns, Score, balance_plan, exact_sums

STUDY = cv.Study("t", "y", (0, 1), {"x": cv.Range(-1, 1), "b": cv.Binary()}, treated=1, control=0)
COLUMNS = Columns.of(STUDY)
SCORE = Score(np.array([1.0, 0.5]), np.linspace(-1.2, 1.2, CELLS - 1))


def rows(x, b, t):
    """Return six fixed records and one that is replaced."""
    return ((0.2, 0, 0), (-0.4, 1, 1), (0.1, 0, 1), (0.5, 1, 0), (0.0, 1, 1), (-0.2, 0, 0), (x, b, t))


def table(records):
    x, b, t = zip(*records, strict=True)
    return Table.attach({"x": list(x), "b": list(b), "t": list(t), "y": [0.0] * len(x)}, STUDY)


@dataclass(frozen=True)
class Noisy:
    """What an attacker sees who knows both data sets: how much nearer a release is to one of them."""

    claim: Budget
    pair: tuple
    name: str
    weak: int = 1

    def values(self, dataset):
        if self.name == "moments":
            return [float(value) for value in exact_sums(table(dataset), COLUMNS)], COLUMNS.sensitivity.sums
        pure = COUNTS_L1 if not self.claim.delta else COUNTS_L2
        return SCORE.cells(COLUMNS, table(dataset))[0].ravel().astype(float).tolist(), pure

    def sample(self, dataset, count, rng):
        # The whole claim pays for the release that is audited: a share of it would hide the bound's slack.
        mechanism = "gaussian" if self.claim.delta else "staircase"
        kind = balance_plan(self.claim, mechanism).kind(self.name)
        plan = Plan.split(self.claim, {self.name: Fraction(1)}, mechanism, {self.name: kind})
        own, sensitivity = self.values(dataset)
        first, second = (np.array(self.values(one)[0]) for one in self.pair)
        noisy = noisy_vectors(plan, self.name, own, sensitivity / self.weak, count, rng)
        order = 1 if self.name == "counts" and not self.claim.delta else 2
        return nearer(noisy, second, first, sensitivity, order, 2 if self.claim.delta else 1)


WITHIN = (rows(-1.0, 0, 1), rows(1.0, 1, 1))
ACROSS = (rows(1.0, 1, 1), rows(1.0, 1, 0))
PURE, GAUSSIAN = Budget(2), Budget(2, "0.01")
CASES = [
    (claim, pair, name)
    for claim in (PURE, GAUSSIAN)
    for pair in (WITHIN, ACROSS)
    for name in ("moments", "counts")
]


@pytest.mark.parametrize(
    ("claim", "pair", "name"), thinned_rows(CASES, CASES[0], CASES[3], CASES[5], CASES[6])
)
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(claim, pair, name):
    tester = ThresholdTester(samples=20_000, projections=(Given(lambda seen: seen[:, 0]),))
    report = audit(claim, Noisy(claim, pair, name), Noisy(claim, pair, name, 3), [pair], [tester], seed=1)
    assert report.passed, str(report)
