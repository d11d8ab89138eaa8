"""Brute force over small data sets: no replacement moves the fitted weights further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.propensity import fit_propensity
from counterveil.statistics.moments.sensitivity import penalised_fit

RECORDS = tuple(product((-0.5, 0.0, 0.5), (-0.5, 0.5), (False, True)))
TOLERANCE = 1e-9


def weights(records, penalty):
    x = np.array([[a, b] for a, b, _ in records])
    return fit_propensity(x, np.array([t for _, _, t in records]), penalty, TOLERANCE).weights


@pytest.mark.parametrize("penalty", [0.05, 1.0, 20.0])
def test_no_replacement_exceeds_the_claim(penalty):
    n = 3
    claim = float(penalised_fit(n, Fraction(3, 2), Fraction(penalty), Fraction(TOLERANCE)))
    known = {}
    for records in product(RECORDS, repeat=n):
        # The order of rows does not matter to a fit, so that one of each multiset is enough.
        key = tuple(sorted(records))
        if key not in known:
            known[key] = weights(key, penalty)
    worst = 0.0
    for key, own in known.items():
        for place, record in product(range(n), RECORDS):
            other = known[tuple(sorted((*key[:place], record, *key[place + 1 :])))]
            worst = max(worst, float(np.linalg.norm(own - other)))
    assert worst <= claim
    if penalty == 20.0:
        # Probabilities are near one half then, which is half of what the claim allows for.
        assert worst > 0.45 * claim


def test_tolerance_enters_twice():
    exact = penalised_fit(10, Fraction(4), Fraction(1, 2), Fraction(0))
    loose = penalised_fit(10, Fraction(4), Fraction(1, 2), Fraction(1, 100))
    assert exact == Fraction(2 * 2, 10) * 2
    assert loose - exact == 2 * Fraction(1, 100) * 2


@pytest.mark.parametrize(
    "value", [Fraction(0), Fraction(2), Fraction(9, 4), Fraction(7, 3), Fraction(1, 10**9)]
)
def test_roots_are_rounded_up(value):
    root = sqrt_up(value)
    assert root**2 >= value
    assert float(root) == pytest.approx(float(value) ** 0.5, rel=1e-12)
