"""Several outcomes of private pairs: no exchange of a row moves what is released further than claimed."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.estimators.moments.small_records import NotingGate
from tests.unit.rows.attached import rows_of
from tests.unit.rows.pairs.test_pair_scores import largest, squared, total
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.errors import CounterveilError
from counterveil.estimators.pairs.budget import chosen
from counterveil.estimators.pairs.features import feature_sets
from counterveil.estimators.pairs.outcomes import released_numbers, studies_of
from counterveil.privacy import Budget, Estimand
from counterveil.rows.outcome_numbers import Outcomes, outcome_of
from counterveil.rows.outcome_window import WHOLE
from counterveil.rows.pairs.moments import pair_sensitivity, pair_sums
from counterveil.rows.pairs.scores import ARM_SCORES, WHOLE_SCORES, forms_of_outcomes

RANGES = {"a": (0, 1), "b": (0, 5)}
ENDS = (0, OUTCOME_STEPS // 3, OUTCOME_STEPS)
COVARIATES = {"x": cv.Range(-1, 1)}


def declared(**more):
    words = {"covariates": COVARIATES, "control": 0, "randomised": False} | more
    return study_of("t", outcomes=RANGES, **words)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n).round(3)
    t = (rng.random(n) < 0.5 + 0.3 * x).astype(int)
    a = (rng.random(n) < 0.3 + 0.1 * t + 0.1 * x).astype(int)
    return {"t": t, "x": x, "a": a, "b": np.clip(2 + x + t + rng.normal(0, 0.7, n), 0, 5)}


TABLE = Table.attach(people(60), declared())
ROWS = feature_sets(TABLE)[0]


def exchanged(row):
    """Yield the table with every treatment and pair of outcomes in one row."""
    for t, a, b in product((0, 1), ENDS, ENDS):
        arm, one, other = TABLE.arm.copy(), TABLE.outcome.copy(), TABLE.measures[0].copy()
        arm[row], one[row], other[row] = t, a, b
        yield replace(TABLE, arm=arm, treated=arm > 0, outcome=one, measures=(other,))


@pytest.mark.parametrize("known", [False, True])
def test_no_exchange_moves_the_sums_of_two_outcomes_further_than_claimed(known):
    longest = int((ROWS.steps(slice(None)) ** 2).sum(axis=1).argmax())
    claim = pair_sensitivity(ROWS, 2) ** 2
    for row in (0, longest):
        sums = []
        for made in exchanged(row):
            both = [(outcome_of(made, number), WHOLE) for number in (0, 1)]
            sums.append(pair_sums(ROWS, made.treated, both, known))
        assert len(sums[0]) == (4 if known else 5) * ROWS.z.shape[1]
        assert largest(sums, squared) <= claim
    # The longest row attains it, with either treatment.
    assert largest(sums, squared) > claim * Fraction(99, 100)
    if not known:
        assert largest([sums[0], sums[-1]], squared) > claim * Fraction(97, 100)


@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize("weights", [(1, 1), (1, 3)])
def test_no_exchange_moves_the_scores_of_two_outcomes_further_than_claimed(monkeypatch, means, weights):
    outcomes = Outcomes(
        ("a", "b"), tuple(tuple(map(Fraction, one)) for one in RANGES.values()), tuple(map(Fraction, weights))
    )
    studies = studies_of(TABLE.study, outcomes)
    forms = forms_of_outcomes(ARM_SCORES if means else WHOLE_SCORES, outcomes.weights)
    choice = chosen(TABLE, Budget(40, "1e-3"), outcomes=[TABLE.study] * 2)
    scores, first = [], {}

    class Repeating(NotingGate):
        """What is released before scores is that of the first table, so that all have the same models."""

        def release_vector(self, name, values, sensitivity):
            found = super().release_vector(name, values, sensitivity)
            return found if name == "score" else first.setdefault(name, found)

        release_cells = release_vector

    for made in exchanged(7):
        gate = Repeating()
        gate.rows = rows_of(made)
        released_numbers(gate, made, choice, studies, forms, estimand=Estimand.ATE, means=means)
        scores.append(gate.values["score"])
    claim = gate.sensitivity["score"]
    assert claim == Fraction(5 if means else 4, 2) * Fraction(sum(weights), max(weights))
    assert claim / 3 < largest(scores, total) <= claim
    assert len(scores[0]) == (8 if means else 4)


@pytest.mark.parametrize(("delta", "measure"), [(0, "difference"), ("1e-6", "difference"), (0, "ratio")])
def test_effects_on_outcomes_of_private_pairs_lie_around_the_truth(delta, measure):
    words = {"protects": "treatment and outcome", "epsilon": 8, "delta": delta, "noise": cv.SeededNoise(2)}
    found = cv.outcomes(people(6000, 3), declared(), measure=measure, **words)
    for name, truth in (("a", 0.1), ("b", 1.0)) if measure == "difference" else (("a", 4 / 3),):
        low, high = found.effect(name).interval()
        assert low < truth < high < low + 0.6
    assert type(found).from_dict(found.to_dict()).interval() == found.interval()
    assert found.guarantee.epsilon == 8


def test_more_important_outcomes_have_less_noise():
    words = {"protects": "treatment and outcome", "epsilon": 8, "noise": cv.SeededNoise(2)}
    even, uneven = (
        cv.outcomes(people(4000, 3), declared(), importance=given, **words) for given in (None, {"a": 5})
    )
    for name, less in (("a", True), ("b", False)):
        noises = [one.effect(name).known.uncertainty.noise.variance for one in (uneven, even)]
        assert (noises[0] < noises[1]) is less


@pytest.mark.parametrize(
    ("more", "words", "code"),
    [
        ({}, {"method": "weighting"}, "CV-P016"),
        ({"covariates": {}}, {}, "CV-S051"),
        ({"randomised": True, "baseline": {"a": "x"}, "covariates": {}}, {}, "CV-P018"),
        ({"arms": (0, 1, 2), "reference": 0, "control": None}, {}, "CV-P018"),
        ({}, {"measure": "ratio", "estimand": "ATT"}, "CV-P687"),
    ],
)
def test_what_has_no_form_is_refused(more, words, code):
    with pytest.raises(CounterveilError, match=code):
        cv.outcomes(
            "no such file.csv", declared(**more), protects="treatment and outcome", epsilon=1, **words
        )
