"""Brute force: no exchange of a record moves releases by arm further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.estimators.moments import small_records
from tests.unit.estimators.moments.small_records import NotingGate, largest_change, records

import counterveil as cv
from counterveil.data.features import counted_features
from counterveil.estimators.moments.outcome_location import locate_outcomes
from counterveil.estimators.moments.score_clip import SIZES
from counterveil.numerics.products import Standard
from counterveil.rows.counts import COUNTS_L1
from counterveil.rows.moments.arm_grams import release_arm_grams
from counterveil.rows.moments.feature_moments import look_moments, release_look
from counterveil.rows.moments.grams import free_gram
from counterveil.rows.moments.linear_models import ArmLines
from counterveil.rows.moments.residual_products import release_arm_residuals
from counterveil.rows.moments.scaled_rows import ScaledRows
from counterveil.rows.moments.score_sizes import release_sizes
from counterveil.rows.moments.score_sums import ArmScore, OwnScore, release_arm_score, release_own_scores
from counterveil.rows.records import TableRecords

STANDARD = Standard(np.full(5, 0.1), np.full(5, 0.5), 2.0, 6.0)
LINES = ArmLines(np.array([[0.1, 0.3, -0.2, 0.1, 0.0, 0.05], [-0.2, 0.1, 0.4, 0.0, -0.3, 0.1]]))
WEIGHTS = np.array([[2.0, 0.3, -0.1, 0.0, 0.4, 0.1], [2.5, -0.2, 0.5, 0.3, 0.0, 0.1]])
SCORE = ArmScore(LINES, WEIGHTS, (1.0, 1.0), 0.3)
GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.1, 1.0)))


def scaled(constant, outcome):
    return ScaledRows(STANDARD, centre=0.1, unit=0.5, constant=constant, outcome=outcome)


def handed_over(name, release):
    """Return what a release hands to the gate for every record of the grid, and its claim."""
    values = []
    for record in GRID:
        gate = NotingGate()
        release(gate, records(record))
        values.append(gate.values[name])
    return values, float(gate.sensitivity[name])


@pytest.mark.parametrize(("constant", "outcome"), [(4.2, 1.8), (0.5, 7.0)])
def test_two_grams_cost_what_one_does(constant, outcome):
    form = scaled(constant, outcome)
    values, claim = handed_over("gram", lambda gate, rows: release_arm_grams(gate, rows, form))
    assert claim == pytest.approx(np.sqrt(2) * (6 + constant + outcome) / 5, rel=1e-7)
    assert 0.8 * claim < largest_change(values) <= claim * (1 + 1e-12)


def test_full_rows_of_different_arms_attain_the_bound():
    full = np.ones(4)[:, None] * np.ones(4)
    upper = np.where(np.eye(4, dtype=bool), 1.0, np.sqrt(2))[np.triu_indices(4)] * full[np.triu_indices(4)]
    change = np.concatenate([upper, -upper])
    assert np.linalg.norm(change) == pytest.approx(float(free_gram(1, Fraction(4))), rel=1e-7)


@pytest.mark.parametrize("share", [True, False])
def test_looks_at_features(share):
    everything = np.ones(5, dtype=bool)

    def release(gate, rows):
        counted = counted_features(rows.features)
        return release_look(gate, "centre", rows, counted, everything, share)

    values, claim = handed_over("centre", release)
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)
    assert float(look_moments(1, 4, Fraction(1, 2))) == pytest.approx(np.sqrt(17), rel=1e-8)


@pytest.mark.parametrize("clip", [0.2, 1.0])
def test_residuals_of_both_arms(clip):
    form = scaled(4.2, 1.8)
    values, claim = handed_over(
        "residual 1", lambda gate, rows: release_arm_residuals(gate, "residual 1", rows, form, LINES, clip)
    )
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


@pytest.mark.parametrize("clip", [0.5, 4.0])
@pytest.mark.parametrize("people", [(1.0, 1.0), (0.0, 2.5), (1.7, 0.0)])
def test_scores(clip, people):
    form, score = scaled(4.2, 1.8), ArmScore(LINES, WEIGHTS, people, 0.3)
    values, claim = handed_over("score", lambda gate, rows: release_arm_score(gate, rows, form, score, clip))
    assert claim == 2 / 5
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


def test_a_record_leaves_one_cell_and_enters_another():
    form, edges = scaled(4.2, 1.8), np.array([0.1, 1.0, 3.0])
    for name, release in {
        "place 1": lambda gate, rows: locate_outcomes(gate, rows, pure=True, cells=8),
        "sizes": lambda gate, rows: release_sizes(gate, rows, form, SCORE, edges, pure=True),
    }.items():
        values, claim = handed_over(name, release)
        found = np.array(values, dtype=float)
        assert claim == COUNTS_L1 == max(np.abs(found - one).sum(axis=1).max() for one in found)
        assert (found.sum(axis=1) == 5).all()
        assert found.shape[1] == (8 if name == "place 1" else 4)


THREE = cv.Study(
    cv.Treatment("t", arms=(0, 1, 2), reference=0), cv.Outcome("y", (-1, 1)), small_records.COVARIATES
)
THREE_REST = [*small_records.REST, (0.2, 0, "u", 2, 0.3), (-0.1, 1, "v", 2, -0.5)]
THIRD = ArmLines(np.vstack([LINES.values, [0.3, -0.1, 0.2, 0.0, 0.2, -0.4]]))
OWN = OwnScore(
    THIRD, np.vstack([WEIGHTS, [6.0, 1.0, 0.0, -2.0, 0.5, 0.3]]), np.array([0.0, 0.5, -1.0]), np.ones(3)
)
SEVERAL = {
    "gram": lambda gate, rows, _: release_arm_grams(gate, rows, scaled(4.2, 1.8)),
    "residual 1": lambda gate, rows, _: release_arm_residuals(
        gate, "residual 1", rows, scaled(4.2, 1.8), THIRD, 0.4
    ),
    "sizes": lambda gate, rows, pure: release_sizes(gate, rows, scaled(4.2, 1.8), OWN, SIZES, pure),
    "score": lambda gate, rows, pure: release_own_scores(gate, rows, scaled(4.2, 1.8), OWN, pure),
}


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("name", SEVERAL)
def test_releases_of_several_arms_move_as_far_as_those_of_two(name, pure):
    values = []
    for record in product((-1.0, 0.1, 1.0), (0, 1), ("u", "v"), (0, 1, 2), (-1.0, 0.1, 1.0)):
        gate = NotingGate()
        SEVERAL[name](gate, records(record, THREE, rest=THREE_REST), pure)
        values.append(gate.values[name])
    claim, found = float(gate.sensitivity[name]), np.array(values, dtype=float)
    counted = pure and name in ("sizes", "score")
    worst = max(np.abs(found - one).sum(axis=1).max() for one in found) if counted else largest_change(values)
    assert 0.8 * claim < worst <= claim * (1 + 1e-12)


def test_sums_of_own_scores_are_those_of_weighted_residuals():
    rows, form = (
        records((0.5, 1, "v", 2, 0.2), THREE, rest=THREE_REST),
        ScaledRows(STANDARD, centre=0.0, unit=1.0, constant=1.0, outcome=1.0),
    )
    score = OwnScore(THIRD, OWN.weights, OWN.centres, np.full(3, 20.0))
    u, _, y = next(TableRecords(rows.source, rows.features).models(STANDARD))
    arm, sums = rows.source.arm, release_own_scores(NotingGate(), rows, form, score, pure=True)
    sizes, _ = release_sizes(NotingGate(), rows, form, score, SIZES, pure=True)
    for k in range(3):
        own = arm == k
        left = (u[own] @ OWN.weights[k]) * (y[own] - u[own] @ THIRD.values[k])
        r = (left - OWN.centres[k]) / 20
        wanted = ((1 - r) ** 2 / 4).sum(), ((1 - r**2) / 2).sum(), ((1 + r) ** 2 / 4).sum()
        assert sums[k] == pytest.approx(wanted, abs=1e-4)
        counts = np.histogram(np.abs(r), [0, *SIZES, np.inf])[0]
        assert sizes.reshape(3, -1)[k] == pytest.approx(counts)


def test_moments_are_read_back_by_arm():
    form, rows = scaled(4.2, 1.8), records((0.5, 1, "v", 1, 0.2))
    grams, _ = release_arm_grams(NotingGate(), rows, form)
    u, t, y = next(TableRecords(rows.source, rows.features).models(STANDARD))
    v = np.column_stack([u, np.clip((y - 0.1) / 0.5, -1, 1)])
    for arm in (0, 1):
        assert grams[arm] == pytest.approx(v[t == arm].T @ v[t == arm] / 5, abs=1e-4)
    unit = (y - 0.1) / 0.5
    left = release_arm_residuals(NotingGate(), "r", rows, form, LINES, 5.0)
    for arm in (0, 1):
        own = t == arm
        wanted = u[own].T @ (unit[own] - u[own] @ LINES.values[arm]) / 5
        assert left.products[arm] == pytest.approx(wanted, abs=1e-4)
    m0, m1 = u @ LINES.values[0], u @ LINES.values[1]
    score = m1 - m0 - 0.3 + t * (u @ WEIGHTS[1]) * (unit - m1) - (1 - t) * (u @ WEIGHTS[0]) * (unit - m0)
    found = release_arm_score(NotingGate(), rows, form, SCORE, 50.0)
    assert found.score == pytest.approx(score.mean(), abs=1e-3)
    assert found.square == pytest.approx((score**2).mean(), abs=1e-2)
