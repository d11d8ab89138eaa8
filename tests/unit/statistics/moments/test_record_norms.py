"""Brute force: one record moves two cells of the histogram of lengths, by one each."""

from itertools import product

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import NotingGate, largest_change, records

from counterveil.numerics.products import Standard
from counterveil.statistics.histogram import COUNTS_L1, COUNTS_L2
from counterveil.statistics.moments.orthogonal import EDGES, release_norms


def histograms(pure):
    found = []
    standard = Standard(np.zeros(5), np.full(5, 0.9), 4.0, np.inf)
    for x, b, c in product((-1.0, -0.2, 0.0, 0.6, 1.0), (0, 1), ("u", "v", "w", "z")):
        gate = NotingGate()
        release_norms(gate, records((x, b, c, 0, 0.0)), standard, pure, 0.01)
        found.append(gate.values["norms"])
        assert sum(found[-1]) == 5
        assert len(found[-1]) == len(EDGES) + 1
    return found, gate.sensitivity["norms"]


def test_a_gaussian_histogram_moves_by_the_root_of_two():
    found, claim = histograms(pure=False)
    assert claim == COUNTS_L2
    assert largest_change(found) == pytest.approx(2**0.5)
    assert claim**2 >= 2


def test_a_pure_histogram_moves_by_two_in_all():
    found, claim = histograms(pure=True)
    assert claim == COUNTS_L1
    changes = {sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one in found for other in found}
    assert changes == {0, 2}
