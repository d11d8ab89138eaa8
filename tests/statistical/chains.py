"""All releases of one answer under the auditor, earlier outputs held fixed and noise drawn all at once."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tests.statistical.noisy_vectors import nearer, noisy_vectors

from counterveil.audit import Given, ThresholdTester, audit
from counterveil.session import Kind


@dataclass(frozen=True)
class Chain:
    """The numbers that the estimator's own code hands over, with the plan's own noise on each.

    `handed_over` takes a data set and returns the `FixedGate` that it was released through. The attacker knows both
    data sets of `pair`. Noise is made for the sensitivity divided by `part`.
    """

    handed_over: Callable
    pair: tuple
    part: int = 1

    def sample(self, dataset, count, rng):
        gate, (known, other) = self.handed_over(dataset), map(self.handed_over, self.pair)
        seen = np.zeros((count, 1))
        for name, values in gate.given.items():
            sensitivity, plan = gate.sensitivity[name], gate.plan
            noisy = noisy_vectors(plan, name, values, sensitivity / self.part, count, rng)
            ends = [np.array([float(value) for value in one.given[name]]) for one in (known, other)]
            kind = plan.kind(name)
            amount = float(plan.amount(name, kind))
            seen += amount * nearer(noisy, *ends, sensitivity, 2 if kind is Kind.VECTOR else 1, 1)
        return seen


def check_chain(claim, handed_over, pair, samples, seed):
    """Assert that the releases together keep the claim and that the same audit catches a third of their noise."""
    tester = ThresholdTester(samples=samples, projections=(Given(lambda rows: rows[:, 0]),))
    report = audit(claim, Chain(handed_over, pair), Chain(handed_over, pair, 3), [pair], [tester], seed=seed)
    assert report.passed, str(report)
