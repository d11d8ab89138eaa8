"""The record-level estimators under the auditor, on their worst neighbours.

The estimator's own code hands over its numbers and their sensitivities, with what was released before held fixed, and
noise is drawn all at once. Slow tests sample the same code through a real gate. Weakened copies have a third of every
noise and must be caught.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from tests.statistical.chains import check_chain
from tests.unit.statistics.moments.fixed_outputs import FixedGate

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Table
from counterveil.data.features import UnitFeatures, feature_map
from counterveil.numerics.arms import arm_totals
from counterveil.numerics.products import Standard
from counterveil.numerics.propensity import fit_propensity
from counterveil.privacy import Budget
from counterveil.published import proved_matching
from counterveil.session import Gate, Kind, Plan, Responses, SeededNoise
from counterveil.statistics.moments import contrast
from counterveil.statistics.moments.contrast import moments
from counterveil.statistics.moments.records import Records
from counterveil.statistics.moments.sensitivity import CentredContrast
from counterveil.statistics.moments.trial import Direction, Prediction, residual_totals

CLAIM = Budget(2)
WIDTH = Fraction(1)
STUDY = cv.Study(
    treatment="t", outcome="y", outcome_range=(0, 1), covariates={"x": cv.Range(0, 1)}, treated=1, control=0
)
FEATURES = UnitFeatures.of(STUDY)


class WatchedGate(Gate):
    """A gate that keeps what cells were given to it, for the test to look at."""

    def release_cells(self, name, values, sensitivity):
        values = values() if callable(values) else values
        self.given = getattr(self, "given", {}) | {name: values}
        return super().release_cells(name, values, sensitivity)


class WeakGate(WatchedGate):
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
        third = max((high - low) // 6, 1)
        noise = super().release_rows(name, np.full(len(steps), middle), middle - third, middle + third, step)
        return np.clip(steps, low, high) + noise - middle


def mostly(name, others, kinds):
    """Return the plan that gives `name` nearly everything: the auditor then has one large loss to look for."""
    shares = {other: Fraction(part, 50) for other, part in others.items()}
    return Plan.split(CLAIM, shares | {name: 1 - sum(shares.values())}, "staircase", kinds)


def table(records):
    x, t, y = zip(*records, strict=True)
    return Table.attach({"x": list(x), "t": list(t), "y": list(y)}, STUDY)


def standing(effect, known, other, sensitivity):
    """Where the released sum stands between two known ones, in units of its sensitivity: what an attacker sees."""
    return float(effect.value - known) / float(sensitivity) * np.sign(float(other - known))


@dataclass(frozen=True)
class Contrast:
    gate: type[Gate] = WatchedGate
    centre = "arms"

    def sample(self, dataset, count, rng):
        # The attacker knows both candidates, and with the released setting what each would give.
        arms, known, other = (arm_totals(t.treated, t.outcome) for t in (table(d) for d in (dataset, *CROWD)))
        unit = table(dataset).outcome_unit
        centre, kinds = ("centres", {"centres": Kind.CELLS}) if self.centre == "arms" else ("centre", {})
        plan = mostly("contrast", {"share": 3, centre: 1, "moment": 1}, kinds)
        source = SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 3))
        for row in rows:
            setting, effect, square = contrast.release(
                self.gate(plan, source), plan, arms, unit, WIDTH, None, self.centre
            )
            sums = [moments(candidate, unit, setting)[0] for candidate in (known, other)]
            sensitivity = CentredContrast(WIDTH, len(dataset), setting.share, setting.centre).mean
            row[:] = standing(effect, *sums, sensitivity), float(setting.share), float(square)
        return rows


class PooledContrast(Contrast):
    centre = "pooled"


@dataclass(frozen=True)
class Adjusted:
    gate: type[Gate] = WatchedGate
    # Takes the most off everybody that its bound allows, so that outcomes of one stay at the end of their range.
    prediction = Prediction(
        Standard(np.zeros(1), np.ones(1), 4.0, 1.0),
        Direction(np.ones(1), 1.0, 1.0, 1.0),
        0.2,
        1.0,
        0.2,
        0.2,
        0.5,
        0.2,
    )

    def sample(self, dataset, count, rng):
        tables = [table(records) for records in (dataset, *CROWD)]
        features = feature_map(STUDY, 1)
        left = [residual_totals(Records(one, features), self.prediction) for one in tables]
        arms, unit, width = left[0]
        plan = mostly("contrast", {"share": 3, "centres": 1, "moment": 1}, {"centres": Kind.CELLS})
        source = SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 3))
        for row in rows:
            setting, effect, square = contrast.release(
                self.gate(plan, source), plan, arms, unit, width, None, "arms"
            )
            sums = [moments(candidate[0], unit, setting)[0] for candidate in left[1:]]
            sensitivity = CentredContrast(width, len(dataset), setting.share, setting.centre).mean
            row[:] = standing(effect, *sums, sensitivity), float(setting.share), float(square)
        return rows


@dataclass(frozen=True)
class Matching:
    gate: type[Gate] = WatchedGate

    def sample(self, dataset, count, rng):
        attached = table(dataset)
        z = FEATURES.values(attached)
        fitted = fit_propensity(z, attached.treated, 0.1).weights
        candidates = [np.array([y for _, _, y in records]) for records in OUTCOME]
        kinds = {"weights": Kind.VECTOR, "scores": Kind.ROWS, "treatments": Kind.RESPONSE}
        plan = mostly("effect", {"weights": 1, "scores": 1, "treatments": 2}, kinds)
        source = SeededNoise(int(rng.integers(2**62)))
        rows = np.empty((count, 3))
        for row in rows:
            gate = self.gate(plan, source)
            scores, responses = proved_matching.release_scores(gate, attached, FEATURES, z, fitted)
            matched = proved_matching.match(scores, responses, float(plan.amount("effect")))
            effect, sensitivity = proved_matching.release_sum(gate, attached, matched)
            sums = [Fraction(float(matched.coefficients @ y)) for y in candidates]
            seen = standing(effect, *sums, sensitivity.estimate)
            # Only where the replaced row has the largest coefficient does the sum move by its sensitivity.
            largest = abs(matched.coefficients[0]) == matched.largest > 0
            row[:] = seen if largest else 0.5, responses.values[0], scores[0]
        return rows


# The same with earlier outputs held fixed.
FIXED = {
    "share": Fraction(1, 2),
    "centre": Fraction(1, 2),
    "location": Fraction(1, 10),
    "deviation": Fraction(1, 4),
}
SPLIT = {"share": 3, "moment": 1}


def contrast_of(centre, adjusted=False):
    def handed_over(records):
        attached = table(records)
        arms, unit, width = arm_totals(attached.treated, attached.outcome), attached.outcome_unit, WIDTH
        if adjusted:
            arms, unit, width = residual_totals(Records(attached, feature_map(STUDY, 1)), Adjusted.prediction)
        kinds = {"centres": Kind.CELLS} if centre == "arms" else {}
        plan = mostly("contrast", SPLIT | {"centres" if kinds else "centre": 1}, kinds)
        gate = FixedGate(plan, FIXED)
        contrast.release(gate, plan, arms, unit, width, None, centre)
        return gate

    return handed_over


def matched_sum(records):
    attached = table(records)
    gate = FixedGate(Plan.split(CLAIM, {"effect": 1}, "staircase"), {})
    # Scores and treatments as released: the first row is the only treated one.
    responses = Responses(np.array([True] + [False] * (len(records) - 1)), 0.9)
    matched = proved_matching.match(np.arange(len(records)) / 10, responses, 2.0)
    proved_matching.release_sum(gate, attached, matched)
    return gate


REST = ((0.0, 1, 0.5), (1.0, 1, 0.5), (0.0, 0, 0.5), (1.0, 0, 0.5))
OUTCOME = (((1.0, 1, 1.0), *REST), ((1.0, 1, 0.0), *REST))
# Across the arms, from one end of the contrast to the other.
EQUAL = tuple((0.5, t, y) for _, t, y in REST) * 10
CROWD = (((0.5, 1, 1.0), *EQUAL), ((0.5, 0, 1.0), *EQUAL))
ALL = tuple(Given(lambda rows, place=place: rows[:, place]) for place in range(3))
CHAINS = {
    "contrast": (contrast_of("arms"), CROWD),
    "pooled contrast": (contrast_of("pooled"), CROWD),
    "adjusted contrast": (contrast_of("arms", adjusted=True), CROWD),
    "matching": (matched_sum, OUTCOME),
}
CASES = [
    (Contrast, CROWD, 700),
    (PooledContrast, CROWD, 700),
    (Adjusted, CROWD, 700),
    (Matching, OUTCOME, 1800),
]


@pytest.mark.parametrize("case", CHAINS)
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(case):
    check_chain(CLAIM, *CHAINS[case], 8000, 1)


# Sampled through a real gate, whose earlier releases vary.
@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "pair", "samples"), CASES)
def test_no_projection_of_many_samples_breaks_the_claim(estimator, pair, samples):
    tester = ThresholdTester(samples=3 * samples, projections=ALL)
    report = audit(CLAIM, estimator(), estimator(WeakGate), [pair], [tester], seed=2)
    assert report.passed, str(report)
