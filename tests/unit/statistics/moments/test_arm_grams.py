"""Brute force: no exchange of a record moves the releases of moments by arm further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import NotingGate, largest_change, records

from counterveil.data.features import counted_features
from counterveil.numerics.products import Standard
from counterveil.statistics.histogram import COUNTS_L1
from counterveil.statistics.moments.doubly_robust import (
    Centre,
    RowScale,
    release_arm_grams,
    release_arm_residuals,
    release_arm_score,
    release_look,
    release_place,
    release_sizes,
)
from counterveil.statistics.moments.kernels.scores import ArmLines, ArmScore
from counterveil.statistics.moments.records import TableRecords
from counterveil.statistics.moments.sensitivity import free_gram, look_moments

STANDARD = Standard(np.full(5, 0.1), np.full(5, 0.5), 2.0, 6.0)
LINES = ArmLines(np.array([[0.1, 0.3, -0.2, 0.1, 0.0, 0.05], [-0.2, 0.1, 0.4, 0.0, -0.3, 0.1]]))
WEIGHTS = np.array([[2.0, 0.3, -0.1, 0.0, 0.4, 0.1], [2.5, -0.2, 0.5, 0.3, 0.0, 0.1]])
SCORE = ArmScore(LINES, WEIGHTS, (1.0, 1.0), 0.3)
GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.1, 1.0)))


def scale(constant, outcome):
    return RowScale(STANDARD, Centre(0.1, 0.2, 0.0, 3.0), constant, outcome, 2.5)


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
    form = scale(constant, outcome)
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
    form = scale(4.2, 1.8)
    values, claim = handed_over(
        "residual 1", lambda gate, rows: release_arm_residuals(gate, "residual 1", rows, form, LINES, clip)
    )
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


@pytest.mark.parametrize("clip", [0.5, 4.0])
@pytest.mark.parametrize("people", [(1.0, 1.0), (0.0, 2.5), (1.7, 0.0)])
def test_scores(clip, people):
    form, score = scale(4.2, 1.8), ArmScore(LINES, WEIGHTS, people, 0.3)
    values, claim = handed_over("score", lambda gate, rows: release_arm_score(gate, rows, form, score, clip))
    assert claim == 2 / 5
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


def test_a_record_leaves_one_cell_and_enters_another():
    form, edges = scale(4.2, 1.8), np.array([0.1, 1.0, 3.0])
    for name, release in {
        "place 1": lambda gate, rows: release_place(gate, rows, pure=True, cells=8),
        "sizes": lambda gate, rows: release_sizes(gate, rows, form, SCORE, edges, pure=True),
    }.items():
        values, claim = handed_over(name, release)
        found = np.array(values, dtype=float)
        assert claim == COUNTS_L1 == max(np.abs(found - one).sum(axis=1).max() for one in found)
        assert (found.sum(axis=1) == 5).all()
        assert found.shape[1] == (8 if name == "place 1" else 4)


def test_moments_are_read_back_by_arm():
    form, rows = scale(4.2, 1.8), records((0.5, 1, "v", 1, 0.2))
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


def test_place_of_outcomes_in_a_range_twenty_times_too_wide():
    rng = np.random.default_rng(0)

    class Rows:
        count = 20_000

        @staticmethod
        def parts():
            class Part:
                y = 0.3 + 0.01 * rng_values

            yield Part

        @classmethod
        def run(cls, kernel, *arguments, covariates=True):
            assert not covariates
            return kernel(cls, *arguments)

    rng_values = rng.normal(size=20_000)
    found = release_place(NotingGate(), Rows, pure=False, cells=32)
    assert found.centre == pytest.approx(0.3, abs=0.001)
    assert found.scale == pytest.approx(0.01, rel=0.15)
    assert found.tail < 0.01
    rng_values = np.minimum(rng.exponential(size=20_000) ** 2, 60.0)
    found = release_place(NotingGate(), Rows, pure=False, cells=32)
    assert found.heavy
    # A value that nearly all have, two values, and one value alone: what noise hides may lie anywhere.
    for rare in (
        np.where(rng.random(20_000) < 0.03, 50.0, 0.0),
        np.where(rng.random(20_000) < 0.4, 70.0, -130.0),
    ):
        rng_values = rare
        assert release_place(NotingGate(), Rows, pure=False, cells=32).whole
    rng_values = np.zeros(20_000)
    assert release_place(NotingGate(), Rows, pure=False, cells=8).whole
