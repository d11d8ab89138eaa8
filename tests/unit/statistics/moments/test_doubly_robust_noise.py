"""Every release of the orthogonal private effect is as noisy as it says: variances over many draws of the same rows."""

from fractions import Fraction

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import records

from counterveil.data.features import counted_features
from counterveil.numerics.products import Standard
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.moments.kernels.scores import LinearModels
from counterveil.statistics.moments.orthogonal import (
    Scaling,
    release_gram,
    release_moments,
    release_residuals,
    release_score,
)
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT

ROWS = records((0.5, 1, "u", 1, 0.3))
SIZE = ROWS.features.size
STANDARD = Standard(np.zeros(SIZE), np.ones(SIZE), 2.0, 4.0)
# Bounds and lengths that differ from one another and from one, so that none can stand for another.
SCALING = Scaling(0.4, 0.1, 0.6, 0.8, 1.5, 2.5)
NONE = np.zeros(SIZE + 1)
MODELS = LinearModels(0.5, 0.0, NONE, NONE, NONE, 0.0)
DRAWS = 400


def drawn(name, release):
    """Return many draws of one release that has the whole budget."""
    plan = Plan.split(Budget(2, "1e-3"), {name: Fraction(1)}, "gaussian", {name: Kind.VECTOR})
    source = SeededNoise(5)
    return [release(Gate(plan, source)) for _ in range(DRAWS)]


def assert_sd(found, expected, *names):
    """Assert that the named numbers vary by `expected`; entries of a vector are taken together."""
    for name in names:
        values = np.array([getattr(one, name) for one in found], dtype=float).reshape(DRAWS, -1)
        sd = np.sqrt(values.var(axis=0, ddof=1).mean())
        assert sd == pytest.approx(expected, rel=0.12), name


def test_moments():
    found = drawn("centre", lambda gate: release_moments(gate, ROWS, counted_features(ROWS.features)))
    sd, weight, square = found[0].sd, found[0].weight, float(SQUARE_WEIGHT)
    assert weight != 1
    assert_sd(found, sd, "means")
    assert_sd(found, sd / weight, "treatment", "outcome")
    assert_sd(found, sd / weight / square, "outcome_square")


def test_second_moments():
    found = drawn("gram", lambda gate: release_gram(gate, ROWS, STANDARD, SCALING))
    above = np.array([one.matrix[np.triu_indices(SIZE + 1, 1)] for one in found])
    assert np.sqrt(above.var(axis=0).mean()) == pytest.approx(found[0].entry_sd, rel=0.12)
    assert_sd(found, found[0].treatment_sd, "with_treatment")
    assert_sd(found, found[0].outcome_sd, "with_outcome")
    assert_sd(found, found[0].both_sd, "both")
    assert_sd(found, found[0].square_sd, "outcome")


def test_residuals():
    found = drawn("r", lambda gate: release_residuals(gate, "r", ROWS, STANDARD, MODELS, 0.3))
    assert_sd(found, found[0].sd, "products")
    assert_sd(found, found[0].square_sd, "square")


def test_the_score():
    found = drawn("s", lambda gate: release_score(gate, "s", ROWS, STANDARD, MODELS, 0.3, 1.2))
    assert_sd(found, found[0].score_sd, "score")
    assert_sd(found, found[0].square_sd, "square")
    assert_sd(found, found[0].information_sd, "information")
