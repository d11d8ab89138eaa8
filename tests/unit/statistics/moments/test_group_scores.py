"""Brute force: no exchange of a record moves counts, sums and squares in cells further than claimed."""

from itertools import product

import numpy as np
import pytest

from counterveil.statistics.histogram import COUNTS_L1, COUNTS_L2
from counterveil.statistics.moments.kernels.scores import TERM_BITS, cell_sums, counts_between
from counterveil.statistics.moments.sensitivity import ABSOLUTE, ABSOLUTE_MODELS, EUCLIDEAN, EUCLIDEAN_MODELS

ONE = 2.0**-TERM_BITS
SCORES = (-1.0, -0.7, -0.3, 0.0, 0.21, 0.381966, 0.5, 1.0, 3.0)
ENDS = (-1.0, 0.0, 1.0)


def released(record, weights):
    """Return the vector for one record (cell, r, d...) beside two fixed ones, through the code that adds up."""
    further = len(weights.further)
    rest = [(0, 0.4, *([0.1] * further)), (2, -0.2, *([0.3] * further))]
    cells, scores, *others = (np.array(column) for column in zip(record, *rest, strict=True))
    found = cell_sums([(cells.astype(np.int64), scores, tuple(others))], 3, further)
    parts = [float(weights.size) * np.array(found.counts), ONE * np.array(found.scores, dtype=float)]
    parts.append(float(weights.square) * ONE**2 * np.array(found.squares, dtype=float))
    parts += [
        float(weight) * ONE * np.array(total, dtype=float)
        for weight, total in zip(weights.further, found.further, strict=True)
    ]
    return np.concatenate(parts)


def changes(weights):
    grid = product((0, 1), SCORES, *([ENDS] * len(weights.further)))
    values = np.array([released(record, weights) for record in grid])
    return values[:, None, :] - values[None, :, :]


@pytest.mark.parametrize("weights", [EUCLIDEAN, EUCLIDEAN_MODELS], ids=["plain", "models"])
def test_no_exchange_moves_the_cells_further_than_claimed_in_length(weights):
    assert float(weights.size**2 + weights.square**2) <= 1
    largest = float(np.linalg.norm(changes(weights), axis=2).max())
    claim = float(weights.euclidean)
    assert 0.9999 * claim < largest <= claim * (1 + 1e-12)


@pytest.mark.parametrize("weights", [ABSOLUTE, ABSOLUTE_MODELS], ids=["plain", "models"])
def test_no_exchange_moves_the_cells_further_than_claimed_in_sum(weights):
    assert weights.square <= 0.5
    largest = float(np.abs(changes(weights)).sum(axis=2).max())
    claim = float(weights.absolute)
    assert 0.9999 * claim < largest <= claim * (1 + 1e-12)


def test_two_cells_cost_no_more_than_one_without_further_terms():
    apart = released((0, 1.0), EUCLIDEAN) - released((1, -1.0), EUCLIDEAN)
    same = released((0, 1.0), EUCLIDEAN) - released((0, -1.0), EUCLIDEAN)
    assert np.linalg.norm(apart) == pytest.approx(2.0, abs=1e-9)
    assert np.linalg.norm(same) == pytest.approx(2.0, abs=1e-9)


def test_a_histogram_moves_by_one_leaving_and_one_entering():
    edges = np.array([-1.0, 0.0, 1.0])
    values = [
        counts_between(edges, [np.array([x, 0.5, 7.0])]) for x in (-5.0, -1.0, -0.5, 0.0, 0.9, 1.0, np.nan)
    ]
    moves = [a - b for a in values for b in values]
    assert max(np.abs(move).sum() for move in moves) == COUNTS_L1
    assert max(np.linalg.norm(move) for move in moves) <= float(COUNTS_L2)
    assert all(one.sum() == 3 for one in values)


def test_terms_that_are_no_numbers_count_as_zero_and_far_ones_are_clipped():
    found = cell_sums([(np.zeros(4, np.int64), np.array([np.nan, np.inf, -np.inf, 9.0]), ())], 2)
    assert found.counts == (4, 0)
    assert found.scores == (1 << TERM_BITS, 0)
    assert found.squares == (3 << 2 * TERM_BITS, 0)
