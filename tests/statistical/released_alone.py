"""One release of an estimator under the auditor, alone and with the whole budget, on its worst neighbours."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from tests.statistical.noisy_vectors import nearer, noisy_vectors
from tests.unit.statistics.moments.small_records import NotingGate

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Table
from counterveil.data.features import feature_map
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.moments.records import Records
from counterveil_lab.attacks.watching import WeakGate

STUDY = cv.Study("t", "y", (-1, 1), {"x": cv.Range(-1, 1)}, treated=1, control=0)
REST = ((0.0, 0, 0.0), (0.0, 1, 0.0), (0.1, 0, 0.0), (0.0, 1, 0.0))
FIRST = Given(lambda rows: rows[:, 0])


def records(rows):
    """Return the records of rows (x, t, y)."""
    x, t, y = zip(*rows, strict=True)
    table = Table.attach({"x": list(x), "t": list(t), "y": list(y)}, STUDY)
    return Records(table, feature_map(STUDY, 1))


@dataclass(frozen=True)
class ReleasedAlone:
    """The vector that the estimator's own code hands over, through a real gate.

    `run(gate, dataset, pure)` is the release under the name `name`; `counts` says that a pure budget releases it cell
    by cell. The attacker knows both data sets of `pair` and looks at the likelihood ratio of the noisy vector.
    """

    name: str
    run: Callable
    pair: tuple
    claim: Budget
    counts: bool = False
    gate: type[Gate] = Gate
    at_once: bool = False

    def handed_over(self, dataset):
        """Return the vector and the sensitivity that the gate is given."""
        gate = NotingGate()
        self.run(gate, dataset, self.claim.pure)
        return gate.values[self.name], gate.sensitivity[self.name]

    def sample(self, dataset, count, rng):
        name, pure = self.name, self.claim.pure
        cells = self.counts and pure
        mechanism = "staircase" if pure else "gaussian"
        plan = Plan.split(self.claim, {name: 1}, mechanism, {name: Kind.CELLS if cells else Kind.VECTOR})
        values, sensitivity = self.handed_over(dataset)
        known, other = (np.array(self.handed_over(one)[0], dtype=float) for one in self.pair)
        if self.at_once:
            drawn_for = sensitivity / 3 if self.gate is WeakGate else sensitivity
            noisy = noisy_vectors(plan, name, values, drawn_for, count, rng)
        else:
            release = self.gate.release_cells if cells else self.gate.release_vector
            source = SeededNoise(int(rng.integers(2**62)))
            gates = (self.gate(plan, source) for _ in range(count))
            noisy = np.array([release(gate, name, values, sensitivity).floats() for gate in gates])
        return nearer(noisy, known, other, sensitivity, 1 if cells else 2, 1 if pure else 2)


def check(release, samples, seed):
    """Assert that a release keeps its claim and that the same audit catches a third of its noise."""
    tester = ThresholdTester(samples=samples, projections=(FIRST,))
    weak = replace(release, gate=WeakGate)
    report = audit(release.claim, release, weak, [release.pair], [tester], seed=seed)
    assert report.passed, str(report)
