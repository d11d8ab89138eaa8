"""Brute force: no exchange of a record moves released moments, lengths, scores or residuals further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.estimators.moments.small_records import NotingGate, largest_change, records

from counterveil.data.features import counted_features
from counterveil.estimators.moments.scaling import squared_max_length
from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.products import Standard
from counterveil.numerics.propensity import fit_propensity
from counterveil.rows.counts import COUNTS_L1, COUNTS_L2
from counterveil.rows.moments.cell_sums import MODEL_TERMS, PURE_MODEL_TERMS, SCORE_TERMS, cell_sums
from counterveil.rows.moments.feature_moments import release_moments
from counterveil.rows.moments.grams import OFF_DIAGONAL, free_gram
from counterveil.rows.moments.joint_gram import Scaling, release_gram
from counterveil.rows.moments.linear_models import LinearModels
from counterveil.rows.moments.penalised_fit import penalised_fit
from counterveil.rows.moments.residual_products import release_residuals
from counterveil.rows.moments.row_lengths import EDGES
from counterveil.rows.moments.score_sums import orthogonal_score
from counterveil.rows.moments.scores import TERM_BITS, counts_between
from counterveil.rows.moments.sensitivity import (
    SQUARE_WEIGHT,
    record_moments,
)
from counterveil.rows.records import TableRecords

GRID = list(product((-1.0, -0.24, 0.3, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.3, 1.0)))


@pytest.mark.parametrize("degree", [1, 2])
def test_no_exchange_exceeds_the_claim(degree):
    values = []
    for record in GRID:
        gate, rows = NotingGate(), records(record, degree=degree)
        release_moments(gate, rows, counted_features(rows.features))
        values.append(gate.values["centre"])
    claim = float(gate.sensitivity["centre"])
    worst = largest_change(values)
    assert worst <= claim * (1 + 1e-12)
    if degree == 1:
        # Numbers, two labels, two flags, treatment and outcome all go from end to end.
        assert worst == pytest.approx(claim, rel=1e-4)


def test_without_features_only_treatment_and_outcome_count():
    values = []
    for t, y in product((0, 1), (-1.0, -0.24, 0.0, 0.5, 1.0)):
        gate = NotingGate()
        release_moments(gate, records((0.0, 0, "u", t, y)), 0)
        values.append(gate.values["centre"])
    assert len(values[0]) == 3
    assert largest_change(values) == pytest.approx(float(gate.sensitivity["centre"]), rel=1e-6)


def test_the_square_is_free_and_no_heavier_one_would_be():
    a = np.linspace(-1, 1, 401)
    pair = (a[:, None] - a) ** 2 * (1 + float(SQUARE_WEIGHT) ** 2 * (a[:, None] + a) ** 2)
    assert pair.max() == pytest.approx(4.0, abs=1e-9)
    heavier = (a[:, None] - a) ** 2 * (1 + 1.67**2 * (a[:, None] + a) ** 2)
    assert heavier.max() > 4.0


def test_the_weight_enters_twice():
    assert record_moments(10, 0, Fraction(1)) ** 2 == pytest.approx(8 / 100)
    assert record_moments(10, 3, Fraction(1, 2)) ** 2 == pytest.approx(14 / 100)


def histograms(pure):
    found = []
    standard = Standard(np.zeros(5), np.full(5, 0.9), 4.0, np.inf)
    for x, b, c in product((-1.0, -0.2, 0.0, 0.6, 1.0), (0, 1), ("u", "v", "w", "z")):
        gate = NotingGate()
        squared_max_length(gate, records((x, b, c, 0, 0.0)), standard, pure, 0.01)
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


STANDARD = Standard(np.full(5, 0.1), np.full(5, 0.5), 2.0, 6.0)
SCALINGS = [Scaling(0.4, 0.1, 0.6, 0.7, a, b) for a, b in ((3.0, 2.0), (0.5, 7.0))]
GRAM_GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.1, 1.0)))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_no_exchange_exceeds_the_claim_of_free_grams(scaling):
    values = []
    for record in GRAM_GRID:
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


MODELS = LinearModels(
    0.45,
    0.1,
    np.array([0.02, 0.2, -0.1, 0.05, 0.1, -0.05]),
    np.array([0.0, 0.15, -0.08, 0.04, 0.08, -0.04]),
    np.array([0.01, 0.3, 0.1, -0.1, 0.0, 0.2]),
    0.3,
)
SCORE_GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.0, 0.4, 1.0)))


@pytest.mark.parametrize("clip", [0.1, 0.6])
def test_no_exchange_moves_residual_moments_further_than_claimed(clip):
    values = []
    for record in SCORE_GRID:
        gate = NotingGate()
        release_residuals(gate, "residual 1", records(record), STANDARD, MODELS, clip)
        values.append(gate.values["residual 1"])
    claim = float(gate.sensitivity["residual 1"])
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


def test_both_ends_of_a_score_attain_the_bound():
    ends = np.array([[1, 1.665], [-1, 1.665]])
    assert np.linalg.norm(ends[0] - ends[1]) == float(orthogonal_score(1))


def test_terms_beyond_their_bounds_are_clipped_and_not_lost():
    gate = NotingGate()
    rows = records((1.0, 1, "u", 1, 1.0))
    u, t, y = next(TableRecords(rows.source, rows.features).models(STANDARD))
    found = release_residuals(gate, "residual", rows, STANDARD, MODELS, 5.0)
    assert found.products == pytest.approx(u.T @ MODELS.residual(u, t, y) / 5, abs=1e-4)


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


RECORDS = tuple(product((-0.5, 0.0, 0.5), (-0.5, 0.5), (False, True)))
TOLERANCE = 1e-9


def weights(records, penalty):
    x = np.array([[a, b] for a, b, _ in records])
    return fit_propensity(x, np.array([t for _, _, t in records]), penalty, TOLERANCE).weights


@pytest.mark.parametrize("penalty", [0.05, 1.0, 20.0])
def test_no_replacement_exceeds_the_claim(penalty):
    n = 3
    claim = float(penalised_fit(n, Fraction(3, 2), Fraction(penalty), Fraction(TOLERANCE)))
    known = {}
    for rows in product(RECORDS, repeat=n):
        # The order of rows does not matter to a fit, so that one of each multiset is enough.
        key = tuple(sorted(rows))
        if key not in known:
            known[key] = weights(key, penalty)
    worst = 0.0
    for key, own in known.items():
        for place, record in product(range(n), RECORDS):
            other = known[tuple(sorted((*key[:place], record, *key[place + 1 :])))]
            worst = max(worst, float(np.linalg.norm(own - other)))
    assert worst <= claim
    if penalty == 20.0:
        # Probabilities are near one half then, which is half of what the claim allows for.
        assert worst > 0.45 * claim


def test_tolerance_enters_twice():
    exact = penalised_fit(10, Fraction(4), Fraction(1, 2), Fraction(0))
    loose = penalised_fit(10, Fraction(4), Fraction(1, 2), Fraction(1, 100))
    assert exact == Fraction(2 * 2, 10) * 2
    assert loose - exact == 2 * Fraction(1, 100) * 2


@pytest.mark.parametrize(
    "value", [Fraction(0), Fraction(2), Fraction(9, 4), Fraction(7, 3), Fraction(1, 10**9)]
)
def test_roots_are_rounded_up(value):
    root = sqrt_up(value)
    assert root**2 >= value
    assert float(root) == pytest.approx(float(value) ** 0.5, rel=1e-12)
