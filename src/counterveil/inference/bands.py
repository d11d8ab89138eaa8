"""Intervals for a function in a finite basis: at each point, and at all points together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from counterveil.kernels.public_numbers import public_normals

Floats = NDArray[np.float64]

_DRAWS = 4000  # public normal vectors that the width of a band is read off
# Directions that hold less than this part of the variance are left to Scheffé's bound, not drawn.
_NEGLIGIBLE = 1e-6
# Points beyond which the largest deviation is looked for on an evenly spaced part of them.
_MOST_POINTS = 2000


def deviations(features: Floats, covariance: Floats) -> Floats:
    """Return the standard deviation of features @ w at every row, for weights w of this covariance."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ij->i", features @ covariance, features), 0.0)))


def pointwise(level: float) -> float:
    """Return how many standard deviations an interval at one point takes."""
    return -float(ndtri((1 - level) / 2))


def simultaneous(features: Floats, covariance: Floats, level: float) -> float:
    """Return how many standard deviations hold at all rows at once, with this probability.

    The quantile of the largest standardised deviation over the rows, from a fixed set of normal draws; never
    below that of one point nor above Scheffé's bound for all linear combinations.
    """
    rows = features[:: max(1, -(-len(features) // _MOST_POINTS))]
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    kept = values > _NEGLIGIBLE * max(float(values[-1]), 0.0)
    root = vectors[:, kept] * np.sqrt(values[kept])
    directions = rows @ root
    size = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    directions = directions[size > 0] / size[size > 0, None]
    one = pointwise(level)
    if not len(directions):
        return one
    largest = np.abs(public_normals(_DRAWS, directions.shape[1], 1) @ directions.T).max(axis=1)
    scheffe = float(np.sqrt(chdtri(int(kept.sum()), 1 - level)))
    return min(max(one, float(np.quantile(largest, level))), scheffe)
