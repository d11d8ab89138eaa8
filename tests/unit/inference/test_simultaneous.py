"""Levels of several contrasts: joint coverage is at least what is claimed, whatever the shared noise."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from counterveil.inference.uncertainty import NoiseSum, adjusted_p, half_width, level_of_each, tail
from counterveil.mechanisms import Gaussian, Laplace, Staircase


def test_levels_and_p_values_agree():
    each = level_of_each(0.95, 3)
    assert 1 - 0.05 / 3 > each > 0.95
    assert adjusted_p(1 - each, 3) == pytest.approx(0.05)
    assert level_of_each(0.9, 1) == pytest.approx(0.9)
    assert adjusted_p(0.2, 1) == pytest.approx(0.2)


# Every two of the three meet.
@pytest.mark.parametrize(
    ("distribution", "shared", "contrasts"),
    [
        (distribution, shared, (2, 4, 9)[(one + other) % 3])
        for one, distribution in enumerate([Laplace, Staircase, Gaussian])
        for other, shared in enumerate([0.1, 1.0, 10.0])
    ],
)
def test_joint_coverage_by_integration_over_the_shared_error(distribution, contrasts, shared):
    own, reference = distribution(1, 1), distribution(str(shared), 1)
    half = half_width(
        np.hypot(0.5, 0.5 * shared), NoiseSum(own, reference), 1 - level_of_each(0.95, contrasts)
    )
    nodes, weights = hermegauss(24)
    noise = reference.quantile((np.arange(400) + 0.5) / 400)
    joint = total = 0.0
    grid = np.linspace(0, 0.5 * shared * nodes.max() + noise.max(), 201)
    covered = np.array([1 - tail(half - t, 0.5, own) - tail(half + t, 0.5, own) for t in grid])
    for z, w in zip(nodes, weights, strict=True):
        shift = np.abs(0.5 * shared * z + noise)
        joint += w * float((np.interp(shift, grid, covered) ** contrasts).mean())
        total += w
    # A little below the level is the coarseness of the integral; Bonferroni's half-width would be longer.
    assert joint / total >= 0.95 - 2e-3
    assert half < half_width(np.hypot(0.5, 0.5 * shared), NoiseSum(own, reference), 0.05 / contrasts)
