"""Brute force: no exchange of a pair moves the sums of features further than claimed, in exact numbers."""

from fractions import Fraction

import numpy as np
import pytest
from tests.unit.statistics.pairs.small_pairs import exchanged, exchanged_arms, largest, squared, table

from counterveil.data import OUTCOME_STEPS
from counterveil.statistics.outcome_place import OUTCOME_BITS, WHOLE, Place
from counterveil.statistics.pairs import effect as module
from counterveil.statistics.pairs.effect import FEATURE_BITS, arm_sums, ladder, pair_sensitivity, pair_sums

TABLE = table()
RUNGS = ladder(TABLE)
PLACES = {
    "whole": WHOLE,
    "narrow": Place(OUTCOME_STEPS // 3 + 5, 1_234_567),
    "one step": Place(OUTCOME_STEPS // 2, 1),
    "beyond": Place(0, OUTCOME_STEPS),
}


def farthest(rows, place, rows_tried, known=False):
    """Return the largest squared change over all exchanges, by row."""
    return [
        largest([pair_sums(rows, t, y, place, known) for t, y in exchanged(TABLE, row)], squared)
        for row in rows_tried
    ]


@pytest.mark.parametrize("place", PLACES)
def test_no_exchange_moves_the_sums_further_than_claimed(place):
    rows = RUNGS[-1]
    claim = pair_sensitivity(rows) ** 2
    longest = int((rows.steps**2).sum(axis=1).argmax())
    found = farthest(rows, PLACES[place], range(0, TABLE.rows, 8))
    assert max(found) <= claim
    assert farthest(rows, PLACES[place], [longest])[0] > claim * Fraction(99, 100)
    # Without treatments, outcomes that lie on one side of the place move half as far.
    attained = claim * Fraction(24 if place == "beyond" else 99, 100)
    assert attained < farthest(rows, PLACES[place], [longest], True)[0] <= claim


def test_every_set_of_features_has_its_bound_and_attains_it():
    assert [set(rows.order.tolist()) for rows in RUNGS] == [{0, 1}, {0, 1, 2}, {0, 1, 2, 3}]
    for rows in RUNGS:
        longest = int((rows.steps**2).sum(axis=1).argmax())
        claim = pair_sensitivity(rows) ** 2
        found = farthest(rows, WHOLE, [longest])[0]
        # The root is rounded up to a multiple of 2^-64.
        assert claim * (1 - Fraction(1, 2**40)) <= found <= claim


def test_a_heavier_treatment_would_break_the_bound(monkeypatch):
    monkeypatch.setattr(module, "TREATED", Fraction(182, 128))
    rows = RUNGS[-1]
    longest = int((rows.steps**2).sum(axis=1).argmax())
    assert farthest(rows, WHOLE, [longest])[0] > pair_sensitivity(rows) ** 2


def test_outcomes_are_clipped_and_rounded_to_the_nearest():
    place = Place(1000, 300)
    outcome = np.array([0, 700, 1000, 1001, 1150, 1300, 9000])
    exact = np.clip((outcome - 1000) / 300, -1, 1) * 2**OUTCOME_BITS
    found = place.fixed(outcome)
    assert np.abs(found - exact).max() <= 0.5
    assert found.min() == -(2**OUTCOME_BITS)
    assert found.max() == 2**OUTCOME_BITS


def test_sums_are_those_of_weighted_features():
    rows = RUNGS[1]
    n, p = rows.z.shape
    sums = np.array([float(value) for value in pair_sums(rows, TABLE.treated, TABLE.outcome, WHOLE)])
    y, t = TABLE.outcome / 2**23 - 1, TABLE.treated.astype(float)
    exact = np.concatenate(
        [(rows.weighted * rows.scale).T @ pair for pair in (181 / 128 * t, t * y, (1 - t) * y)]
    )
    assert sums == pytest.approx(exact, abs=n * 2.0**-FEATURE_BITS)
    assert len(sums) == 3 * p


def test_features_are_white_and_no_row_is_longer_than_its_bound():
    for rows in RUNGS:
        n = len(rows.z)
        assert rows.gram(np.ones(n)) / n == pytest.approx(np.eye(rows.z.shape[1]), abs=1e-9)
        squares = [sum(int(step) ** 2 for step in row) for row in rows.steps]
        assert max(squares) <= (rows.length * 2**FEATURE_BITS) ** 2
        assert rows.weight.max() <= 1


def test_private_columns_do_not_move_features():
    other = table(seed=0)
    flipped = type(other).attach(
        {
            "x": other.covariates["x"],
            "b": other.covariates["b"].astype(int),
            "t": 1 - other.treated.astype(int),
            "y": np.zeros(other.rows),
        },
        other.study,
    )
    for one, changed in zip(RUNGS, ladder(flipped), strict=True):
        assert np.array_equal(one.steps, changed.steps)


def test_no_exchange_moves_the_sums_of_three_arms_further_than_claimed():
    rows = RUNGS[0]
    claim, longest = pair_sensitivity(rows) ** 2, int((rows.steps**2).sum(axis=1).argmax())
    found = [
        largest([arm_sums(rows, arm, 3, y, WHOLE) for arm, y in exchanged_arms(TABLE, row)], squared)
        for row in (0, 17, longest)
    ]
    assert claim * (1 - Fraction(1, 2**40)) <= max(found) == found[-1] <= claim
