"""Brute force: no exchange of a record moves the released second moments further than claimed."""

from itertools import product

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import NotingGate, largest_change, records

from counterveil.numerics.products import Standard
from counterveil.statistics.moments.orthogonal import Scaling, release_gram
from counterveil.statistics.moments.records import TableRecords
from counterveil.statistics.moments.sensitivity import OFF_DIAGONAL, free_gram

STANDARD = Standard(np.full(5, 0.1), np.full(5, 0.5), 2.0, 6.0)
SCALINGS = [Scaling(0.4, 0.1, 0.6, 0.7, a, b) for a, b in ((3.0, 2.0), (0.5, 7.0))]
GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.1, 1.0)))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_no_exchange_exceeds_the_claim(scaling):
    values = []
    for record in GRID:
        gate = NotingGate()
        release_gram(gate, records(record), STANDARD, scaling)
        values.append(gate.values["gram"])
    claim = float(gate.sensitivity["gram"])
    assert 0.8 * claim < largest_change(values) <= claim * (1 + 1e-12)


def test_orthogonal_rows_attain_the_bound():
    weight = np.where(np.eye(8, dtype=bool), 1.0, float(OFF_DIAGONAL))[np.triu_indices(8)]
    signs = np.array([1, -1, 1, -1, 1, -1, 1, -1])
    one, other = (np.outer(w, w)[np.triu_indices(8)] for w in (np.ones(8), signs))
    change = np.linalg.norm(weight * (one - other))
    assert change == pytest.approx(float(free_gram(1, 8)), rel=1e-7)
    assert change <= float(free_gram(1, 8))


def test_random_rows_stay_within_it():
    rng = np.random.default_rng(0)
    weight = np.where(np.eye(4, dtype=bool), 1.0, float(OFF_DIAGONAL))[np.triu_indices(4)]
    rows = rng.normal(size=(400, 4))
    rows *= np.sqrt(5) / np.linalg.norm(rows, axis=1)[:, None]
    entries = weight * np.einsum("ni,nj->nij", rows, rows)[:, *np.triu_indices(4)]
    gaps = np.linalg.norm(entries[:, None] - entries, axis=2)
    assert 0.99 * float(free_gram(1, 5)) < gaps.max() <= float(free_gram(1, 5))


def test_matrix_is_read_back_from_what_is_released():
    gate = NotingGate()
    rows = records((0.5, 1, "v", 1, 0.2))
    found = release_gram(gate, rows, STANDARD, SCALINGS[0])
    u, t, y = next(TableRecords(rows.source, rows.features).models(STANDARD))
    assert found.matrix == pytest.approx(u.T @ u / 5, abs=1e-4)
    assert found.with_treatment == pytest.approx(u.T @ (t - 0.4) / 5, abs=1e-4)
    assert found.with_outcome == pytest.approx(u.T @ np.clip(y - 0.1, -0.7, 0.7) / 5, abs=1e-4)
