from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from counterveil.mechanisms import RandomizedResponse, SeededNoise, SystemNoise
from counterveil.mechanisms.response import _limits

SETTINGS = [(Fraction(1, 4), 2), (Fraction(1), 2), (Fraction(1), 5), (Fraction(4), 40)]


def largest_loss(probabilities):
    """Return the largest log-ratio over true values and released values."""
    logs = np.log(probabilities)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


@pytest.mark.parametrize(("epsilon", "categories"), SETTINGS)
def test_the_largest_loss_is_exactly_the_claim(epsilon, categories):
    probabilities = RandomizedResponse(epsilon, categories).probabilities
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert largest_loss(probabilities) == pytest.approx(float(epsilon), abs=1e-12)


@pytest.mark.parametrize(("epsilon", "categories"), SETTINGS)
def test_a_third_of_the_lies_breaks_the_claim(epsilon, categories):
    third = RandomizedResponse(epsilon, categories).probabilities / 3
    np.fill_diagonal(third, 0)
    np.fill_diagonal(third, 1 - third.sum(axis=1))
    assert largest_loss(third) > 1.2 * epsilon


@pytest.mark.parametrize(("epsilon", "categories"), SETTINGS)
def test_responses_follow_the_law(epsilon, categories):
    mechanism = RandomizedResponse(epsilon, categories)
    values = np.full(100_000, categories - 1)
    counts = np.bincount(mechanism.release_many(values, SeededNoise(3)), minlength=categories)
    assert stats.chisquare(counts, 100_000 * mechanism.probabilities[-1]).pvalue > 1e-3


@pytest.mark.parametrize(("epsilon", "categories"), SETTINGS)
def test_a_word_on_a_limit_is_decided_by_further_bits(epsilon, categories, scripted):
    mechanism = RandomizedResponse(epsilon, categories)
    for j, limit in enumerate(_limits(mechanism.epsilon, categories).tolist()):
        for word, further, expected in [
            (limit - 1, 0, j),
            (limit, 0, j),
            (limit, 2**64 - 1, j + 1),
            (limit + 1, 0, j + 1),
        ]:
            source = scripted([word], further)
            assert mechanism.release(0, source) == expected
            assert (source.asked > 0) == (word == limit)


def test_values_outside_the_categories_are_clamped_and_not_refused():
    mechanism = RandomizedResponse(30, 3)
    assert mechanism.release_many([-5, 0, 2, 99], SystemNoise()).tolist() == [0, 0, 2, 2]


def test_an_enormous_epsilon_tells_the_truth():
    assert RandomizedResponse(1000, 3).release_many([0, 1, 2], SeededNoise(1)).tolist() == [0, 1, 2]
