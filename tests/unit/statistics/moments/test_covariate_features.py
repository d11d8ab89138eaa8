"""Covariates of all kinds as columns of numbers."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import covariate_features


def test_several_kinds_of_covariates_become_features():
    frame = {
        "t": [1, 0, 1, 0, 1, 0],
        "y": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "age": [20, 30, 40, 50, 60, 70],
        "smoker": [1, 0, 0, 0, 1, 1],
        "region": ["n", "s", "n", "s", "s", "s"],
        "site": ["a"] * 6,
    }
    domains = {
        "age": cv.Range(0, 100),
        "smoker": cv.Binary(),
        "region": cv.Categories(["n", "s"]),
        "site": cv.Categories(["a", "b"]),
    }
    table = Table.attach(frame, cv.Study("t", "y", (0, 1), domains))
    features = covariate_features(table)
    assert features.names == ("age", "smoker", "region=n", "region=s", "site=a", "site=b")
    np.testing.assert_allclose(features.values.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(features.values).max(axis=0), [1, 1, 1, 1, 0, 0])
    assert np.corrcoef(features.values[:, 0], frame["age"])[0, 1] == pytest.approx(1)
