"""The record-level estimators under the auditor, on their worst neighbours.

Every sample runs the estimator's own release code through a real gate; the weakened copy sees a gate
that draws a third of every noise and must be caught.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.curator import Gate, Kind, Plan, SeededNoise
from counterveil.data import Table
from counterveil.estimators.ate import contrast, record_matching, score_strata
from counterveil.estimators.ate.unit_features import UnitFeatures
from counterveil.kernels.arms import arm_totals
from counterveil.privacy import Budget

CLAIM = Budget(2)
WIDTH = Fraction(1)
STUDY = cv.Study(
    treatment="t", outcome="y", outcome_range=(0, 1), covariates={"x": cv.Range(0, 1)}, treated=1, control=0
)
FEATURES = UnitFeatures.of(STUDY)


class WeakGate(Gate):
    """A gate that draws a third of the noise it should; responses lie a third as often."""

    def release(self, name, value, sensitivity):
        return super().release(name, value, sensitivity / 3)

    def release_vector(self, name, values, sensitivity):
        return super().release_vector(name, values, sensitivity / 3)

    def release_cells(self, name, values, sensitivity):
        return super().release_cells(name, values, sensitivity / 3)

    def release_rows(self, name, steps, low, high, step):
        # The noise is made for a third of the width; the rows keep theirs.
        middle = (low + high) // 2
        third = (high - low) // 6
        noise = super().release_rows(name, np.full(len(steps), middle), middle - third, middle + third, step)
        return np.clip(steps, low, high) + noise - middle


def table(records):
    x, t, y = zip(*records, strict=True)
    return Table.attach({"x": list(x), "t": list(t), "y": list(y)}, STUDY)


@dataclass(frozen=True)
class Contrast:
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        attached = table(dataset)
        arms = arm_totals(attached.treated, attached.outcome)
        plan = contrast.contrast_plan(len(dataset), CLAIM, "staircase", False)
        source = SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 3))
        for row in rows:
            setting, effect, square = contrast.release(
                self.gate(plan, source), plan, arms, attached.outcome_unit, WIDTH, None
            )
            row[:] = float(setting.share), float(effect), float(square)
        return rows


@dataclass(frozen=True)
class Strata:
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        attached = table(dataset)
        z = FEATURES.values(attached)
        plan = score_strata.strata_plan(len(dataset), CLAIM, "staircase")
        source = SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 3))
        for row in rows:
            weighting, effect, square = score_strata.release(
                self.gate(plan, source), plan, attached, FEATURES, z, 2, "ATE"
            )
            row[:] = float(effect) / float(weighting.contrast.total), weighting.share, float(square)
        return rows


@dataclass(frozen=True)
class Matching:
    gate: type[Gate] = Gate
    settings = cv.RecordMatchingSettings(neighbours=1, weights=0.1, scores=0.1, treatments=0.2, effect=0.6)

    def sample(self, dataset, count, rng):
        attached = table(dataset)
        z = FEATURES.values(attached)
        kinds = {"weights": Kind.VECTOR, "scores": Kind.ROWS, "treatments": Kind.RESPONSE}
        plan = Plan.split(CLAIM, self.settings.shares(), "staircase", kinds)
        source = SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 3))
        for row in rows:
            gate = self.gate(plan, source)
            scores, responses = record_matching.release_scores(gate, attached, FEATURES, z, self.settings)
            matched = record_matching.match(scores, responses, self.settings, float(plan.amount("effect")))
            effect, sensitivity = record_matching.release_sum(gate, attached, matched)
            # What the last release moves by is known from what came before it: c_0 of the replaced row.
            lever = matched.coefficients[0] / float(sensitivity.largest)
            row[:] = float(effect) / float(sensitivity.estimate) * np.sign(lever), responses.values[0], scores[0]
        return rows


REST = ((0.0, 1, 0.5), (1.0, 1, 0.5), (0.0, 0, 0.5), (1.0, 0, 0.5))
# A record that goes from one end of everything to the other.
ACROSS = (((1.0, 1, 1.0), *REST), ((0.0, 0, 1.0), *REST))
OUTCOME = (((1.0, 1, 1.0), *REST), ((1.0, 1, 0.0), *REST))
FIRST = Given(lambda rows: rows[:, 0])
SECOND = Given(lambda rows: rows[:, 1])


@pytest.mark.parametrize(
    ("estimator", "pair", "projection", "samples"),
    [
        (Contrast, (((1.0, 1, 1.0), *REST * 10), ((0.0, 0, 1.0), *REST * 10)), SECOND, 3000),
        (Strata, (((1.0, 1, 1.0), *REST * 10), ((0.0, 0, 1.0), *REST * 10)), FIRST, 2000),
        (Matching, OUTCOME, FIRST, 2000),
    ],
)
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(estimator, pair, projection, samples):
    tester = ThresholdTester(samples=samples, projections=(projection,))
    report = audit(CLAIM, estimator(), estimator(WeakGate), [pair], [tester], seed=1)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [Contrast, Strata, Matching])
@pytest.mark.parametrize("pair", [ACROSS, OUTCOME])
def test_no_projection_of_many_samples_breaks_the_claim(estimator, pair):
    tester = ThresholdTester(samples=20_000, projections=(FIRST, SECOND, Given(lambda rows: rows[:, 2])))
    report = audit(CLAIM, estimator(), estimator(WeakGate), [pair], [tester], seed=2)
    assert report.verdict.value != "violated", str(report)
