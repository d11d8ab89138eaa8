"""Brute force: no exchange of a record moves counts, sums and squares in cells further than claimed."""

from itertools import product

import numpy as np
import pytest

from counterveil.statistics.histogram import COUNTS_L1, COUNTS_L2
from counterveil.statistics.moments.kernels.scores import TERM_BITS, cell_sums, counts_between
from counterveil.statistics.moments.sensitivity import MODEL_TERMS, PURE_MODEL_TERMS, SCORE_TERMS

ONE = 2.0**-TERM_BITS
SCORES = (-1.0, -0.7, -0.3, 0.0, 0.21, 0.381966, 0.5, 1.0, 3.0)
ENDS = (-1.0, 0.0, 1.0)


def released(record, terms):
    """Return the vector for one record (cell, r, d...) beside two fixed ones, through the code that adds up."""
    further = len(terms.further)
    rest = [(0, 0.4, *([0.1] * further)), (2, -0.2, *([0.3] * further))]
    cells, scores, *others = (np.array(column) for column in zip(record, *rest, strict=True))
    (found,) = cell_sums([(cells.astype(np.int64), scores, tuple(others))], 3, further)
    n, s, q = (unit * sums.astype(float) for unit, sums in zip((1, ONE, ONE**2), found[:3], strict=True))
    parts = [(n - 2 * s + q) / 4, (n - q) / 2, (n + 2 * s + q) / 4]
    parts += [
        float(weight) * ONE * total.astype(float)
        for weight, total in zip(terms.further, found[3:], strict=True)
    ]
    return np.concatenate(parts)


def changes(terms):
    grid = product((0, 1), SCORES, *([ENDS] * len(terms.further)))
    values = np.array([released(record, terms) for record in grid])
    return values[:, None, :] - values[None, :, :]


@pytest.mark.parametrize("terms", [SCORE_TERMS, MODEL_TERMS], ids=["plain", "models"])
def test_no_exchange_moves_the_cells_further_than_claimed_in_length(terms):
    largest = float(np.linalg.norm(changes(terms), axis=2).max())
    claim = float(terms.euclidean)
    assert 0.9999 * claim < largest <= claim * (1 + 1e-12)


@pytest.mark.parametrize("terms", [SCORE_TERMS, PURE_MODEL_TERMS], ids=["plain", "models"])
def test_no_exchange_moves_the_cells_further_than_claimed_in_sum(terms):
    largest = float(np.abs(changes(terms)).sum(axis=2).max())
    claim = float(terms.absolute)
    assert 0.9999 * claim < largest <= claim * (1 + 1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_the_terms_of_a_record_are_a_distribution(score):
    (alone,) = cell_sums([(np.zeros(1, np.int64), np.array([score]), ())], 1)
    n, s, q = alone[0, 0], ONE * alone[1, 0], ONE**2 * alone[2, 0]
    terms = np.array([(n - 2 * s + q) / 4, (n - q) / 2, (n + 2 * s + q) / 4])
    assert terms.min() >= 0
    assert terms.sum() == pytest.approx(1.0, abs=1e-12)


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
    (found,) = cell_sums([(np.zeros(4, np.int64), np.array([np.nan, np.inf, -np.inf, 9.0]), ())], 2)
    assert found.tolist() == [[4, 0], [1 << TERM_BITS, 0], [3 << 2 * TERM_BITS, 0]]
