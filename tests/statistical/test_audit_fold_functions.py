"""Functions learned in folds under the auditor: worst neighbours under a learner that jumps with one outcome."""

from dataclasses import dataclass

import numpy as np
from tests.statistical.released_alone import WeakGate

import counterveil as cv
from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Table
from counterveil.privacy import Budget
from counterveil.questions.cate.cate import CateArguments
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.folds.queries import folding_of, release

CLAIM = Budget(2, "1e-2")
STUDY = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)}, control=0)


class Jump:
    """Answers one where the mean outcome is above a half, minus one where it is not, and is sure of treatment."""

    def fit(self, x, y):
        self.value = 1.0 if np.mean(y) > 0.5 else 0.0
        return self

    def predict(self, x):
        return np.full(len(x), self.value)

    def predict_proba(self, x):
        return np.full((len(x), 2), 0.5)


SETTINGS = cv.settings.FoldQueries(learner=cv.settings.ModelPair(Jump(), Jump()), folds=3)
QUESTION = CateArguments(
    method="fold_aggregation", epsilon=CLAIM.epsilon, delta=CLAIM.delta, settings=SETTINGS
).about(STUDY)
FOLDING = folding_of(STUDY, 9, QUESTION)


class NotingGate:
    """Notes what it is asked to release."""

    def release_vector(self, name, values, sensitivity):
        self.values, self.sensitivity = values, sensitivity
        raise StopIteration


def handed_over(rows):
    t, y = zip(*rows, strict=True)
    table = Table.attach({"t": list(t), "y": list(y), "x": [k / 9 for k in range(9)]}, STUDY)
    gate = NotingGate()
    try:
        release(gate, table, FOLDING)
    except StopIteration:
        return gate.values, gate.sensitivity
    raise AssertionError("nothing was released")


def worst_pair():
    """Return two tables that differ in one record and move the release furthest, of all that flip one outcome."""
    generator = np.random.default_rng(4)
    best = (0.0, None)
    for _ in range(60):
        rows = [(int(t), float(y)) for t, y in generator.integers(0, 2, (9, 2))]
        if not 2 <= sum(t for t, _ in rows) <= 7:
            continue
        place = int(generator.integers(9))
        other = list(rows)
        other[place] = (rows[place][0], 1.0 - rows[place][1])
        one, two = (np.array(handed_over(each)[0], dtype=float) for each in (rows, other))
        moved = float(np.linalg.norm(one - two))
        if moved > best[0]:
            best = (moved, (tuple(rows), tuple(other)))
    return best


MOVED, PAIR = worst_pair()
CANDIDATES = [np.array(handed_over(rows)[0], dtype=float) for rows in PAIR]


@dataclass(frozen=True)
class Release:
    """The released coefficients, seen by an attacker who knows both candidates."""

    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        plan = Plan.split(CLAIM, {"coefficients": 1}, "gaussian", {"coefficients": Kind.VECTOR})
        source = SeededNoise(int(rng.integers(2**62)))
        values, sensitivity = handed_over(dataset)
        found = np.empty((count, 1))
        for row in found:
            noisy = self.gate(plan, source).release_vector("coefficients", values, sensitivity).floats()
            away = [float(np.sum((noisy - one) ** 2)) for one in CANDIDATES]
            row[0] = (away[0] - away[1]) / float(sensitivity) ** 2
        return found


def test_one_outcome_moves_nearly_as_far_as_claimed():
    sensitivity = float(handed_over(PAIR[0])[1])
    assert 0.4 * sensitivity < MOVED <= sensitivity


def test_keeps_its_claim_and_a_third_of_the_noise_does_not():
    tester = ThresholdTester(samples=900, projections=(Given(lambda rows: rows[:, 0]),))
    report = audit(CLAIM, Release(), Release(WeakGate), [PAIR], [tester], seed=3)
    assert report.passed, str(report)
