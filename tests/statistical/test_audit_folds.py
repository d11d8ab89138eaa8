"""Estimates from folds under the auditor: learners with jumps, worst neighbours, a third of the noise caught."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from tests.statistical.chains import check_chain
from tests.unit.statistics.moments.fixed_outputs import FixedGate

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Table
from counterveil.numerics.public_choices import fold_rows
from counterveil.privacy import Budget
from counterveil.questions.ate import AteArguments
from counterveil.session import Gate, SeededNoise
from counterveil.statistics.folds import aggregation as fold_aggregation
from counterveil.statistics.moments.kernels.scores import moments
from counterveil.statistics.moments.weighted_sums import release_moments
from counterveil_lab.attacks.watching import WeakGate

ROWS, FOLDS = 12, 4
STUDY = cv.Study(
    treatment="t", outcome="y", outcome_range=(0, 1), covariates={"x": cv.Range(0, 1)}, treated=1, control=0
)
CLAIM = Budget(2)


def jumping(x, t, y):
    """Answer at one end or the other, by a single outcome."""
    return 100.0 if y.max() > 0.9 else -100.0


def table(records):
    x, t, y = zip(*records, strict=True)
    return Table.attach({"x": list(x), "t": list(t), "y": list(y)}, STUDY)


def asked(method, settings):
    asked = AteArguments(
        method=method, protects="record", epsilon=CLAIM.epsilon, delta=CLAIM.delta, settings=settings
    )
    return asked.about(STUDY)


@dataclass(frozen=True)
class Aggregation:
    """The average of effects that are clipped to a declared bound."""

    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        settings = cv.settings.Folds(learner=jumping, folds=FOLDS)
        folding = fold_aggregation.folding_of(STUDY, ROWS, asked("fold_aggregation", settings))
        rows, source = table(dataset), SeededNoise(int(rng.integers(2**62)))
        clip = fold_aggregation.released_clip(None, rows, folding)
        steps = fold_aggregation.fold_effects(rows, folding, clip)
        found = moments(steps, steps > 0)
        return np.array(
            [
                [release_moments(self.gate(folding.plan, source), folding.plan, found, clip.bound, 1.0).mean]
                for _ in range(count)
            ]
        )


def centred_folding():
    settings = cv.settings.Folds(folds=FOLDS)
    return replace(
        fold_aggregation.folding_of(STUDY, ROWS, asked("fold_aggregation", settings)), learner=jumping
    )


@dataclass(frozen=True)
class CentredAggregation:
    """Everything that is released where effects are clipped around the released comparison of the arms."""

    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        folding = centred_folding()
        rows, source = table(dataset), SeededNoise(int(rng.integers(2**62)))
        found = []
        for _ in range(count):
            clip, weighted = fold_aggregation.release(self.gate(folding.plan, source), rows, folding)
            found.append([float(clip.centre) + float(clip.bound) * weighted.mean])
        return np.array(found)


OWN = fold_rows(ROWS, FOLDS)[0]
PLACE = int(OWN[0])


def low(record):
    return tuple((float(row not in OWN), row % 2, 0.5) if row != PLACE else record for row in range(ROWS))


CASES = [
    (Aggregation, (low((0.0, 1, 1.0)), low((0.0, 1, 0.0))), 800),
    (CentredAggregation, (low((0.0, 1, 1.0)), low((0.0, 1, 0.0))), 400),
]
TESTER = (Given(lambda rows: rows[:, 0]),)


def test_keeps_its_claim_and_a_third_of_the_noise_does_not():
    estimator, pair, samples = CASES[0]
    tester = ThresholdTester(samples=samples, projections=TESTER)
    report = audit(CLAIM, estimator(), estimator(WeakGate), [pair], [tester], seed=1)
    assert report.passed, str(report)


def handed_over(dataset):
    """Return what is released where effects are clipped around the arms, with the comparison of arms held fixed."""
    folding = centred_folding()
    known = {"share": Fraction(1, 2), "centre": Fraction(1, 2), "contrast": 0, "moment": Fraction(1, 4)}
    gate = FixedGate(folding.plan, known)
    fold_aggregation.release(gate, table(dataset), folding)
    return gate


def test_around_the_arms_it_keeps_its_claim_and_a_third_of_the_noise_does_not():
    check_chain(CLAIM, handed_over, CASES[1][1], 8000, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "pair", "samples"), CASES)
def test_many_samples_do_not_break_the_claim(estimator, pair, samples):
    tester = ThresholdTester(samples=5 * samples, projections=TESTER)
    report = audit(CLAIM, estimator(), estimator(WeakGate), [pair], [tester], seed=2)
    assert report.passed, str(report)
