"""Sums over matrices kept column by column, against plain products; and what is built on them."""

import numpy as np
import pytest

from counterveil.numerics import columns as column_products
from counterveil.numerics.arms import balances
from counterveil.numerics.columns import column_balances
from counterveil.numerics.propensity import fit_propensity
from counterveil.statistics.linear.spline_score import chances


@pytest.mark.parametrize("width", [1, 3, 4, 9])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_over_rows_are_those_of_plain_products(width, kind):
    rng = np.random.default_rng(width)
    columns = rng.normal(size=(width, 2000)).astype(kind)
    direction, weights, part = (
        rng.normal(size=width),
        rng.normal(size=1500),
        columns[:, 300:1800].astype(float),
    )
    np.testing.assert_allclose(
        column_products.scores(columns, 300, 1800, direction), direction @ part, atol=1e-11
    )
    np.testing.assert_allclose(
        column_products.totals(columns, 300, 1800, weights), part @ weights, atol=1e-10
    )
    np.testing.assert_allclose(column_products.products(columns, 300, 1800), part @ part.T, atol=1e-9)
    rough = column_products.products(columns, 300, 1800, np.float32)
    np.testing.assert_allclose(rough, part @ part.T, atol=1e-2)
    np.testing.assert_array_equal(rough, rough.T)


def test_balance_is_that_of_the_columns_written_out():
    rng = np.random.default_rng(3)
    treated, weights = rng.random(400) < 0.4, rng.random(400)
    raw = np.array([rng.normal(50, 3, 400), rng.integers(0, 3, 400), np.full(400, 0.1)])
    wide = np.column_stack([raw[0] - raw[0].mean(), *(raw[1] == code for code in range(3)), np.zeros(400)])
    for own, expected in zip(
        column_balances(raw, (0, 3, 0), treated, weights), balances(wide, treated, weights), strict=True
    ):
        np.testing.assert_allclose(own.difference, expected.difference, atol=1e-12)
        np.testing.assert_allclose(own.variance_ratio, expected.variance_ratio, rtol=1e-10)


def test_the_quick_score_is_that_of_the_exact_fit():
    rng = np.random.default_rng(5)
    columns = rng.uniform(-1, 1, (6, 3000)).astype(np.float32)
    treated = rng.random(3000) < 1 / (1 + np.exp(-(columns[0] - columns[1] - 1)))
    exact = fit_propensity(columns.T.astype(float), treated, 1 / 3000).scores
    np.testing.assert_allclose(chances(columns, treated, 1 / 3000, 1e-6), exact, atol=1e-4)
