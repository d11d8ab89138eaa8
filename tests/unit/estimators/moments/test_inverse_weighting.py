"""Brute force over small data sets, through the estimator's own kernel."""

from itertools import product

import numpy as np
import pytest

from counterveil.numerics.propensity import logistic_scores
from counterveil.published.weighting import STEPS, Weighing
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.rows.moments.weighted_moments import (
    ARM_COUNT_FACTOR,
    ARM_TOTALS,
    COUNT_FACTOR,
    GRID_BITS,
    WeightedMoments,
    contribution_sums,
)
from counterveil_lab.audit import all_record_replacements, l2, largest_change

# Covariate, treatment, outcome in steps; with an outcome that is on no round part of the range.
RECORDS = tuple(product((-0.5, 0.5), (0, 1), (0, STEPS // 3, STEPS)))
ROWS = 2


def sums(weighing, weights, records):
    x = np.array([[x] for x, _, _ in records])
    t = np.array([t == 1 for _, t, _ in records])
    y = np.array([y for _, _, y in records])
    found = contribution_sums(weighing.contributions(logistic_scores(x, weights), t, y), t)
    return found.total / 2**GRID_BITS, found.squares / 4**GRID_BITS, found.treated


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
@pytest.mark.parametrize("weights", [(0.0, 0.0), (3.0, -1.0), (-40.0, 5.0)])
@pytest.mark.parametrize("centres", [(STEPS / 2, STEPS / 2), (0.0, STEPS * 0.7)])
def test_no_replacement_exceeds_the_claims(estimand, weights, centres):
    weighing = Weighing(estimand, 0.1, 0.9, centres)
    universe = all_record_replacements(ROWS, RECORDS)
    known = {record: sums(weighing, np.array(weights), [record]) for record in RECORDS}

    def statistic(records):
        # Sums are additive; that the kernel adds is checked below.
        return tuple(np.sum([known[record] for record in records], axis=0))

    def joint(records):
        total, squares, treated = statistic(records)
        return total, float(SQUARE_WEIGHT) * squares, float(COUNT_FACTOR) * treated

    counted, plain = WeightedMoments(True), WeightedMoments(False)
    change = largest_change(joint, universe, claimed=float(counted.joint), distance=l2)
    assert not change.violated, str(change)
    change = largest_change(lambda r: joint(r)[:2], universe, claimed=float(plain.joint), distance=l2)
    assert not change.violated, str(change)
    for place, claim in enumerate((plain.total, plain.squares, counted.count)):
        change = largest_change(lambda r, place=place: statistic(r)[place], universe, claimed=float(claim))
        assert not change.violated, str(change)
    together = list(RECORDS)
    assert sums(weighing, np.array(weights), together) == pytest.approx(statistic(together), abs=1e-12)


def test_the_claims_are_attained():
    weighing = Weighing("ATE", 0.1, 0.9, (STEPS / 2, STEPS / 2))
    high, low = (sums(weighing, np.array([-100.0, 0.0]), [(0.5, 1, y)]) for y in (STEPS, 0))
    assert high[0] - low[0] == pytest.approx(2, abs=1e-6)
    assert high[1] == pytest.approx(1, abs=1e-6)


def test_arm_totals_with_their_count():
    records = tuple(product((0, 1), (-1.0, 0.0, 1.0)))

    def totals(rows):
        return (
            sum(y for t, y in rows if t),
            sum(y for t, y in rows if not t),
            float(ARM_COUNT_FACTOR) * sum(t for t, _ in rows),
        )

    universe = all_record_replacements(3, records)
    change = largest_change(totals, universe, claimed=float(ARM_TOTALS), distance=l2)
    assert not change.violated, str(change)
    assert change.attained == pytest.approx(1)


def test_contributions_never_leave_the_unit_interval():
    rng = np.random.default_rng(0)
    n = 2000
    scores, treated = rng.random(n), rng.random(n) < 0.5
    outcome = rng.integers(0, STEPS, n, endpoint=True)
    for estimand, centre in product(("ATE", "ATT", "ATC"), (0.0, STEPS * 0.99, STEPS / 3)):
        weighing = Weighing(estimand, 0.05, 0.8, (centre, STEPS - centre))
        found = weighing.contributions(scores, treated, outcome)
        assert np.abs(found).max() <= 2**GRID_BITS
        exact = weighing.weights(scores, treated) * np.where(
            treated, outcome - centre, STEPS - centre - outcome
        )
        assert np.allclose(found / 2**GRID_BITS * weighing.scale, exact, atol=weighing.scale * 2**-23)
