"""Scores never leave the range that released weights give them; the matched sum never moves further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.numerics.matching import matching_coefficients
from counterveil.numerics.products import linear_form
from counterveil.numerics.propensity import logistic_scores
from counterveil.published.matching import SCORE_STEPS, ScoreRange
from counterveil.statistics.linear.sensitivity import LinearEstimate

STUDY = cv.Study(
    treatment="t",
    outcome="y",
    outcome_range=(0, 1),
    covariates={"a": cv.Range(-3, 5), "b": cv.Binary(), "c": cv.Categories(["p", "q", "r"])},
    control=0,
)


def corners():
    rows = list(product((-3.0, 5.0), (0, 1), "pqr"))
    a, b, c = zip(*rows, strict=True)
    t = [0, 1] * (len(rows) // 2)
    return Table.attach({"a": list(a), "b": list(b), "c": list(c), "t": t, "y": [0.0] * len(rows)}, STUDY)


def test_scores_of_all_corners_fill_the_range_and_never_leave_it():
    table, features = corners(), UnitFeatures.of(STUDY)
    z = features.values(table)
    assert z.shape == (12, features.columns) == (12, 5)
    assert float((z**2).sum(axis=1).max()) <= features.squared_reach
    rng = np.random.default_rng(0)
    for size in (0.0, 0.01, 1.0, 30.0, 1000.0):
        for _ in range(20):
            weights = rng.normal(size=6) * size
            low, high = features.index_range(weights[:-1])
            within = ScoreRange.of_logits(low + weights[-1], high + weights[-1])
            steps = np.floor(logistic_scores(z, weights) * SCORE_STEPS)
            assert steps.min() >= within.low
            assert steps.max() <= within.high
            # Not wider than what the corners show, but for the margin of a step or two.
            assert within.high - within.low <= steps.max() - steps.min() + 5


def test_width_is_never_zero():
    assert ScoreRange.of_logits(0.0, 0.0).width > 0
    assert ScoreRange.of_logits(-1e6, -1e6).width > 0


def test_features_lie_in_the_unit_box_with_the_middle_added():
    features = UnitFeatures.of(STUDY)
    box = features.values(corners()) + features.middle
    assert box.min() == 0
    assert box.max() == 1


def test_matched_sum_moves_by_the_claim_at_most_and_reaches_it():
    rng = np.random.default_rng(1)
    for _ in range(30):
        treated = np.array([True, False, *(rng.random(4) < 0.5)])
        form = linear_form(matching_coefficients(treated, rng.random(6), 2, 2, 4).coefficients)
        claim = LinearEstimate(Fraction(2), form.largest, form.squares, Fraction(0))
        worst = Fraction(0)
        for place, low, high in product(range(6), (0, 1, 2), (0, 1, 2)):
            y = rng.integers(0, 3, 6)
            y[place] = low
            before = form.total(y)
            y[place] = high
            worst = max(worst, abs(form.total(y) - before))
        assert worst == claim.estimate
        for y in ((0, 2) * 3, (2, 2, 0, 0, 2, 0)):
            centred = np.array(y) - 1
            assert form.total(centred) ** 2 <= claim.variance_cap * 6
