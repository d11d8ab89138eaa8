"""The published noise of limited matching against what one outcome can move."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.numerics.matching import matching_coefficients
from counterveil.numerics.products import linear_form
from counterveil.published.matching import CapacityMatching

TREATED = np.array([True] * 3 + [False] * 4)
SCORE = np.array([0.40, 0.41, 0.9, 0.40, 0.40, 0.41, 0.41])


def published(treated, score, neighbours, k):
    found = matching_coefficients(treated, score, neighbours, k * neighbours, k * neighbours)
    return CapacityMatching(Fraction(1), len(score), (k, k), linear_form(found.coefficients).largest)


def test_the_seven_row_example_loses_half_as_much_again():
    noise = published(TREATED, SCORE, 2, 1)
    assert float(noise.estimate * 7) == pytest.approx(3, rel=1e-8)
    assert noise.scales(Fraction(1)) == (Fraction(2, 7), Fraction(2, 7))
    assert float(noise.loss(Fraction(1))) == pytest.approx(1.5, rel=1e-8)


def test_one_neighbour_keeps_the_claim_while_everyone_is_matched():
    # With one neighbour every match set has one member or none: K_i <= k unless units are left out.
    for score in product((0.0, 1.0, 2.0), repeat=5):
        treated = np.array([True, False, True, False, False])
        matched = matching_coefficients(treated, np.array(score), 1, 2, 2)
        noise = published(treated, np.array(score), 1, 2)
        assert matched.unmatched == 0
        assert noise.loss(Fraction(1)) <= 1


def test_the_loss_is_the_largest_change_over_the_wider_scale():
    for k, (treated, score) in enumerate(
        product(product((False, True), repeat=6), product((0.0, 1.0), repeat=6))
    ):
        if k % 17 or not 0 < sum(treated) < 6:
            continue
        arm, at = np.array(treated), np.array(score)
        noise = published(arm, at, 2, 1)
        c = matching_coefficients(arm, at, 2, 2, 2).coefficients
        largest = max(abs(c @ y) for y in np.eye(6))
        assert float(noise.loss(Fraction(2))) == pytest.approx(2 * largest * 6 / 2, rel=1e-7)
