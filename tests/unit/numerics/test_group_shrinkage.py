"""Shrinkage by groups: strong groups stay, empty ones vanish, and limits hold the truth."""

import numpy as np
import pytest

from counterveil.numerics.shrinkage import Normal, Prior, shrink, upper_variances


def problem(noise, seed=0):
    rng = np.random.default_rng(seed)
    theta = np.concatenate(([1.0], [0.5, -0.4, 0.3], np.zeros(6)))
    y = theta + noise * rng.normal(size=10)
    prior = Prior(np.ones(10), np.array([-1, 0, 0, 0, 1, 1, 1, 2, 2, 2]), np.zeros(3, dtype=np.intp))
    return theta, Normal.of(np.eye(10), y, noise**2 * np.eye(10)), prior


def test_response_says_what_is_left_of_the_truth():
    _, normal, prior = problem(0.3)
    found = shrink(normal, prior)
    variances = prior.variances(found.scales)
    expected = variances / (variances + 0.09)
    assert np.diag(found.response) == pytest.approx(expected)
    assert np.diag(found.posterior) == pytest.approx(variances * 0.09 / (variances + 0.09))


def test_upper_limits_exceed_the_scales_and_reach_hidden_signals():
    reached = []
    for seed in range(20):
        theta, normal, prior = problem(0.5, seed)
        found = shrink(normal, prior)
        upper = upper_variances(normal, prior, found.scales, 0)
        assert (upper[1:] >= prior.variances(found.scales)[1:] - 1e-12).all()
        reached.append(upper[1] >= np.mean(theta[1:4] ** 2))
    assert np.mean(reached) > 0.7


def test_likelihood_is_that_of_the_normal_law():
    _, normal, prior = problem(0.2)
    y = normal.score * 0.04

    def exact(v):
        return -0.5 * float((y**2 / (v + 0.04)).sum() + np.log(v + 0.04).sum())

    one, two = prior.variances(np.array([0.1, 0.2, 0.3])), prior.variances(np.array([0.3, 0.02, 0.1]))
    assert normal.likelihood(one) - normal.likelihood(two) == pytest.approx(exact(one) - exact(two))
