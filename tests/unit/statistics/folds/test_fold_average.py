"""Brute force: whatever the learner does, one record moves the average of clipped effects by its claim at most."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned

import counterveil as cv
from counterveil.audit import all_record_replacements, l2, largest_change
from counterveil.numerics.public_choices import fold_rows
from counterveil.statistics.folds.aggregation import effect_of_fold
from counterveil.statistics.folds.sensitivity import FoldAverage
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT, WeightedMoments

RECORDS = tuple(product((-0.5, 0.5), (0.0, 1.0), (0.0, 1.0)))
ROWS, FOLDS, BOUND = 4, 2, Fraction(1)


def jumping(x, t, y):
    return 50.0 if y.sum() > t.sum() else -50.0


def failing(x, t, y):
    if t.sum() == 1:
        raise ValueError("one of two is treated")
    return float("nan") if t.sum() == 0 else 1.0


def difference(x, t, y):
    return float(y[t == 1].mean() - y[t == 0].mean())


@pytest.mark.parametrize("centre", thinned([0.0, 0.3], 0.3))
@pytest.mark.parametrize("learner", thinned(["ols", jumping, failing, difference], jumping, failing))
def test_no_replacement_exceeds_the_claims(learner, centre):
    folds = fold_rows(ROWS, FOLDS)
    known = {}

    def effects(records):
        found = []
        for fold in folds:
            key = tuple(records[place] for place in fold)
            if key not in known:
                part = np.array(key)
                effect = effect_of_fold(learner, part[:, :1], part[:, 1], part[:, 2])
                known[key] = min(max(effect - centre, -1.0), 1.0)
            found.append(known[key])
        return found

    def mean_of(values):
        return sum(values) / len(values)

    def square_of(values):
        return sum(value * value for value in values) / len(values)

    universe = all_record_replacements(ROWS, RECORDS)
    claim = FoldAverage(FOLDS, BOUND)
    mean = largest_change(lambda r: mean_of(effects(r)), universe, claimed=float(claim.mean))
    square = largest_change(lambda r: square_of(effects(r)), universe, claimed=float(claim.square))
    together = largest_change(
        lambda r: (mean_of(effects(r)), float(SQUARE_WEIGHT) * square_of(effects(r))),
        universe,
        claimed=float(WeightedMoments(counted=False).joint / FOLDS),
        distance=l2,
    )
    for change in (mean, square, together):
        assert not change.violated, str(change)
    if learner is jumping:
        assert mean.attained == together.attained == pytest.approx(1)


def test_folds_hold_every_row_once_and_depend_on_nothing_but_their_number():
    for rows, folds in ((10, 3), (1000, 7), (5, 5)):
        found = fold_rows(rows, folds)
        assert sorted(np.concatenate(found)) == list(range(rows))
        assert max(map(len, found)) - min(map(len, found)) <= 1
        again = fold_rows(rows, folds)
        assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))


def test_rows_in_a_pattern_are_spread_over_the_folds():
    for period in (2, 4, 10):
        pattern = np.arange(20_000) % period == 0
        shares = [pattern[fold].mean() for fold in fold_rows(20_000, 5)]
        assert np.ptp(shares) < 0.06
    halves = [(fold < 10_000).mean() for fold in fold_rows(20_000, 5)]
    assert np.ptp(halves) < 0.06


def test_claims_shrink_with_the_number_of_folds():
    assert FoldAverage(10, Fraction(3)).mean == Fraction(6, 10)
    assert FoldAverage(10, Fraction(3)).square == Fraction(9, 10)
    assert cv.settings.Folds().bound is None
