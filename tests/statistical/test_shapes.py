"""Ways to ask on shapes of outcomes: intervals cover, or the question is refused.

The whole table is `python -m experiments.shapes`; here every second way meets one shape, in `make test-all` each four.
"""

import json
from dataclasses import asdict, replace
from itertools import combinations, product
from pathlib import Path

import pytest
from experiments.shapes.__main__ import MARK
from experiments.shapes.runs import DELTAS, EPSILONS, Cell, Tally, covering, samples
from experiments.shapes.table import fault
from experiments.shapes.ways import ROWS, answer, ways
from scipy.stats import binom

WAYS = ways()
CELLS = covering(WAYS)
TABLE = Path(__file__).parents[2] / "experiments" / "shapes" / "table.json"
# Chance that an interval with 93 % is said to miss.
ALARM = 1e-3
DRAWS = 8


def _thinned():
    """Return small forms of some cells: one for every second way in `make test`, four for each in `make test-all`."""
    for number, (name, way) in enumerate(WAYS.items()):
        own = [cell for cell in CELLS if cell.way == name]
        for turn in range(min(4, len(own))):
            cell = own[(5 * number + 3 * turn) % len(way.shapes)]
            yield pytest.param(
                replace(cell, rows=500 if turn % 2 == 0 else way.rows[1]),
                marks=pytest.mark.slow if turn or number % 2 else (),
                id=f"{name}, {way.shapes[cell.shape].name}, {turn}",
            )


@pytest.mark.parametrize("cell", list(_thinned()))
def test_intervals_cover_or_the_question_is_refused(cell):
    way, ours = WAYS[cell.way], Tally()
    for seed, sample in samples(way, cell, range(DRAWS)):
        ours.add(answer(way, sample, cell.epsilon, cell.delta, seed))
    assert ours.refused in (0, DRAWS)  # a refusal reads public numbers, which draws share
    if ours.refused or ours.invalid:
        return
    assert binom.cdf(round(ours.coverage * DRAWS), DRAWS, 0.93) > ALARM


def test_every_two_factors_meet():
    factors = {"rows": ROWS, "epsilon": EPSILONS, "delta": DELTAS, "design": range(4)}
    for one, other in combinations(factors, 2):
        met = {(getattr(cell, one), getattr(cell, other)) for cell in CELLS}
        assert met >= set(product(factors[one], factors[other]))
    for name, way in WAYS.items():
        own = [cell for cell in CELLS if cell.way == name]
        assert [cell.shape for cell in own] == list(range(len(way.shapes)))
        assert {cell.rows for cell in own} == set(way.rows)


def test_the_kept_table_is_of_these_cells():
    kept = json.loads(TABLE.read_text())
    assert {Cell(**one["cell"]).key for one in kept} == {cell.key for cell in CELLS}
    assert all(one["seed"] == Cell(**one["cell"]).seed for one in kept)
    assert all(one["ours"]["draws"] >= 40 for one in kept)


def test_bad_cells_are_named_with_their_reason():
    about = (TABLE.parent / "RESULTS.md").read_text().partition(MARK)[0]
    for one in json.loads(TABLE.read_text()):
        if fault(one):
            assert f"`{one['cell']['way']}`" in about, asdict(Cell(**one["cell"]))
