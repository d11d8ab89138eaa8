"""Coverage of pooled intervals, from rows to interval: a small part here, the whole table marked slow."""

import pytest
from experiments.pooling.__main__ import CELLS
from experiments.pooling.simulation import Cell, simulate


def at_least(level, draws):
    """Return what three standard errors below the level is."""
    return level - 3 * (level * (1 - level) / draws) ** 0.5


def test_where_sites_differ_random_effects_cover_their_mean():
    draws = 40
    found = simulate(Cell("differ", (600,) * 6, (1,) * 6, tau=0.05), draws, 32, ("all", "random_effects"))
    assert found["all"].average >= at_least(0.95, draws)
    # An interval for these sites is not one for all sites there could be.
    assert found["all"].mean < 0.8
    assert found["random_effects"].mean >= at_least(0.93, draws)


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_coverage_of_every_cell(cell):
    draws = 500
    for method, found in simulate(cell, draws, seed=33).items():
        covered = found.mean if method == "random_effects" else found.average
        assert covered >= at_least(0.95, draws), method
