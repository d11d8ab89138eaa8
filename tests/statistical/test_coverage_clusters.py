"""Intervals by cluster cover where intervals by row do not; `python -m experiments.clusters` has the whole table."""

import pytest
from experiments.clusters.simulation import Cell, simulate

# Whole clusters of unequal size in each arm, a third of the variance between them.
TRIAL = Cell("trial", 20, 20, True, 0.3, "difference_in_means", "outcome", 2.0)
RECORDS = Cell("trial", 20, 20, True, 0.3, "trial", "record", 4.0)


@pytest.mark.parametrize("cell", [TRIAL, RECORDS])
def test_by_cluster_covers_where_by_row_does_not(cell):
    found = simulate(cell, 24, 1)
    # At 95 % fewer than 20 of 24 have a chance of 0.6 %; at 60 %, as by row, more than 20 one of 1 %.
    assert found.covered >= 20 / 24
    assert found.covered_by_row <= 20 / 24


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        TRIAL,
        RECORDS,
        Cell("cluster by x", 50, 20, True, 0.3, "weighting", "outcome", 1.0),
        Cell("by x", 50, 20, True, 0.3, "matching", "outcome", 1.0),
        Cell("trial", 20, 20, True, 0.1, "difference_in_means", "outcome", 4.0, whole=True),
    ],
)
def test_coverage_of_many_draws(cell):
    # 95 % less three standard errors of 150 draws.
    assert simulate(cell, 150, 2).covered >= 0.897
