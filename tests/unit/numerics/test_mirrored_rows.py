"""Rows and their mirror images are the same written out and a block at a time."""

import numpy as np
import pytest

from counterveil.numerics.products import MirroredRows
from counterveil.numerics.propensity import fit_propensity

ROWS = np.random.default_rng(1).random((101, 3))
WRITTEN = np.concatenate([ROWS, -ROWS])


def test_blocks_are_those_of_the_written_matrix():
    rows = MirroredRows(ROWS, ROWS)
    assert (len(rows), rows.ndim, rows.shape, rows.size) == (202, 2, (202, 3), 606)
    for first, stop in ((0, 50), (51, 101), (90, 120), (101, 150), (150, 400), (0, 202)):
        np.testing.assert_array_equal(rows[first:stop], WRITTEN[first:stop])


@pytest.mark.parametrize("stride", [1, 2, 3, 7, 101, 150, 202])
def test_thinned_rows_are_those_of_the_written_matrix(stride):
    thinned = MirroredRows(ROWS, ROWS).thinned(stride)
    np.testing.assert_array_equal(thinned[:], WRITTEN[::stride])
    np.testing.assert_array_equal(thinned.thinned(3)[:], WRITTEN[::stride][::3])


@pytest.mark.parametrize("count", [400, 60_000])
def test_fit_is_that_of_the_written_matrix(count):
    drawn = np.random.default_rng(2)
    z, treated = drawn.random((count, 20)), drawn.random(count) < 0.6
    both = np.concatenate([treated, ~treated])
    found = fit_propensity(MirroredRows(z, z), both, 0.01)
    written = fit_propensity(np.concatenate([z, -z]), both, 0.01)
    np.testing.assert_array_equal(found.weights, written.weights)
    np.testing.assert_array_equal(found.scores, written.scores)
