"""Bought labels under the auditor, through a real gate; a copy that draws a third of the noise must be caught."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from counterveil.audit import Given, ThresholdTester, audit
from counterveil.mechanisms import StableHistogram
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise

CLAIM = Budget(2, "1e-3")
THRESHOLD = StableHistogram(2, "1e-3").threshold


class WeakGate(Gate):
    """A gate that draws a third of the noise it should, with the threshold that a third of the noise needs."""

    def release_labels(self, name, counts):
        return StableHistogram(3 * self._pay(name, Kind.LABELS), "1e-3").release(counts, self._source)


@dataclass(frozen=True)
class Labels:
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        plan = Plan.split(CLAIM, {"x": Fraction(1)}, "laplace", {"x": Kind.LABELS})
        gate, held = self.gate(plan, SeededNoise(int(rng.integers(2**62)))), Counter(dataset)
        # Every copy of a label has noise of its own, so that one release holds all samples.
        copies = {(label, place): rows for label, rows in held.items() for place in range(count)}
        found = gate.release_labels("x", copies)
        # A hidden label counts as at the threshold.
        shown = [[found.get((label, place), THRESHOLD) for label in "ab"] for place in range(count)]
        return np.array([[first - second] for first, second in shown], dtype=np.float64)


NEAR = (
    tuple("a" * (THRESHOLD + 1) + "b" * (THRESHOLD - 1)),
    tuple("a" * THRESHOLD + "b" * THRESHOLD),
)
LONE = (("a",), ("b",))


def test_keeps_its_claim_and_a_third_of_the_noise_does_not():
    tester = ThresholdTester(samples=3000, projections=(Given(lambda rows: rows[:, 0]),))
    report = audit(CLAIM, Labels(), Labels(WeakGate), [NEAR, LONE], [tester], seed=1)
    assert report.passed, str(report)
