"""Brute force: no exchange of a pair moves the sums of scores and squares further than claimed."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import NotingGate
from tests.unit.statistics.pairs.small_pairs import exchanged, exchanged_arms, largest, table, total

from counterveil.privacy import Budget, Estimand
from counterveil.statistics.outcome_place import WHOLE, Spread
from counterveil.statistics.pairs.effect import (
    ARM_SCORES,
    SCORE_BITS,
    WHOLE_SCORES,
    Fit,
    Models,
    Sought,
    Target,
    best_scores,
    chosen,
    ladder,
    release_scores,
)

TABLE = table()
ROWS = ladder(TABLE)[0]
N, P = ROWS.z.shape
RNG = np.random.default_rng(3)
FIT = Fit(np.zeros(P), np.eye(P) / 100, np.zeros(P), np.eye(P) / 100, 1.0)
MODELS = Models(
    RNG.uniform(0.05, 0.95, N), RNG.uniform(-0.5, 0.7, N), RNG.uniform(-0.7, 0.5, N), FIT, (FIT, FIT), 0.4
)
SEARCHED = Spread(WHOLE, 0.4, np.array([0.02, 0.1, 0.4, 1.1]), np.array([0.2, 0.3, 0.4, 0.1]))
EVENTS = Spread(WHOLE, 0.0)
SCORE_SENSITIVITY = WHOLE_SCORES[1]


def scores(estimand, spread, noise=50.0):
    return best_scores(ROWS, MODELS, spread, Target.of(Estimand(estimand), MODELS.propensity), noise)


def arm_scores(spread, noise=50.0):
    whole = Target.of(Estimand.ATE, MODELS.propensity)
    return [best_scores(ROWS, MODELS, spread, whole.of_arm(arm), noise) for arm in (0, 1)]


@pytest.mark.parametrize("spread", [SEARCHED, EVENTS], ids=["searched", "events"])
@pytest.mark.parametrize("estimand", [one.value for one in Estimand])
def test_no_exchange_moves_scores_further_than_claimed(estimand, spread):
    found = scores(estimand, spread)
    moved = [
        largest([found.sums(t, y) for t, y in exchanged(TABLE, row)], total)
        for row in range(0, TABLE.rows, 2)
    ]
    assert max(moved) <= SCORE_SENSITIVITY
    # Clipped scores reach both ends; those of events reach them at the row with the largest weights only.
    assert max(moved) > SCORE_SENSITIVITY * Fraction(1, 2)


def test_the_bound_is_attained():
    found = scores("ATE", SEARCHED, noise=1e6)
    row = 0
    moved = largest([found.sums(t, y) for t, y in exchanged(TABLE, row)], total)
    assert moved == SCORE_SENSITIVITY


def test_scores_that_are_not_clipped_break_the_bound(monkeypatch):
    found = scores("ATE", SEARCHED, noise=1e6)
    monkeypatch.setattr(np, "clip", lambda values, low, high: values)
    moved = largest([found.sums(t, y) for t, y in exchanged(TABLE, 0)], total)
    assert moved > SCORE_SENSITIVITY


def both_arms(found, t, y):
    return [value for one in found for value in one.sums(t, y, ARM_SCORES)]


@pytest.mark.parametrize("spread", [SEARCHED, EVENTS], ids=["searched", "events"])
def test_no_exchange_moves_scores_of_both_arms_further_than_claimed(spread):
    found = arm_scores(spread, 1e6)
    moved = [
        largest([both_arms(found, t, y) for t, y in exchanged(TABLE, row)], total)
        for row in range(0, TABLE.rows, 2)
    ]
    assert max(moved) <= ARM_SCORES[1]
    # Scores of searched outcomes are clipped in both arms of one row; those of events reach their ends in two rows.
    if spread is SEARCHED:
        assert max(moved) == ARM_SCORES[1]


def test_groups_together_move_no_further_than_one():
    codes = TABLE.covariates["b"].astype(int)
    groups = [np.flatnonzero(codes == one) for one in (0, 1)]
    whole = Target.of(Estimand.ATE, MODELS.propensity)
    choice = replace(chosen(TABLE, Budget(4, "1e-3"), 2), rows=ROWS)
    numbers = [Sought(own, Target.of(Estimand.ATE, MODELS.propensity[own]), MODELS) for own in groups]
    for row in (0, int(groups[0][3]), int(groups[1][5])):
        sums = []
        for t, y in exchanged(TABLE, row):
            gate = NotingGate()
            found = release_scores(gate, replace(TABLE, treated=t, outcome=y), choice, numbers, SEARCHED)
            sums.append(gate.values["score"])
        assert len(found) == 2
        assert gate.sensitivity["score"] == SCORE_SENSITIVITY
        assert 1 < largest(sums, total) <= SCORE_SENSITIVITY
        other = 2 - 2 * codes[row]
        assert len({tuple(one[other : other + 2]) for one in sums}) == 1
    assert sum(len(own) for own in groups) == len(whole.tilt)


def test_squares_of_both_arms_with_the_weight_of_one_score_would_break_the_bound():
    found, form = arm_scores(SEARCHED, 1e6), (WHOLE_SCORES[0], ARM_SCORES[1])
    sums = [[v for one in found for v in one.sums(t, y, form)] for t, y in exchanged(TABLE, 0)]
    assert largest(sums, total) > ARM_SCORES[1]


def test_scores_of_an_arm_are_zero_in_the_other_and_make_the_effect_together():
    one, other = arm_scores(EVENTS)
    assert (one.values(np.zeros(N, bool), TABLE.outcome) == 0).all()
    assert (other.values(np.ones(N, bool), TABLE.outcome) == 0).all()
    mild = replace(MODELS, propensity=RNG.uniform(0.42, 0.58, N))
    whole = Target.of(Estimand.ATE, mild.propensity)
    both = [
        best_scores(ROWS, mild, EVENTS, target, 1.0) for target in (whole, whole.of_arm(0), whole.of_arm(1))
    ]
    values = [
        s.values(TABLE.treated, TABLE.outcome) / 2**SCORE_BITS * s.clip + s.middle + s.start for s in both
    ]
    assert values[1] + values[2] == pytest.approx(values[0], abs=4 * both[0].clip * 2.0**-SCORE_BITS)


@pytest.mark.parametrize("estimand", [one.value for one in Estimand])
def test_scores_follow_their_formulas(estimand):
    # Weights of these propensities are below the least cap.
    mild = replace(MODELS, propensity=RNG.uniform(0.42, 0.58, N))
    found = best_scores(ROWS, mild, EVENTS, Target.of(Estimand(estimand), mild.propensity), 1.0)
    e, m1, m0, start = mild.propensity, mild.treated, mild.control, found.start
    a, y = TABLE.treated.astype(float), TABLE.outcome / 2**23 - 1
    mean = e * m1 + (1 - e) * m0
    exact = {
        "ATE": a / e * (y - m1) - (1 - a) / (1 - e) * (y - m0),
        "ATT": a * (y - m0 - start) - (1 - a) * e / (1 - e) * (y - m0),
        "ATC": a * (1 - e) / e * (y - m1) - (1 - a) * (y - m1 + start),
        "ATO": (a - e) * (y - mean - start * (a - e)),
    }[estimand]
    values = found.values(TABLE.treated, TABLE.outcome) / 2**SCORE_BITS * found.clip + found.middle
    assert values == pytest.approx(exact, abs=2 * found.clip * 2.0**-SCORE_BITS)
    tilt = {"ATE": np.ones(N), "ATT": e, "ATC": 1 - e, "ATO": e * (1 - e)}[estimand]
    assert found.size == pytest.approx(tilt.sum())
    assert start == pytest.approx(tilt @ (m1 - m0) / tilt.sum())


def test_events_are_never_clipped():
    found = scores("ATE", EVENTS)
    one = 2**SCORE_BITS
    ends = [found.values(np.full(N, t), np.full(N, y)) for t in (True, False) for y in (0, 2**24)]
    inside = [
        np.abs((slope * y + offset - found.middle) / found.clip).max()
        for slope, offset in zip(found.slopes, found.offsets, strict=True)
        for y in (-1, 1)
    ]
    assert max(inside) <= 1 + 1e-12
    assert max(np.abs(end).max() for end in ends) == one


def test_errors_of_products_have_the_weights_of_the_estimand():
    e = MODELS.propensity
    shift = 1e-6
    for estimand, (h1, h0) in {one: Target.of(one, e).errors for one in Estimand}.items():
        # A small error of log odds times an error of mean outcomes is what it adds to the expected score.
        moved = np.clip(e + shift * e * (1 - e), 0, 1)
        target, other = Target.of(estimand, e), Target.of(estimand, moved)
        if estimand is Estimand.ATE:
            assert (1 - e * other.weights[0]) / shift == pytest.approx(h1, abs=1e-4)
            assert ((1 - e) * other.weights[1] - 1) / shift == pytest.approx(h0, abs=1e-4)
        assert (h1 >= 0).all()
        assert (h0 >= 0).all()
        assert target.tilt == pytest.approx(e * target.weights[0])
        assert target.tilt == pytest.approx((1 - e) * target.weights[1])


def test_no_exchange_moves_scores_of_three_arms_further_than_those_of_two():
    choice = replace(chosen(TABLE, Budget(4, "1e-3")), rows=ROWS)
    whole = Target.of(Estimand.ATE, MODELS.propensity).of_arm(0)
    numbers = [Sought(np.arange(N), whole, MODELS, ARM_SCORES, arm) for arm in range(3)]
    sums = []
    for arm, y in exchanged_arms(TABLE, 0):
        gate = NotingGate()
        release_scores(gate, replace(TABLE, arm=arm, outcome=y), choice, numbers, SEARCHED)
        sums.append(gate.values["score"])
    assert gate.sensitivity["score"] == ARM_SCORES[1]
    assert 2 < largest(sums, total) <= ARM_SCORES[1]
