"""Features of the balancing weights: shares of variance, kinds of columns, and what does not matter."""

import math

import numpy as np
import pytest

from counterveil.errors import ParameterError
from counterveil.statistics.linear.kernels.balancing import FeatureShares, parted_features

KINDS = ["number", "binary", "label", "number"]


def covariates(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(50, 9, n), rng.random(n) < 0.2, rng.integers(0, 4, n), rng.exponential(size=n)]
    ).astype(float)
    scores = 1 / (1 + np.exp(-(0.03 * (X[:, 0] - 50) + X[:, 1] - 0.3 * X[:, 2])))
    return X, scores


def test_variances_are_the_shares():
    X, scores = covariates()
    features, *_ = parted_features(X, KINDS, scores, FeatureShares(0.6, 0.3, 0.1), dtype=np.float64)
    # Four covariates, the label as four indicators; two squares; the logit score.
    assert features.shape == (900, 3 + 4 + 2 + 1)
    variances = features.var(axis=0)
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-13)
    np.testing.assert_allclose(variances[:3], 0.6 / 4, rtol=1e-10)
    assert variances[3:7].sum() == pytest.approx(0.6 / 4, rel=1e-10)
    np.testing.assert_allclose(variances[7:9], 0.3 / 2, rtol=1e-10)
    assert variances[9] == pytest.approx(0.1, rel=1e-10)


def test_products_are_of_the_covariates_nearest_to_the_score():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 6))
    X[:, 4] = rng.integers(0, 3, 3000)  # labels make no products
    X[:, 5] = 2.0  # nor do constants
    scores = 1 / (1 + np.exp(-(X[:, 0] - 0.8 * X[:, 1] + 0.6 * X[:, 3] + 0.05 * X[:, 2])))
    kinds = ["number", "number", "number", "number", "label", "number"]
    shares = FeatureShares(0.0, 0.0, 0.0, products=0.3, products_of=3)
    features, *_ = parted_features(X, kinds, scores, shares, dtype=np.float64)
    Z = np.clip((X[:, :4] - X[:, :4].mean(axis=0)) / X[:, :4].std(axis=0), -3, 3)
    expected = np.column_stack([Z[:, i] * Z[:, j] for i, j in ((0, 1), (0, 3), (1, 3))])
    expected -= expected.mean(axis=0)
    np.testing.assert_allclose(features, expected * np.sqrt(0.1) / expected.std(axis=0), atol=1e-10)


def test_bends_are_cosines_of_the_rank_of_the_score_and_slow_ones_have_more():
    X, scores = covariates()
    shares = FeatureShares(0.0, 0.0, 0.0, bends=0.5, bends_count=3)
    features, *_ = parted_features(X, KINDS, scores, shares, dtype=np.float64)
    rank = (np.argsort(np.argsort(scores)) + 0.5) / len(scores)
    parts = np.array([1 / 4, 1 / 9, 1 / 16])
    np.testing.assert_allclose(features.var(axis=0), 0.5 * parts / parts.sum(), rtol=1e-10)
    for column, j in zip(features.T, (2, 3, 4), strict=True):
        assert np.corrcoef(column, np.cos(np.pi * j * rank))[0, 1] > 0.999


def test_columns_are_what_they_say():
    X, scores = covariates()
    features, *_ = parted_features(X, KINDS, scores, dtype=np.float64)

    def correlation(j, values):
        return np.corrcoef(features[:, j], values)[0, 1]

    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    assert correlation(0, X[:, 0]) == pytest.approx(1)
    assert correlation(1, X[:, 1]) == pytest.approx(1)
    assert correlation(2, X[:, 3]) == pytest.approx(1)
    for level in range(4):
        assert correlation(3 + level, X[:, 2] == level) == pytest.approx(1)
    assert correlation(7, np.clip(standard[:, 0], -3, 3) ** 2) == pytest.approx(1)
    assert correlation(8, np.clip(standard[:, 3], -3, 3) ** 2) == pytest.approx(1)
    assert correlation(9, np.log(scores / (1 - scores))) == pytest.approx(1)


@pytest.mark.parametrize(
    "shares",
    [{"linear": -0.1}, {"squares": math.nan}, {"linear": 0, "squares": 0, "score": 0}, {"strata_count": 1}],
)
def test_wrong_shares_are_refused(shares):
    with pytest.raises(ParameterError, match="CV-P265"):
        FeatureShares(**shares)
