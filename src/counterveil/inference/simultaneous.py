"""Intervals that hold for several numbers at once: Sidak's level, and bands of curves.

    m numbers:  each at level L^(1/m), so that all cover together with probability L;  p_adj = 1 - (1 - p)^m
    a curve:    f(x)'b -+ c sd(x),  sd(x)^2 = f(x)' V f(x)

with b normal weights of covariance V, f(x) public features of a row, and c the quantile of the largest of
|f(x)'(b - E b)| / sd(x) over the rows.

- `level_of_each`, `adjusted_p`: contrasts of several arms with one reference depend on each other through it.
  Sidak's level is valid for them where errors of arms are independent: given the reference's error, all
  coverages fall with its size, so that they are positively associated. Proof:
  `inference/simultaneous.proof.md`.
- `simultaneous`: c from a fixed set of public normal draws; never below the quantile of one point, never
  beyond Scheffe's bound, the root of the chi-squared quantile, which holds at all x whatever the draws are.

In: released weights, their covariance, a level. Out: a level, a p-value, or c as a number of standard
deviations. This is arithmetic on released and public numbers; privacy does not depend on it, nor on the
number of draws.
"""

# Proof: simultaneous.proof.md

from __future__ import annotations

from math import expm1, log1p

import numpy as np
from scipy.special import chdtri, ndtri

from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import public_normals

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
    positive = values > _NEGLIGIBLE * max(float(values[-1]), 0.0)
    root = vectors[:, positive] * np.sqrt(values[positive])
    directions = rows @ root
    size = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    directions = directions[size > 0] / size[size > 0, None]
    pointwise_width = pointwise(level)
    if not len(directions):
        return pointwise_width
    largest = np.abs(public_normals(_DRAWS, directions.shape[1], 1) @ directions.T).max(axis=1)
    scheffe = float(np.sqrt(chdtri(int(positive.sum()), 1 - level)))
    return min(max(pointwise_width, float(np.quantile(largest, level))), scheffe)


def level_of_each(level: float, count: int) -> float:
    """Return the level at which each of `count` contrasts must hold for all to hold together (Šidák)."""
    # Rounded to one, a level would ask for everything: the largest double below it is as near as levels get.
    return min(float(level ** (1.0 / count)), 1.0 - 2.0**-53)


def adjusted_p(p: float, count: int) -> float:
    """Return the p-value of one of `count` contrasts, adjusted for looking at all of them (Šidák)."""
    # 1 - (1 - p)^count without losing the digits of a small p.
    return 1.0 if p >= 1 else -expm1(count * log1p(-p))
