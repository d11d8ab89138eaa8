"""Coverage of the intervals on simulated trials: a small part here, more of it marked slow.

`python -m experiments.coverage` prints the whole table.
"""

from itertools import product

import pytest
from experiments.coverage.simulation import Cell, simulate


@pytest.mark.parametrize("unit", ["outcome", "record"])
def test_coverage_in_a_representative_part(unit):
    found = simulate(Cell(unit, "continuous", 400, 0.5, 0.25), draws=200, seed=11)
    # Three standard errors of 200 draws below 93 %.
    assert found.covered >= 0.93 - 3 * (0.93 * 0.07 / 200) ** 0.5
    assert found.width > found.width_without_noise
    # The same check would catch an interval that ignores the noise.
    assert found.covered_without_noise < 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "outcome", "epsilon"),
    list(product(["outcome", "record"], ["binary", "continuous"], [0.25, 0.5, 1.0, 2.0, 4.0])),
)
def test_coverage_of_every_cell(unit, outcome, epsilon):
    found = simulate(Cell(unit, outcome, 1000, 0.5, epsilon), draws=600, seed=12)
    # Three standard errors of 600 draws below 95 %: intervals that cover 90 % fail in 97 cells of 100.
    least = 0.95 - 3 * (0.95 * 0.05 / 600) ** 0.5
    assert found.covered >= least
    # The same check catches intervals that ignore the noise, where there is most of it.
    if epsilon == 0.25:
        assert found.covered_without_noise < least
