"""Brute force for every part of the stratified contrast."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.numerics.arms import arm_totals
from counterveil.numerics.products import LENGTH_ERROR, clipped_sum, projected_steps
from counterveil.statistics.histogram import COUNTS_L1
from counterveil.statistics.moments.matching_sensitivity import (
    ClippedDirection,
    ScoreMoments,
    StratifiedContrast,
)
from counterveil.statistics.moments.score_strata import moments

# (stratum, treated, outcome)
RECORDS = tuple(product((0, 1), (False, True), (0, 1, 2)))
WIDTH, ONE = Fraction(2), Fraction(1)


def statistics(records, contrast):
    strata, treated, outcome = (np.array(column) for column in zip(*records, strict=True))
    cells = [arm_totals(treated[strata == k], outcome[strata == k].astype(np.int64)) for k in (0, 1)]
    counts = tuple(a.count for arms in cells for a in (arms.treated, arms.control))
    return counts, *moments(cells, ONE, contrast)


@pytest.mark.parametrize("centres", [(ONE, ONE), (Fraction(0), WIDTH), (Fraction(1, 2), Fraction(3, 2))])
@pytest.mark.parametrize("weights", [((1, 3), (2, 1)), ((2, 2), (2, 2)), ((1, 0), (0, 5))])
def test_no_replacement_exceeds_the_claim(centres, weights):
    treated, control = (tuple(map(Fraction, row)) for row in weights)
    contrast = StratifiedContrast(WIDTH, treated, control, *centres)
    n = 2
    known = {records: statistics(records, contrast) for records in product(RECORDS, repeat=n)}
    worst = [0, Fraction(0), Fraction(0)]
    for records, (counts, first, second) in known.items():
        for place, record in product(range(n), RECORDS):
            other = known[(*records[:place], record, *records[place + 1 :])]
            moved = sum(abs(a - b) for a, b in zip(counts, other[0], strict=True))
            changes = (moved, abs(first - other[1]), abs(second - other[2]))
            worst = [max(pair) for pair in zip(worst, changes, strict=True)]
    assert worst[0] == COUNTS_L1
    assert worst[1] == contrast.total
    assert worst[2] <= contrast.squares
    if centres == (ONE, ONE):
        # psi = 0 is on the grid only where the centre is.
        assert worst[2] == contrast.squares


def test_rows_of_the_direction_are_never_longer_than_claimed():
    rng = np.random.default_rng(0)
    for columns, length, bits in ((1, 0.3, 20), (7, 1.0, 20), (60, 2.0, 8), (60, 1e-3, 20)):
        z = rng.uniform(-0.5, 0.5, (200, columns))
        factor = rng.uniform(-1, 1, 200)
        claim = ClippedDirection(Fraction(length), Fraction(LENGTH_ERROR)).total
        for row in range(200):
            steps = clipped_sum(z[row : row + 1], factor[row : row + 1], length, bits)
            squared = sum(Fraction(s) ** 2 for s in steps) / 4**bits
            assert 4 * squared <= claim**2


def test_direction_is_the_sum_of_its_rows_and_reaches_the_claim():
    z = np.array([[0.5, 0.5], [0.5, 0.5], [-0.5, 0.1]])
    factor = np.array([1.0, -1.0, 0.5])
    whole = clipped_sum(z, factor, 0.4, 20)
    parts = [clipped_sum(z[i : i + 1], factor[i : i + 1], 0.4, 20) for i in range(3)]
    assert whole == [sum(column) for column in zip(*parts, strict=True)]
    apart = [(a - b) / 2**20 for a, b in zip(parts[0], parts[1], strict=True)]
    claim = float(ClippedDirection(Fraction(2, 5), Fraction(0)).total)
    assert np.linalg.norm(apart) == pytest.approx(claim, rel=1e-5)


@pytest.mark.parametrize("centre", [-1, 0, 1])
def test_location_and_distance_of_scores(centre):
    n, scores = 3, (-2, -1, 0, 1, 2)
    bounds = ScoreMoments(n, Fraction(2))
    location = distance = Fraction(0)
    for rest, a, b in product(product(scores, repeat=n - 1), scores, scores):
        one, two = (*rest, a), (*rest, b)
        location = max(location, abs(Fraction(sum(one) - sum(two), n)))
        distance = max(
            distance, abs(Fraction(sum(abs(s - centre) for s in one) - sum(abs(s - centre) for s in two), n))
        )
    assert location == bounds.location
    assert distance == bounds.distance(Fraction(centre))


def test_projections_are_clipped_and_on_the_grid():
    z = np.array([[3.0, 4.0], [0.25, 0.0], [-3.0, -4.0]])
    assert projected_steps(z, np.array([0.6, 0.8]), 1.0, 4).tolist() == [16, 2, -16]
