"""Private inverse weighting under the auditor, on worst neighbours in both parts of the rows.

The two parts are chains of their own: the second is audited for fixed releases of the first, the worst ones.
Samples go through a real gate, or are drawn all at once; the weakened copy has a third of every noise and must be
caught. The attacker knows both candidate data sets: the score is how the released vector stands between theirs.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from tests.statistical.noisy_vectors import nearer, noisy_vectors
from tests.thinned import thinned_rows

import counterveil as cv
from counterveil.attacks.watching import WeakGate
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Table
from counterveil.numerics.propensity import logistic_scores
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget
from counterveil.questions.ate import ask
from counterveil.session import Gate, SeededNoise
from counterveil.statistics.moments import ipw
from counterveil.statistics.moments.ipw_nuisances import Nuisances, nuisance_vector, release_moments
from counterveil.statistics.moments.kernels.scores import STEPS, moments

ROWS = 12
STUDY = cv.Study(
    treatment="t", outcome="y", outcome_range=(0, 1), covariates={"x": cv.Range(0, 1)}, treated=1, control=0
)
FIRST, SECOND = two_parts(ROWS, ROWS // 2)


def table(records):
    x, t, y = zip(*records, strict=True)
    return Table.attach({"x": list(x), "t": list(t), "y": list(y)}, STUDY)


def replaced(place, record):
    rest = [(0.5, row % 2, 0.5) for row in range(ROWS)]
    rest[place] = record
    return tuple(rest)


def designed(claim, estimand):
    asked = ask(
        STUDY, "ipw", protects="record", epsilon=claim.epsilon, delta=claim.delta, estimand=estimand, level=0.95,
        mechanism=None, request_id=None, settings=cv.settings.IPW(penalty=20.0, clip=0.1, shrink=False),
    )  # fmt: skip
    return asked.estimand, ipw.design_of(STUDY, ROWS, asked)


@dataclass(frozen=True)
class Weighted:
    """The second part of the rows: the weighted sums, for released weights under which rows differ most."""

    claim: Budget
    estimand: str
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        attached = table(dataset)
        estimand, design = designed(self.claim, self.estimand)
        released = Nuisances(np.array(STEEP[self.estimand]), (STEPS / 2, STEPS / 2))
        weighing = ipw.weighing_of(released, design, STUDY, estimand)
        part = design.second
        treated = attached.treated[part]
        scores = logistic_scores(design.features.values(attached)[part], released.weights)
        found = moments(weighing.contributions(scores, treated, attached.outcome[part]), treated)
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
    """The first part of the rows: weights of the propensity model and centres, one vector."""

    claim: Budget
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        own, first, second = (self.vector(table(d)) for d in (dataset, *ARM))
        _, design = designed(self.claim, "ATE")
        drawn_for = Fraction(1, 3) if self.gate is WeakGate else Fraction(1)
        noisy = noisy_vectors(design.plan, "nuisances", own, drawn_for, count, rng)
        # Ball noise: the log density falls with the distance.
        return nearer(noisy, np.array(first, float), np.array(second, float), 1, 2, 1)

    def vector(self, attached):
        _, design = designed(self.claim, "ATE")
        z = design.features.values(attached)
        return nuisance_vector(attached, z, design.first, design.fitting, design.settings)


# Weights under which the row at x = 1 has the largest weight that the clip allows.
STEEP = {"ATE": (-20.0, 0.0), "ATT": (20.0, 0.0), "ATC": (-20.0, 0.0)}
# The replaced row lies in the part that the release reads; from one end of its range to the other.
TREATED, CONTROL = (tuple(replaced(SECOND[0], (1.0, t, y)) for y in (1.0, 0.0)) for t in (1, 0))
ARM = (replaced(FIRST[0], (1.0, 1, 1.0)), replaced(FIRST[0], (1.0, 0, 1.0)))
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


@pytest.mark.parametrize("weights", [(0.0, 0.0), (2.0, -1.0)])
def test_rows_of_one_part_do_not_reach_the_release_of_the_other(weights):
    # What the first part releases is the same whatever the second part holds, and the other way round.
    estimand, design = designed(PURE, "ATE")
    assert not set(design.first) & set(design.second)
    learned = Learned(PURE)
    assert learned.vector(table(TREATED[0])) == learned.vector(table(TREATED[1]))
    released = Nuisances(np.array(weights), (STEPS / 3, STEPS / 2))
    weighing = ipw.weighing_of(released, design, STUDY, estimand)
    sums = []
    for attached in map(table, ARM):
        scores = logistic_scores(design.features.values(attached)[design.second], released.weights)
        treated, outcome = attached.treated[design.second], attached.outcome[design.second]
        sums.append(moments(weighing.contributions(scores, treated, outcome), treated))
    assert sums[0] == sums[1]
