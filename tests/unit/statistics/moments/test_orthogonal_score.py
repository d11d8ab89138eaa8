"""Brute force: no exchange of a record moves the released score or residual moments further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import NotingGate, largest_change, records

from counterveil.numerics.products import Standard
from counterveil.statistics.moments.doubly_robust import WHOLE, RowScale, release_arm_score
from counterveil.statistics.moments.kernels.scores import ArmLines, ArmScore, Average, LinearModels
from counterveil.statistics.moments.orthogonal import release_residuals, release_score
from counterveil.statistics.moments.records import TableRecords
from counterveil.statistics.moments.sensitivity import orthogonal_score

STANDARD = Standard(np.full(5, 0.1), np.full(5, 0.5), 2.0, 6.0)
MODELS = LinearModels(
    0.45,
    0.1,
    np.array([0.02, 0.2, -0.1, 0.05, 0.1, -0.05]),
    np.array([0.0, 0.15, -0.08, 0.04, 0.08, -0.04]),
    np.array([0.01, 0.3, 0.1, -0.1, 0.0, 0.2]),
    0.3,
)
GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.0, 0.4, 1.0)))


@pytest.mark.parametrize("clip", [0.05, 0.4])
def test_no_exchange_moves_the_score_further_than_claimed(clip):
    values = []
    for record in GRID:
        gate = NotingGate()
        release_score(gate, "score", records(record), STANDARD, MODELS, clip, 1.2)
        values.append(gate.values["score"])
    claim = float(gate.sensitivity["score"])
    assert len(values[0]) == 3
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


@pytest.mark.parametrize("clip", [0.05, 0.4])
def test_no_exchange_moves_the_scores_of_both_arms_means_further_than_claimed(clip):
    lines = np.array([[0.1, 0.2, -0.1, 0.05, 0.1, -0.05], [0.2, 0.3, 0.1, -0.1, 0.0, 0.2]])
    score = ArmScore(ArmLines(lines), np.full((2, 6), 2.0), (1.0, 1.0), 0.1)
    scale, average = RowScale(STANDARD, WHOLE, 1.0, 1.0, 1.0), Average(0.15, 0.7 * clip)
    values = []
    for record in GRID:
        gate = NotingGate()
        release_arm_score(gate, records(record), scale, score, clip, average)
        values.append(gate.values["score"])
    claim = float(gate.sensitivity["score"])
    assert len(values[0]) == 3
    assert claim == pytest.approx((4 + 2.8**2) ** 0.5 / records(GRID[0]).count, rel=1e-5)
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


@pytest.mark.parametrize("clip", [0.1, 0.6])
def test_no_exchange_moves_residual_moments_further_than_claimed(clip):
    values = []
    for record in GRID:
        gate = NotingGate()
        release_residuals(gate, "residual 1", records(record), STANDARD, MODELS, clip)
        values.append(gate.values["residual 1"])
    claim = float(gate.sensitivity["residual 1"])
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


def test_both_bounds_are_attained():
    ends = np.array([[1, 1.665, 0.5], [-1, 1.665, 0]])
    claim = orthogonal_score(1, Fraction(1, 2))
    assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(float(claim), rel=1e-12)


def test_terms_beyond_their_bounds_are_clipped_and_not_lost():
    gate = NotingGate()
    rows = records((1.0, 1, "u", 1, 1.0))
    wide = release_score(gate, "wide", rows, STANDARD, MODELS, 10.0, 1.2)
    u, t, y = next(TableRecords(rows.source, rows.features).models(STANDARD))
    r = MODELS.treatment_residual(u, t) * MODELS.residual(u, t, y)
    assert wide.score == pytest.approx(r.mean(), abs=1e-4)
    assert wide.square == pytest.approx((r**2).mean(), abs=1e-3)
    narrow = release_score(gate, "narrow", rows, STANDARD, MODELS, 0.01, 1.2)
    assert narrow.score == pytest.approx(np.clip(r, -0.01, 0.01).mean(), abs=1e-4)
    found = release_residuals(gate, "residual", rows, STANDARD, MODELS, 5.0)
    assert found.products == pytest.approx(u.T @ MODELS.residual(u, t, y) / 5, abs=1e-4)
