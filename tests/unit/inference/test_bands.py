"""Bands: between one point and all linear combinations, with the coverage they claim."""

import numpy as np
import pytest
from scipy.special import chdtri

from counterveil.inference.uncertainty import deviations, pointwise, simultaneous
from counterveil.numerics.bases import Axis, make_basis

X = np.linspace(0, 1, 150)
FEATURES = make_basis((Axis("x", "legendre", 4),), 4, True).features({"x": X})


def covariance(size, seed=1):
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T / size


def test_one_point_needs_the_usual_factor_and_many_need_more():
    c = covariance(5)
    assert pointwise(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert simultaneous(FEATURES[:1], c, 0.95) == pytest.approx(1.96, abs=0.06)
    assert 2.2 < simultaneous(FEATURES, c, 0.95) <= chdtri(5, 0.05) ** 0.5


def test_bands_cover_at_once_as_often_as_they_claim():
    c = covariance(5, 2)
    factor, sd = simultaneous(FEATURES, c, 0.9), deviations(FEATURES, c)
    draws = np.random.default_rng(3).multivariate_normal(np.zeros(5), c, 4000)
    inside = (np.abs(draws @ FEATURES.T) <= factor * sd).all(axis=1).mean()
    assert inside == pytest.approx(0.9, abs=0.02)
