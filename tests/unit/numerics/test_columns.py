"""Exact arm totals."""

import numpy as np
import pytest

from counterveil.numerics.columns import Arm, arm_totals, balance, effective_size, overlap_counts


@pytest.mark.parametrize("n", [2, 7, 8191, 8192, 8193, 50_000])
def test_totals_equal_python_integers(n):
    rng = np.random.default_rng(n)
    treated = rng.random(n) < 0.4
    outcome = rng.integers(0, 2**24 + 1, n)
    arms = arm_totals(treated, outcome)
    for arm, chosen in ((arms.treated, treated), (arms.control, ~treated)):
        values = [int(y) for y in outcome[chosen]]
        assert arm == Arm(len(values), sum(values), sum(y * y for y in values))
    assert arms.count == n


def test_largest_values_do_not_overflow():
    n = 100_000
    arms = arm_totals(np.ones(n, dtype=bool), np.full(n, 2**24, dtype=np.int64))
    assert arms.treated.squares == n * 2**48
    assert arms.control == Arm(0, 0, 0)


def test_differences_and_ratios_are_those_of_the_textbook():
    rng = np.random.default_rng(1)
    X, treated = rng.normal(size=(500, 3)), rng.random(500) < 0.3
    found = balance(X, treated)
    one, zero = X[treated], X[~treated]
    scale = np.sqrt((one.var(axis=0, ddof=1) + zero.var(axis=0, ddof=1)) / 2)
    np.testing.assert_allclose(found.difference, (one.mean(axis=0) - zero.mean(axis=0)) / scale, rtol=1e-12)
    np.testing.assert_allclose(
        found.variance_ratio, one.var(axis=0, ddof=1) / zero.var(axis=0, ddof=1), rtol=1e-12
    )


def test_constant_columns_are_balanced_or_infinitely_apart():
    treated = np.array([True, True, False, False])
    X = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    found = balance(X, treated)
    assert found.difference.tolist() == [0.0, np.inf]
    assert found.variance_ratio.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("weights", "expected"), [([1, 1, 1, 1], (2, 2)), ([1, 0, 3, 1], (1, 1.6)), ([0, 0, 5, 0], (0, 1))]
)
def test_the_effective_size_counts_equal_weights_whole(weights, expected):
    treated = np.array([True, True, False, False])
    assert effective_size(treated, np.array(weights, float)) == pytest.approx(expected)


def test_overlap_counts_cover_every_score_once():
    treated = np.array([True, False, True, False, True, False])
    score = np.array([0.0, 0.5, 0.5, 1.0, -0.2, 1.3])
    one, zero = overlap_counts(treated, score, np.array([0.0, 0.5, 1.0]))
    assert one.tolist() == [2, 1]
    assert zero.tolist() == [0, 3]
