"""Models from sums without noise are those of least squares and of logistic regression; noise shrinks them."""

import numpy as np
import pytest
from scipy.special import expit

import counterveil as cv
from counterveil.data import Table
from counterveil.statistics.outcome_place import WHOLE
from counterveil.statistics.pairs.effect import Sums, fit_models, ladder, pair_sums

N = 4000
# Where noise is all but absent, models differ from exact ones by a ridge and by rounding of features.
NEAR = 2e-3


def people(curved):
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (N, 3))
    bend = curved * (x[:, 0] * x[:, 1] * 3)
    t = rng.uniform(size=N) < expit(0.8 * x[:, 0] + 0.4 * x[:, 2] + bend)
    y = np.clip(0.3 * x[:, 0] + 0.3 * bend + 0.2 * t + 0.3 * rng.normal(size=N), -2, 2)
    study = cv.Study(
        "t",
        "y",
        (-2, 2),
        {f"x{j}": cv.Range(-1, 1) for j in range(3)},
        treated=1,
        control=0,
        randomised=False,
    )
    columns = {"t": t.astype(int), "y": y} | {f"x{j}": x[:, j] for j in range(3)}
    return Table.attach(columns, study)


def fitted(table, rows, variance, rng=None):
    exact = np.array([float(v) for v in pair_sums(rows, table.treated, table.outcome, WHOLE)])
    noise = 0.0 if rng is None else np.sqrt(variance) * rng.normal(size=len(exact))
    sums = Sums.of(exact + noise, variance, rows)
    return fit_models(rows, sums, 0.0, 1.0, 0.3, None, False)


def test_without_noise_scores_and_arms_solve_their_equations():
    table = people(curved=0)
    rows = ladder(table)[0]
    models = fitted(table, rows, 1e-9)
    e, w = models.propensity, rows.weighted
    t, y = table.treated.astype(float), table.outcome / 2**23 - 1
    assert (w.T @ (e - t)) / N == pytest.approx(0, abs=NEAR)
    left = t * y - e * (rows.z @ models.arms[0].coefficients)
    assert (w.T @ left) / N == pytest.approx(0, abs=NEAR)
    assert np.abs(models.arms[0].left).max() < 0.05
    assert models.score is not None
    assert models.score.freedom == pytest.approx(rows.z.shape[1], rel=0.02)


def test_a_product_that_stands_out_is_kept_and_others_are_not():
    table = people(curved=1)
    rows = ladder(table)[-1]
    models = fitted(table, rows, 60.0**2, np.random.default_rng(1))
    assert models.score is not None
    sizes = np.abs(models.score.coefficients)
    product = int(np.flatnonzero(rows.order == 3)[0])
    assert sizes[product] > 0.4
    others = (rows.order >= 2) & (np.arange(len(sizes)) != product)
    assert sizes[others].max() < 0.1


def test_what_shrinkage_leaves_is_seen_where_noise_allows():
    table = people(curved=1)
    rows = ladder(table)[-1]
    weights = np.ones(N) / 2, np.ones(N) / 2
    sharp = fitted(table, rows, 1.0)
    blunt = fitted(table, rows, 3000.0**2, np.random.default_rng(2))
    assert sharp.products(weights, rows)[2] < blunt.products(weights, rows)[2] / 100
    assert blunt.products(weights, rows)[0] > sharp.products(weights, rows)[0]


def test_known_propensities_leave_no_product_of_errors():
    table = people(curved=0)
    rows = ladder(table)[0]
    exact = np.array([float(v) for v in pair_sums(rows, table.treated, table.outcome, WHOLE, True)])
    known = np.full(N, 0.3)
    models = fit_models(rows, Sums.of(exact, 1.0, rows, known), 0.0, 1.0, 0.0, known, True)
    assert set(models.propensity) == {0.3}
    assert models.products((np.ones(N), np.ones(N)), rows) == (0.0, 0.0, 0.0)
    # The share of an outcome from -1 to 1 that is halfway gives its largest standard deviation.
    assert models.sd == pytest.approx(1.0, abs=0.01)
