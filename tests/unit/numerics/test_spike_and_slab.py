"""Weights of which most groups may be zero: groups that matter are kept, the others drawn to zero."""

import numpy as np
import pytest

from counterveil.numerics.shrinkage import spike_and_slab

SCALES = (0.03, 0.3, 3.0)


def observed(truth, sd, seed=0):
    rng = np.random.default_rng(seed)
    information = np.eye(len(truth)) / sd**2
    return information, information @ (truth + sd * rng.normal(size=len(truth)))


def test_few_groups_of_many_are_found():
    truth = np.zeros(31)
    truth[[0, 3, 7]] = 2.0, 1.8, -2.5
    groups = np.arange(31)
    information, score = observed(truth, 0.3)
    found = spike_and_slab(information, score, groups, np.ones(31), SCALES)
    assert found.included[[3, 7]] == pytest.approx([1, 1], abs=0.05)
    others = np.setdiff1d(np.arange(1, 31), [3, 7])
    assert found.included[others].mean() < 0.2
    measured = score * 0.3**2
    assert np.sum((found.weights - truth) ** 2) < 0.4 * np.sum((measured - truth) ** 2)
    # Free weights stay as measured.
    assert found.weights[0] == pytest.approx(measured[0])


def test_one_scale_without_a_spike_is_a_ridge_regression():
    """With evidence beyond doubt the spike is out, and one scale gives the posterior mean of a normal prior."""
    truth = np.array([0.0, 5.0, -4.0])
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 3))
    information = root @ root.T * 50 + 20 * np.eye(3)
    score = information @ truth
    found = spike_and_slab(information, score, np.array([1, 1, 1]), np.ones(3), (2.0,))
    expected = np.linalg.solve(information + np.eye(3) / 2.0, score)
    assert found.weights == pytest.approx(expected, rel=1e-6)
    assert found.variances == pytest.approx(np.full(3, 2.0))


def test_huge_evidence_does_not_overflow():
    information, score = observed(np.array([0.0, 1e4, 0.0]), 1e-3)
    found = spike_and_slab(information, score, np.array([0, 1, 2]), np.ones(3), SCALES)
    assert np.isfinite(found.weights).all()
    assert found.included[1] == pytest.approx(1)
