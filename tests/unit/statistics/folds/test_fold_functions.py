"""Brute force: no answer of one fold, however wild, moves the released coefficients further than claimed."""

import numpy as np
import pytest

from counterveil.data import Categories, Range, Study, public_points
from counterveil.numerics.bases import make_basis
from counterveil.settings import Cate
from counterveil.statistics.folds.kernels import PublicFunctions, coefficient_sums
from counterveil.statistics.folds.sensitivity import function_means
from counterveil.statistics.moments.functions import axes_of
from counterveil.statistics.moments.kernels.scores import TERM_BITS
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT

STUDY = Study("t", "y", (0, 1), {"x": Range(0, 1), "z": Range(-5, 5), "c": Categories(["a", "b", "c"])})
POINTS = public_points(STUDY, 200)
BASIS = make_basis(tuple(axes_of(STUDY, 2, Cate())), 2, True)
PROJECTION = PublicFunctions.of(BASIS.features(POINTS))
BOUND, FOLDS = 3.0, 3


def answers():
    """Return values of functions at the points: constant, jumping, along a function, random, not finite, huge."""
    generator = np.random.default_rng(0)
    columns = PROJECTION.columns
    found = [np.full(200, c) for c in (-9.0, 0.0, 0.4, 9.0, np.nan, np.inf)]
    found += [sign * 1e9 * np.sign(columns[:, j]) for j in range(PROJECTION.rank) for sign in (1, -1)]
    found += [generator.normal(scale=s, size=200) for s in (0.1, 3.0, 1e6) for _ in range(20)]
    return found


def released(values):
    rest = [PROJECTION.coefficients(np.full(200, c), BOUND) for c in (0.5, -0.2)]
    totals, squares = coefficient_sums([PROJECTION.coefficients(values, BOUND), *rest])
    one = 2.0**-TERM_BITS / FOLDS
    return np.array(
        [one * total for total in totals] + [float(SQUARE_WEIGHT) * one * 2.0**-TERM_BITS * squares]
    )


def test_no_answer_of_a_fold_moves_the_means_further_than_claimed():
    values = np.array([released(one) for one in answers()])
    largest = max(float(np.linalg.norm(values - one, axis=1).max()) for one in values)
    claim = float(function_means(FOLDS))
    assert 0.9999 * claim < largest <= claim * (1 + 1e-9)


def test_coefficients_are_never_longer_than_one():
    for values in answers():
        found = PROJECTION.coefficients(values, BOUND)
        assert np.isfinite(found).all()
        assert np.linalg.norm(found) <= 1 + 1e-12


def test_functions_of_the_basis_come_back_as_they_are():
    features = BASIS.features(POINTS)
    weights = np.random.default_rng(1).normal(size=BASIS.size) / 4
    values = features @ weights
    bound = 2 * float(np.abs(values).max())
    found = PROJECTION.coefficients(values, bound)
    assert bound * (PROJECTION.answers(features) @ found) == pytest.approx(values, abs=1e-9)
