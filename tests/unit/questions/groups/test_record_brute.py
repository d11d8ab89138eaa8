"""Brute force through the releases themselves: no exchange of one record moves what is released too far."""

from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned_rows
from tests.unit.statistics.moments.small_records import REST, STUDY, NotingGate, largest_change, records

from counterveil.data.features import feature_map
from counterveil.numerics.products import Standard
from counterveil.questions.groups import LayoutPlaces, layout_of
from counterveil.statistics.moments.kernels.scores import LinearModels
from counterveil.statistics.moments.scoring import (
    AdjustedScore,
    MeanScore,
    PlainScore,
    ScoreClip,
    release_cells,
    release_histogram,
)

GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.0, 0.4, 1.0)))
SIZE = feature_map(STUDY, 1).size
STANDARD = Standard(np.full(SIZE, 0.1), np.full(SIZE, 0.5), 2.0, 6.0)
MODELS = LinearModels(
    0.45, 0.1, np.linspace(-0.1, 0.2, SIZE + 1), np.linspace(0, 0.1, SIZE + 1), np.full(SIZE + 1, 0.1), 0.3
)


SCORES = {
    "plain": PlainScore(0.4, 0.1, 0.0, 0.3),
    "arms": MeanScore(0.1, 0.3),
    "adjusted": AdjustedScore(STANDARD, MODELS, 0.1, 0.6, 0.1, 1e-4, 0.0, 0.0),
}


@pytest.mark.parametrize("form", ["plain", "arms", "adjusted"])
@pytest.mark.parametrize(
    ("clip", "by"), thinned_rows(list(product([0.3, 1.0], [("c",), ("b", "c")])), (1.0, ("b", "c")))
)
def test_no_exchange_moves_the_cells_further_than_claimed(form, clip, by):
    layout = layout_of(STUDY, by)
    values = {False: [], True: []}
    for record, pure in product(GRID, (False, True)):
        gate = NotingGate()
        rows, places = records(record), LayoutPlaces(layout)
        release_cells(gate, rows, SCORES[form], places, layout.public, ScoreClip(0.05, clip), pure)
        values[pure].append(gate.values["cells"])
        if not pure:
            claim = float(gate.sensitivity["cells"])
        else:
            total = float(gate.sensitivity["cells"])
    assert 0.8 * claim < largest_change(values[False]) <= claim * (1 + 1e-12)
    found = np.array([[float(entry) for entry in value] for value in values[True]])
    largest = max(float(np.abs(found - one).sum(axis=1).max()) for one in found)
    assert 0.8 * total < largest <= total * (1 + 1e-12)


@pytest.mark.parametrize("form", ["plain", "arms", "adjusted"])
def test_no_exchange_moves_the_histogram_further_than_claimed(form):
    values = []
    for record in GRID:
        gate = NotingGate()
        release_histogram(gate, records(record), SCORES[form], False)
        values.append(gate.values["histogram"])
        assert sum(gate.values["histogram"]) == 1 + len(REST)
    assert largest_change(values) <= float(gate.sensitivity["histogram"])
