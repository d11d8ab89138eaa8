"""Clustered estimators under the auditor, on neighbours that move them as far as is claimed.

Every sample runs the estimator's own statistic through a real gate; the weakened copy sees a gate that draws a third of
every noise and must be caught.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import counterveil as cv
from counterveil.audit import Cloud, ExactTester, Given, ThresholdTester, audit
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.linear_form import cluster_form, linear_form
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.linear import clustered
from counterveil.statistics.strata import cluster_cells
from counterveil.statistics.strata.sensitivity import ClusterCells
from counterveil_lab.attacks.watching import WeakGate

CLAIM = Budget(2)


CLUSTER = np.array([0, 0, 0, 1, 2, 3])
TREATED = CLUSTER < 2
FORM = linear_form(np.where(TREATED, 1 / 4, -1 / 2))
CLUSTERS = cluster_form(FORM, CLUSTER, TREATED)
CHANGE = Fraction(CLUSTERS.largest_change) + CLUSTERS.rounding


@dataclass(frozen=True)
class OutcomeLevel:
    gate: type[Gate] = Gate
    plan = Plan.split(CLAIM, {"effect": Fraction(1, 2), "error": Fraction(1, 2)}, "staircase")

    def exact(self, dataset):
        steps = np.array(dataset, dtype=np.int64) * OUTCOME_STEPS
        return clustered.exact_numbers(FORM, CLUSTERS, steps)

    def sample(self, dataset, count, rng):
        source, numbers = SeededNoise(int(rng.integers(2**62))), self.exact(dataset)
        rows = np.empty((count, 2))
        for row in rows:
            gate = self.gate(self.plan, source)
            row[0] = float(gate.release("effect", numbers[0], FORM.largest))
            row[1] = float(gate.release("error", numbers[1], CHANGE))
        return rows

    def log_density(self, dataset, outputs):
        part = 3 if self.gate is WeakGate else 1
        effect, error = (float(number) for number in self.exact(dataset))
        first = self.plan.noise("effect", FORM.largest / part).log_density(outputs[:, 0] - effect)
        return first + self.plan.noise("error", CHANGE / part).log_density(outputs[:, 1] - error)


def worst_row():
    """Return the two data sets between which the error moves by all that is claimed, and the effect nearly so."""
    rows = np.eye(len(CLUSTER), dtype=int)
    lengths = [float(CLUSTERS.length(row * OUTCOME_STEPS, 24)) for row in rows]
    return [(tuple([0] * len(CLUSTER)), tuple(rows[int(np.argmax(lengths))].tolist()))]


def test_outcome_level_keeps_its_claim_and_a_third_of_the_noise_does_not():
    report = audit(
        CLAIM,
        OutcomeLevel(),
        OutcomeLevel(WeakGate),
        worst_row(),
        # A third of the noise was caught with 600 samples in six runs of six, here and below.
        [ExactTester(Cloud(draws=800)), ThresholdTester(samples=800)],
        seed=1,
    )
    assert report.passed, str(report)


STUDY = cv.Study("arm", "y", (0, 1), control=0, randomised=True, cluster="school", assigned_by_cluster=True)
REST = ((0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1))


@dataclass(frozen=True)
class RecordLevel:
    gate: type[Gate] = Gate
    # Nearly everything goes to the sums: the auditor then has one large loss to look for.
    plan = Plan.split(
        CLAIM,
        {"counts": Fraction(1, 50), "sums": Fraction(49, 50)},
        "laplace",
        dict.fromkeys(("counts", "sums"), Kind.CELLS),
    )

    def sample(self, dataset, count, rng):
        cluster, treated, y = (np.array(column) for column in zip(*dataset, strict=True))
        table = Table(STUDY, treated, treated == 1, y.astype(np.int64) * OUTCOME_STEPS, {}, cluster=cluster)
        cells, source = cluster_cells.Cells.of(table), SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 8))
        for row in rows:
            gate = self.gate(self.plan, source)
            people, totals = cluster_cells.release(gate, cells, table, ClusterCells(Fraction(1)))
            row[:4], row[4:] = people.floats(), totals.floats()
        return rows


# From one end of the range in one cluster to the other end in another: both sums move the same way.
PAIR = ((*REST, (0, 0, 1)), (*REST, (1, 1, 0)))
BOTH = Given(lambda rows: rows[:, 4] + rows[:, 5])


def test_record_level_keeps_its_claim_and_a_third_of_the_noise_does_not():
    tester = ThresholdTester(samples=800, projections=(BOTH,))
    report = audit(CLAIM, RecordLevel(), RecordLevel(WeakGate), [PAIR], [tester], seed=1)
    assert report.passed, str(report)
