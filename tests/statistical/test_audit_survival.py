"""Tables of times under the auditor, on their worst neighbours.

The release's own code hands over its numbers and their sensitivity; the plan's own noise is added many times at once.
The weakened copy has noise for a third of the sensitivity and must be caught.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.statistical.noisy_vectors import nearer, noisy_vectors
from tests.unit.statistics.moments.fixed_outputs import FixedGate

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Layout, Table
from counterveil.data.layout import MergedLayout
from counterveil.privacy import Budget
from counterveil.statistics.time_tables import NAME, CountEntries, table_release, tables_of

STUDY = cv.Study("arm", outcome="days", event="died", grid=[1, 2, 3], control=0)
REST = [(0, 1, 1), (0, 9, 0), (1, 2, 0), (1, 3, 1)]
# Somebody who was followed to the horizon in either arm: the longest columns of both forms.
PAIR = tuple(((arm, 9, 0), *REST) for arm in (0, 1))
CLAIMS = {"laplace": Budget(2), "gaussian": Budget(2, "1e-3")}


@dataclass(frozen=True)
class Tables:
    """The released tables, seen by an attacker who knows both candidates."""

    mechanism: str
    form: str
    part: int = 1

    def handed_over(self, rows):
        columns = dict(zip(("arm", "days", "died"), map(list, zip(*rows, strict=True)), strict=True))
        passed = CountEntries(MergedLayout.of(Layout.of(STUDY, ()), 1), STUDY.event.cells, 1)
        counts = tables_of(Table.attach(columns, STUDY).run(passed), 2)
        release = table_release([self.mechanism], CLAIMS[self.mechanism], STUDY.event.cells, self.form)
        gate = FixedGate(release.plan, {})
        release.release(gate, counts.tolist())
        return gate

    def sample(self, dataset, count, rng):
        gate, known, other = map(self.handed_over, (dataset, *PAIR))
        sensitivity = gate.sensitivity[NAME]
        noisy = noisy_vectors(gate.plan, NAME, gate.given[NAME], sensitivity / self.part, count, rng)
        ends = [np.array([float(value) for value in one.given[NAME]]) for one in (known, other)]
        order = 1 if self.mechanism == "laplace" else 2
        return nearer(noisy, *ends, sensitivity, order, order)


@pytest.mark.parametrize("form", ["flat", "sums"])
@pytest.mark.parametrize("mechanism", CLAIMS)
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(mechanism, form):
    # 1,000 samples tell a third of the noise from all of it in three cases of four.
    tester = ThresholdTester(samples=4000, projections=(Given(lambda rows: rows[:, 0]),))
    own = (Tables(mechanism, form), Tables(mechanism, form, 3))
    report = audit(CLAIMS[mechanism], *own, [PAIR], [tester], seed=5)
    assert report.passed, str(report)
