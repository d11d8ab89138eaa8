"""Brute force: no record and no answer of a fold moves averages or coefficients further than claimed; stacked folds."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned

from counterveil.numerics.fold_learners import aipw_effect, ols_effect, ridge_models
from counterveil.numerics.propensity import fit_propensity
from counterveil.numerics.public_choices import fold_rows
from counterveil.rows.folds.quiet_learners import effect_of_fold
from counterveil.rows.folds.sensitivity import FoldAverage
from counterveil.rows.folds.stacked_models import aipw_effects, at, logit_lines, outcome_lines
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.rows.moments.weighted_moments import WeightedMoments
from counterveil_lab.audit import all_record_replacements, l2, largest_change

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

    universe = all_record_replacements(ROWS, RECORDS)
    claim = FoldAverage(FOLDS, BOUND)
    mean = largest_change(lambda r: np.mean(effects(r)), universe, claimed=float(claim.mean))
    square = largest_change(lambda r: np.mean(np.square(effects(r))), universe, claimed=float(claim.square))
    together = largest_change(
        lambda r: (np.mean(effects(r)), float(SQUARE_WEIGHT) * np.mean(np.square(effects(r)))),
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
    claim = FoldAverage(10, Fraction(3))
    assert (claim.mean, claim.square) == (Fraction(6, 10), Fraction(9, 10))


# Both solvers stop at a gradient of about 1e-9, with a penalty of one over some dozen rows.
SOLVED = 1e-6


def people(rows, columns, slope=2.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.5, 0.5, (rows, columns))
    t = (rng.random(rows) < 1 / (1 + np.exp(-slope * x.sum(axis=1)))).astype(float)
    return x, t, x @ rng.uniform(-1, 1, columns) + 0.5 * t + rng.normal(size=rows)


@pytest.mark.parametrize(("rows", "folds", "columns"), [(2000, 45, 6), (1001, 20, 12), (300, 12, 1)])
def test_effects_are_those_of_each_fold_alone(rows, folds, columns):
    x, t, y = people(rows, columns)
    parts = fold_rows(rows, folds)
    alone = [aipw_effect(x[part], t[part], y[part]) for part in parts]
    np.testing.assert_allclose(aipw_effects(x, t, y, parts), alone, atol=SOLVED)


@pytest.mark.parametrize("learner", [ols_effect, aipw_effect])
def test_no_confounding_is_left_where_outcomes_are_linear(learner):
    x, t, _ = people(150, 10, slope=6.0)
    y = 2 * x.sum(axis=1) + 0.5 * t
    for narrower in (1, 4, 100):  # than the declared range
        assert abs(learner(x / narrower, t, y) - 0.5) < 0.01 * abs(difference(x, t, y) - 0.5)


@pytest.mark.parametrize("slope", [0.0, 3.0, 40.0])
def test_lines_are_those_of_each_fold_alone(slope):
    x, t, y = (array.reshape(8, 50, *array.shape[1:]) for array in people(400, 5, slope))
    outcome, logit = outcome_lines(x, t, y), logit_lines(x, t)
    for fold in range(8):
        models = ridge_models(x[fold], t[fold], y[fold])
        for place, predict in enumerate((models.treated, models.control)):
            found = at(x[fold : fold + 1], outcome[fold : fold + 1, place])[0]
            np.testing.assert_allclose(found, predict(x[fold]), atol=1e-9)
        weights = fit_propensity(x[fold], t[fold] == 1, 1 / 50).weights
        np.testing.assert_allclose(logit[fold], weights, atol=SOLVED)


def test_a_fold_without_an_arm_is_not_a_number_and_changes_no_other():
    x, t, y = people(1200, 4)
    parts = fold_rows(1200, 30)
    before = aipw_effects(x, t, y, parts)
    t[parts[7]] = 1.0
    x[parts[8]], y[parts[8]] = 0.5, 1e6
    after = aipw_effects(x, t, y, parts)
    assert np.isnan(after[7])
    assert np.isfinite(after[8])
    others = [place for place in range(30) if place not in (7, 8)]
    assert (after[others] == before[others]).all()
