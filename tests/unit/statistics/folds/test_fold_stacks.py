"""Models of many folds at once are those of each fold alone, and no fold reaches another."""

import numpy as np
import pytest

from counterveil.numerics.propensity import fit_propensity
from counterveil.numerics.public_choices import fold_rows
from counterveil.statistics.folds.kernels import (
    aipw_effect,
    aipw_effects,
    at,
    logit_lines,
    outcome_lines,
    ridge_models,
)

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
