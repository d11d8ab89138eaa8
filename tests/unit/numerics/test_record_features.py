"""Features in [-1, 1], standardised rows, and exact sums of their products."""

from fractions import Fraction

import numpy as np
import pytest

from counterveil.numerics.products import BLOCK, Column, FeatureMap, Standard, exact_gram, grid_bits, steps
from counterveil.statistics.moments.kernels.scores import LinearModels, score_sums

COLUMNS = (
    Column("age", 20.0, 40.0, None, False),
    Column("sex", 0.0, 1.0, None, True),
    Column("place", 0.0, 1.0, 0, True),
    Column("place", 0.0, 1.0, 1, True),
)
VALUES = {
    "age": np.array([20.0, 40.0, 60.0]),
    "sex": np.array([0.0, 1.0, 1.0]),
    "place": np.array([0.0, 1.0, 2.0]),
}


def test_every_kind_of_covariate_and_products():
    features = FeatureMap(COLUMNS, ((0, 0), (0, 1), (1, 2)))
    found = features.block(VALUES, slice(0, 3))
    assert found[:, :4].tolist() == [[-1, -1, 1, -1], [0, 1, -1, 1], [1, 1, -1, -1]]
    assert found[:, 4].tolist() == [1, -1, 1]
    assert found[:, 5].tolist() == [1, 0, 1]
    assert found[:, 6].tolist() == [-1, -1, -1]
    assert features.two_valued.tolist() == [False, True, True, True, False, False, True]
    assert features.size == 7


def test_rows_are_clipped_and_shortened():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (500, 8))
    standard = Standard(np.zeros(8), np.full(8, 0.4), 2.0, 6.0)
    u = standard.rows(x)
    lengths = (u[:, 1:] ** 2).sum(axis=1)
    assert lengths.max() <= 6.0 * (1 + 2**-40)
    assert (u[:, 0] == 1).all()
    short = (np.clip(x / 0.4, -2, 2) ** 2).sum(axis=1) <= 6.0
    assert u[short, 1:] == pytest.approx(np.clip(x[short] / 0.4, -2, 2))
    assert 0 < short.sum() < 500


@pytest.mark.parametrize("largest", [1.0, 4.0, 21.0, 300.0])
def test_grams_are_exact_integers(largest):
    rng = np.random.default_rng(1)
    w = rng.uniform(-largest, largest, (3 * BLOCK // 2, 3))
    bits = grid_bits(largest)
    assert largest * 2**bits <= 2**20
    whole = steps(w, bits).astype(np.int64).astype(object)
    exact = whole.T @ whole
    assert exact_gram([w[:BLOCK], w[BLOCK:]], bits).tolist() == exact.tolist()
    assert (np.abs(steps(w, bits)) <= np.abs(w) * 2**bits).all()


def test_score_is_the_product_of_both_residuals():
    rng = np.random.default_rng(2)
    n = 6000
    u = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    t = (rng.random(n) < 0.5).astype(float)
    y = rng.normal(size=n)
    models = LinearModels(0.5, 0.1, np.array([0, 0.1, 0.0]), np.zeros(3), np.array([0.0, 0.2, 0.1]), 0.4)
    r = (t - 0.5 - 0.1 * u[:, 1]) * (y - 0.1 - 0.4 * (t - 0.5) - 0.2 * u[:, 1] - 0.1 * u[:, 2])
    parts = [(u[:BLOCK], t[:BLOCK], y[:BLOCK]), (u[BLOCK:], t[BLOCK:], y[BLOCK:])]
    ((score, square, _),) = score_sums(parts, models, 0.6, 1.2)
    assert float(Fraction(score, 2**20)) == pytest.approx(np.clip(r / 0.6, -1, 1).sum(), abs=0.02)
    assert float(Fraction(square, 4**20)) == pytest.approx((np.clip(r / 0.6, -1, 1) ** 2).sum(), abs=0.02)
