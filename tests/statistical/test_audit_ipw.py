"""Private inverse weighting under the auditor, on worst neighbours of both releases.

What is learned first and the weighted sums are audited one by one, each with nearly all of the budget; the sums for
fixed scores, the worst ones.
Samples go through a real gate, or are drawn all at once; the weakened copy has a third of every noise and must be
caught. The attacker knows both candidate data sets: the score is how the released vector stands between theirs.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from tests.statistical.noisy_vectors import nearer, noisy_vectors
from tests.thinned import thinned_rows

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Table
from counterveil.privacy import Budget
from counterveil.published import proved_weighting as ipw
from counterveil.published.proved_weighting import STEPS, Nuisances, nuisance_vector
from counterveil.results.question import Question
from counterveil.session import Gate, Plan, SeededNoise
from counterveil.statistics.moments.weighted_sums import release_moments
from counterveil_lab.attacks.watching import WeakGate

ROWS = 12
STUDY = cv.Study(
    treatment="t", outcome="y", outcome_range=(0, 1), covariates={"x": cv.Range(0, 1)}, treated=1, control=0
)


def table(records):
    x, t, y = zip(*records, strict=True)
    return Table.attach({"x": list(x), "t": list(t), "y": list(y)}, STUDY)


def replaced(place, record):
    rest = [(0.5, row % 2, 0.5) for row in range(ROWS)]
    rest[place] = record
    return tuple(rest)


def designed(claim, estimand, share):
    """Return a design that has `share` of the budget for what is learned first."""
    asked = Question.ask(
        method="published.ipw_proved", protects="record", epsilon=claim.epsilon, delta=claim.delta,
        estimand=estimand, level=0.95, mechanism=None, request_id=None,
    )  # fmt: skip
    design = ipw.design_of(STUDY, ROWS, asked)
    usual = design.plan
    parts = {
        name: (2 * share if name == "nuisances" else 2 - 2 * share) * part
        for name, part in usual.parts.items()
    }
    plan = Plan.split(claim, parts, usual.mechanism, dict(usual.kinds))
    return asked.estimand, replace(design, clip=0.1, fitting=replace(design.fitting, penalty=20.0), plan=plan)


@dataclass(frozen=True)
class Weighted:
    """The weighted sums, for released weights under which rows differ most."""

    claim: Budget
    estimand: str
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        attached = table(dataset)
        estimand, design = designed(self.claim, self.estimand, Fraction(1, 100))
        released = Nuisances(np.array(STEEP[self.estimand]), (STEPS / 2, STEPS / 2))
        weighing = ipw.weighing_of(released, design, STUDY, estimand)
        found = ipw.weighed(attached, design.features, released.weights, weighing)
        denominator = 1.0 if self.estimand == "ATE" else estimand
        source = SeededNoise(int(rng.integers(2**62)))
        return np.array(
            [
                [
                    release_moments(
                        self.gate(design.plan, source), design.plan, found, Fraction(1), denominator
                    ).mean
                ]
                for _ in range(count)
            ]
        )


@dataclass(frozen=True)
class Learned:
    """Weights of the propensity model and centres, one vector."""

    claim: Budget
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        own, first, second = (self.vector(table(d)) for d in (dataset, *ARM))
        _, design = designed(self.claim, "ATE", Fraction(99, 100))
        drawn_for = Fraction(1, 3) if self.gate is WeakGate else Fraction(1)
        noisy = noisy_vectors(design.plan, "nuisances", own, drawn_for, count, rng)
        # Ball noise: the log density falls with the distance.
        return nearer(noisy, np.array(first, float), np.array(second, float), 1, 2, 1)

    def vector(self, attached):
        _, design = designed(self.claim, "ATE", Fraction(99, 100))
        return nuisance_vector(attached, design)


# Weights under which the row at x = 1 has the largest weight that the clip allows.
STEEP = {"ATE": (-20.0, 0.0), "ATT": (20.0, 0.0), "ATC": (-20.0, 0.0)}
# From one end of its range to the other.
TREATED, CONTROL = (tuple(replaced(0, (1.0, t, y)) for y in (1.0, 0.0)) for t in (1, 0))
ARM = (replaced(0, (1.0, 1, 1.0)), replaced(0, (1.0, 0, 1.0)))
PURE, GAUSSIAN = Budget(2), Budget(2, "0.01")
CASES = [
    (PURE, TREATED, lambda gate: Weighted(PURE, "ATE", gate), 800),
    (GAUSSIAN, TREATED, lambda gate: Weighted(GAUSSIAN, "ATE", gate), 1000),
    (PURE, CONTROL, lambda gate: Weighted(PURE, "ATT", gate), 2000),
    (GAUSSIAN, TREATED, lambda gate: Weighted(GAUSSIAN, "ATC", gate), 1000),
    (PURE, ARM, lambda gate: Learned(PURE, gate), 20_000),
]
TESTER = (Given(lambda rows: rows[:, 0]),)


@pytest.mark.parametrize(("claim", "pair", "make", "samples"), thinned_rows(CASES, *CASES[:2], CASES[-1]))
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(claim, pair, make, samples):
    tester = ThresholdTester(samples=samples, projections=TESTER)
    report = audit(claim, make(Gate), make(WeakGate), [pair], [tester], seed=1)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize(("claim", "pair", "make", "samples"), CASES)
def test_many_samples_do_not_break_the_claim(claim, pair, make, samples):
    tester = ThresholdTester(samples=5 * samples, projections=TESTER)
    report = audit(claim, make(Gate), make(WeakGate), [pair], [tester], seed=2)
    assert report.passed, str(report)
