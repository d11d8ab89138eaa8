"""Brute force: no exchange of a record moves the released moments further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import NotingGate, largest_change, records

from counterveil.data.features import counted_features
from counterveil.statistics.moments.orthogonal import release_moments
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT, record_moments

GRID = list(product((-1.0, -0.24, 0.3, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.3, 1.0)))


@pytest.mark.parametrize("degree", [1, 2])
def test_no_exchange_exceeds_the_claim(degree):
    values = []
    for record in GRID:
        gate, rows = NotingGate(), records(record, degree=degree)
        release_moments(gate, rows, counted_features(rows.features))
        values.append(gate.values["centre"])
    claim = float(gate.sensitivity["centre"])
    worst = largest_change(values)
    assert worst <= claim * (1 + 1e-12)
    if degree == 1:
        # Numbers, two labels, two flags, treatment and outcome all go from end to end.
        assert worst == pytest.approx(claim, rel=1e-4)


def test_without_features_only_treatment_and_outcome_count():
    values = []
    for t, y in product((0, 1), (-1.0, -0.24, 0.0, 0.5, 1.0)):
        gate = NotingGate()
        release_moments(gate, records((0.0, 0, "u", t, y)), 0)
        values.append(gate.values["centre"])
    assert len(values[0]) == 3
    assert largest_change(values) == pytest.approx(float(gate.sensitivity["centre"]), rel=1e-6)


def test_the_square_is_free_and_no_heavier_one_would_be():
    a = np.linspace(-1, 1, 401)
    pair = (a[:, None] - a) ** 2 * (1 + float(SQUARE_WEIGHT) ** 2 * (a[:, None] + a) ** 2)
    assert pair.max() == pytest.approx(4.0, abs=1e-9)
    heavier = (a[:, None] - a) ** 2 * (1 + 1.67**2 * (a[:, None] + a) ** 2)
    assert heavier.max() > 4.0


def test_the_weight_enters_twice():
    assert record_moments(10, 0, Fraction(1)) ** 2 == pytest.approx(8 / 100)
    assert record_moments(10, 3, Fraction(1, 2)) ** 2 == pytest.approx(14 / 100)
