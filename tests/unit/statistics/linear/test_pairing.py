"""Pairs of similar rows within an arm."""

import numpy as np
import pytest

from counterveil.statistics.linear.kernels.pairing import (
    _STEP_BITS,
    CELL,
    _in_steps,
    covariate_pairs,
    score_pairs,
)


def arms_of(n, seed=0):
    arm = np.random.default_rng(seed).random(n) < 0.3
    arm[:2], arm[-2:] = True, False
    return arm


def pairs_of(kind, arm, features):
    return score_pairs(arm, features[:, 0]) if kind == "score" else covariate_pairs(arm, features)


@pytest.mark.parametrize("kind", ["score", "covariates"])
@pytest.mark.parametrize("n", [4, 5, 7, 63, 64, 65, 1001])
def test_every_row_is_in_a_pair_of_its_arm_and_few_in_two(kind, n):
    arm = arms_of(n)
    first, second = pairs_of(kind, arm, np.random.default_rng(n).normal(size=(n, 3)))
    assert (arm[first] == arm[second]).all()
    assert (first != second).all()
    count = np.bincount(np.concatenate([first, second]), minlength=n)
    assert count.min() == 1
    assert count.max() <= 2
    # At most one row of an arm, or of a cell of it, is left over.
    spare = 2 if kind == "score" else 2 + 2 * n // CELL
    assert (count == 2).sum() <= spare


@pytest.mark.parametrize("kind", ["score", "covariates"])
def test_ties_and_constants_are_no_trouble(kind):
    n = 500
    arm = arms_of(n)
    features = np.round(np.random.default_rng(3).random((n, 2)) * 2)
    features[:, 1] = 1.0
    first, second = pairs_of(kind, arm, features)
    assert len(np.unique(np.concatenate([first, second]))) == n
    # Ties: all but the pairs that straddle two values are equal.
    assert (features[first, 0] != features[second, 0]).sum() <= (4 if kind == "score" else n // CELL * 2)


def test_neighbours_on_the_score_are_paired():
    first, second = score_pairs(np.zeros(6, int), np.array([0.1, 0.9, 0.5, 0.2, 0.6, 0.8]))
    assert {frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)} == {
        frozenset((0, 3)),
        frozenset((2, 4)),
        frozenset((5, 1)),
    }


def test_several_arms_are_kept_apart():
    arm = np.repeat([0, 1, 2], [5, 4, 7])
    first, second = score_pairs(arm, np.arange(16.0))
    assert (arm[first] == arm[second]).all()
    assert len(first) == 3 + 2 + 4


def test_pairs_on_covariates_are_closer_than_chance_and_than_the_score():
    rng = np.random.default_rng(5)
    features = rng.random((4000, 4))
    arm = rng.random(4000) < 0.5

    def gap(pairs):
        return ((features[pairs[0]] - features[pairs[1]]) ** 2).sum(axis=1).mean()

    close, by_score = gap(covariate_pairs(arm, features)), gap(score_pairs(arm, features @ np.ones(4)))
    assert close < 0.2 * by_score
    assert by_score < 4 * 2 / 12  # two independent rows


@pytest.mark.parametrize("width", [1, 4, 300])
def test_steps_are_whole_and_sums_of_their_products_exact(width):
    features = np.random.default_rng(width).normal(size=(40, width)) * 1e-3
    whole = _in_steps(features).astype(float)
    assert (whole == np.rint(whole)).all()
    assert np.abs(whole).max() <= 2**_STEP_BITS
    assert 4 * width * np.abs(whole).max() ** 2 < 2**53
    scale = np.abs(whole).max() / np.abs(features).max()
    np.testing.assert_allclose(whole, features * scale, atol=1.0)


def test_the_closest_two_of_a_cell_come_first():
    x = np.array([0.0, 10.0, 1.0, 40.0, 12.0])
    first, second = covariate_pairs(np.zeros(5, int), x[:, None])
    assert (first.tolist(), second.tolist()) == ([0, 1, 3], [2, 4, 4])
