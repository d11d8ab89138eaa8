"""Brute force: no exchange of a pair moves the sums of features, scores or squares further than claimed."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from tests.unit.estimators.pairs.test_effect import LEVEL, study
from tests.unit.rows.attached import noting

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.estimators.linear.series_basis import largest_basis
from counterveil.estimators.outcome_place import Spread
from counterveil.estimators.pairs import features as module
from counterveil.estimators.pairs.budget import chosen
from counterveil.estimators.pairs.features import feature_sets
from counterveil.estimators.pairs.models import Fit, Models
from counterveil.estimators.pairs.releases import ScoreTarget, release_scores
from counterveil.estimators.pairs.scores import Target, best_scores
from counterveil.estimators.pairs.series import Functions, best_basis
from counterveil.privacy import Budget, Estimand, Unit
from counterveil.rows.outcome_window import OUTCOME_BITS, WHOLE, Place
from counterveil.rows.pairs import moments
from counterveil.rows.pairs.functions import FunctionSums, function_sensitivity, function_sums
from counterveil.rows.pairs.moments import (
    ArmSums,
    PairSums,
    TreatedSums,
    arm_sums,
    pair_sensitivity,
    pair_sums,
)
from counterveil.rows.pairs.scores import ARM_SCORES, SCORE_BITS, WHOLE_SCORES, ScoreForm
from counterveil.rows.pairs.vectors import FEATURE_BITS
from counterveil.settings import Series

PAIR_ROWS = 80
STUDY = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (-2, 3)),
    {"x": cv.Range(-1, 1), "b": cv.Binary()},
    assignment=cv.Observational(),
)
# Outcomes in whole steps: both ends, the middle and places beside them.
OUTCOMES = [
    0,
    1,
    OUTCOME_STEPS // 3,
    OUTCOME_STEPS // 2,
    OUTCOME_STEPS // 2 + 77_777,
    OUTCOME_STEPS - 1,
    OUTCOME_STEPS,
]
PAIRS = list(product((False, True), OUTCOMES))


def table(study=STUDY, rows=PAIR_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    columns = {"x": np.round(rng.uniform(-1, 1, rows), 3), "b": rng.integers(0, 2, rows)}
    lean = columns["x"] + rng.normal(size=rows)
    return Table.attach(columns | {"t": (lean > 0).astype(int), "y": lean + rng.normal(size=rows)}, study)


def exchanged(made, row):
    """Yield treatments and outcomes with every pair in one row."""
    for treated, outcome in PAIRS:
        t, y = made.treated.copy(), made.outcome.copy()
        t[row], y[row] = treated, outcome
        yield t, y


def exchanged_arms(made, row):
    """Yield arms of three and outcomes with every pair in one row."""
    for arm, outcome in product(range(3), OUTCOMES):
        arms, y = np.arange(made.rows) % 3, made.outcome.copy()
        arms[row], y[row] = arm, outcome
        yield arms, y


def largest(vectors, distance):
    """Return the largest distance between two of the vectors, in exact numbers."""
    return max(
        distance([a - b for a, b in zip(one, other, strict=True)])
        for place, one in enumerate(vectors)
        for other in vectors[:place]
    )


def squared(difference):
    return sum(entry * entry for entry in difference)


def total(difference):
    return sum(abs(entry) for entry in difference)


TABLE = table()
ROWS = feature_sets(TABLE)[0]
N, P = ROWS.z.shape
RNG = np.random.default_rng(3)
FIT = Fit(np.zeros(P), np.eye(P) / 100, np.zeros(P), np.eye(P) / 100, 1.0)
MODELS = Models(
    RNG.uniform(0.05, 0.95, N), RNG.uniform(-0.5, 0.7, N), RNG.uniform(-0.7, 0.5, N), FIT, (FIT, FIT), 0.4
)
SEARCHED = Spread(WHOLE, 0.4, np.array([0.02, 0.1, 0.4, 1.1]), np.array([0.2, 0.3, 0.4, 0.1]), np.zeros(4))
EVENTS = Spread(WHOLE, 0.0)
SCORE_SENSITIVITY = WHOLE_SCORES.l1


def scores(estimand, spread, noise=50.0):
    return best_scores(ROWS, MODELS, spread, Target(Estimand(estimand), MODELS.propensity), noise)


def arm_scores(spread, noise=50.0):
    whole = Target(Estimand.ATE, MODELS.propensity)
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
    assert max(moved) <= ARM_SCORES.l1
    # Scores of searched outcomes are clipped in both arms of one row; those of events reach their ends in two rows.
    if spread is SEARCHED:
        assert max(moved) == ARM_SCORES.l1


def test_groups_together_move_no_further_than_one():
    codes = TABLE.covariates["b"].astype(int)
    groups = [np.flatnonzero(codes == one) for one in (0, 1)]
    whole = Target(Estimand.ATE, MODELS.propensity)
    choice = replace(chosen(TABLE, Budget(4, "1e-3"), effects=2), features=ROWS)
    for row in (0, int(groups[0][3]), int(groups[1][5])):
        sums = []
        for t, y in exchanged(TABLE, row):
            gate = noting(replace(TABLE, treated=t, outcome=y))
            targets = [Target(Estimand.ATE, MODELS.propensity[own]) for own in groups]
            both = zip(groups, targets, strict=True)
            numbers = [ScoreTarget(STUDY, SEARCHED, own, target, MODELS) for own, target in both]
            found = release_scores(gate, choice, numbers)
            sums.append(gate.values["score"])
        assert len(found) == 2
        assert gate.sensitivity["score"] == SCORE_SENSITIVITY
        assert 1 < largest(sums, total) <= SCORE_SENSITIVITY
        other = 2 - 2 * codes[row]
        assert len({tuple(one[other : other + 2]) for one in sums}) == 1
    assert sum(len(own) for own in groups) == len(whole.tilt)


def test_squares_of_both_arms_with_the_weight_of_one_score_would_break_the_bound():
    found, form = arm_scores(SEARCHED, 1e6), ScoreForm(WHOLE_SCORES.square_weight, ARM_SCORES.l1)
    sums = [[v for one in found for v in one.sums(t, y, form)] for t, y in exchanged(TABLE, 0)]
    assert largest(sums, total) > ARM_SCORES.l1


def test_scores_of_an_arm_are_zero_in_the_other_and_make_the_effect_together():
    one, other = arm_scores(EVENTS)
    assert (one.values(np.zeros(N, bool), TABLE.outcome) == 0).all()
    assert (other.values(np.ones(N, bool), TABLE.outcome) == 0).all()
    mild = replace(MODELS, propensity=RNG.uniform(0.42, 0.58, N))
    whole = Target(Estimand.ATE, mild.propensity)
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
    found = best_scores(ROWS, mild, EVENTS, Target(Estimand(estimand), mild.propensity), 1.0)
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
    for estimand, (h1, h0) in {one: Target(one, e).errors for one in Estimand}.items():
        # A small error of log odds times an error of mean outcomes is what it adds to the expected score.
        moved = np.clip(e + shift * e * (1 - e), 0, 1)
        target, other = Target(estimand, e), Target(estimand, moved)
        if estimand is Estimand.ATE:
            assert (1 - e * other.weights[0]) / shift == pytest.approx(h1, abs=1e-4)
            assert ((1 - e) * other.weights[1] - 1) / shift == pytest.approx(h0, abs=1e-4)
        assert (h1 >= 0).all()
        assert (h0 >= 0).all()
        assert target.tilt == pytest.approx(e * target.weights[0])
        assert target.tilt == pytest.approx((1 - e) * target.weights[1])


def test_no_exchange_moves_scores_of_three_arms_further_than_those_of_two():
    choice = replace(chosen(TABLE, Budget(4, "1e-3")), features=ROWS)
    whole = Target(Estimand.ATE, MODELS.propensity).of_arm(0)
    sums = []
    for arm, y in exchanged_arms(TABLE, 0):
        gate = noting(replace(TABLE, arm=arm, outcome=y))
        own = SEARCHED, np.arange(N), whole, MODELS, ARM_SCORES
        release_scores(gate, choice, [ScoreTarget(STUDY, *own, arm) for arm in range(3)])
        sums.append(gate.values["score"])
    assert gate.sensitivity["score"] == ARM_SCORES.l1
    assert 2 < largest(sums, total) <= ARM_SCORES.l1


FEATURE_SETS = feature_sets(TABLE)
PLACES = {
    "whole": WHOLE,
    "narrow": Place(OUTCOME_STEPS // 3 + 5, 1_234_567),
    "one step": Place(OUTCOME_STEPS // 2, 1),
    "beyond": Place(0, OUTCOME_STEPS),
}


def farthest(rows, place, rows_tried, known=False):
    """Return the largest squared change over all exchanges, by row."""
    return [
        largest([pair_sums(rows, t, [(y, place)], known) for t, y in exchanged(TABLE, row)], squared)
        for row in rows_tried
    ]


@pytest.mark.parametrize("place", PLACES)
def test_no_exchange_moves_the_sums_further_than_claimed(place):
    rows = FEATURE_SETS[-1]
    claim = pair_sensitivity(rows) ** 2
    longest = int((rows.steps(slice(None)) ** 2).sum(axis=1).argmax())
    found = farthest(rows, PLACES[place], range(0, TABLE.rows, 8))
    assert max(found) <= claim
    assert farthest(rows, PLACES[place], [longest])[0] > claim * Fraction(99, 100)
    # Without treatments, outcomes that lie on one side of the place move half as far.
    attained = claim * Fraction(24 if place == "beyond" else 99, 100)
    assert attained < farthest(rows, PLACES[place], [longest], True)[0] <= claim


def test_every_set_of_features_has_its_bound_and_attains_it():
    assert [set(rows.order.tolist()) for rows in FEATURE_SETS] == [{0, 1}, {0, 1, 2}, {0, 1, 2, 3}]
    for rows in FEATURE_SETS:
        longest = int((rows.steps(slice(None)) ** 2).sum(axis=1).argmax())
        claim = pair_sensitivity(rows) ** 2
        found = farthest(rows, WHOLE, [longest])[0]
        # The root is rounded up to a multiple of 2^-64.
        assert claim * (1 - Fraction(1, 2**40)) <= found <= claim


def test_a_heavier_treatment_would_break_the_bound(monkeypatch):
    monkeypatch.setattr(moments, "TREATED", Fraction(182, 128))
    rows = FEATURE_SETS[-1]
    longest = int((rows.steps(slice(None)) ** 2).sum(axis=1).argmax())
    assert farthest(rows, WHOLE, [longest])[0] > pair_sensitivity(rows) ** 2


def test_outcomes_are_clipped_and_rounded_to_the_nearest():
    place = Place(1000, 300)
    outcome = np.array([0, 700, 1000, 1001, 1150, 1300, 9000])
    exact = np.clip((outcome - 1000) / 300, -1, 1) * 2**OUTCOME_BITS
    found = place.fixed(outcome)
    assert np.abs(found - exact).max() <= 0.5
    assert found.min() == -(2**OUTCOME_BITS)
    assert found.max() == 2**OUTCOME_BITS


def test_sums_are_those_of_weighted_features():
    rows = FEATURE_SETS[1]
    n, p = rows.z.shape
    sums = np.array([float(value) for value in pair_sums(rows, TABLE.treated, [(TABLE.outcome, WHOLE)])])
    y, t = TABLE.outcome / 2**23 - 1, TABLE.treated.astype(float)
    exact = np.concatenate(
        [
            (rows.z * rows.weight[:, None] * rows.scale).T @ pair
            for pair in (181 / 128 * t, t * y, (1 - t) * y)
        ]
    )
    assert sums == pytest.approx(exact, abs=n * 2.0**-FEATURE_BITS)
    assert len(sums) == 3 * p


def test_features_are_white_and_no_row_is_longer_than_its_bound():
    for rows in FEATURE_SETS:
        n = len(rows.z)
        assert rows.gram(np.ones(n)) / n == pytest.approx(np.eye(rows.z.shape[1]), abs=1e-9)
        squares = [sum(int(step) ** 2 for step in row) for row in rows.steps(slice(None))]
        assert max(squares) <= (rows.length * 2**FEATURE_BITS) ** 2
        assert rows.weight.max() <= 1


def test_private_columns_do_not_move_features():
    made = table(seed=0)
    flipped = replace(made, treated=~made.treated, outcome=np.zeros(made.rows, np.int64))
    for one, changed in zip(FEATURE_SETS, feature_sets(flipped), strict=True):
        assert np.array_equal(one.steps(slice(None)), changed.steps(slice(None)))


def test_no_exchange_moves_the_sums_of_three_arms_further_than_claimed():
    rows = FEATURE_SETS[0]
    claim, longest = pair_sensitivity(rows) ** 2, int((rows.steps(slice(None)) ** 2).sum(axis=1).argmax())
    found = [
        largest([arm_sums(rows, arm, 3, y, WHOLE) for arm, y in exchanged_arms(TABLE, row)], squared)
        for row in (0, 17, longest)
    ]
    assert claim * (1 - Fraction(1, 2**40)) <= max(found) == found[-1] <= claim


FUNCTION_N = 4000
FUNCTIONS = Functions.of(TABLE, largest_basis(TABLE, Series(degree=2)))


def farthest_function(found, row):
    return largest([function_sums(FUNCTIONS.rows, found, t, y) for t, y in exchanged(TABLE, row)], squared)


@pytest.mark.parametrize("spread", [SEARCHED, EVENTS], ids=["searched", "events"])
def test_no_exchange_moves_sums_of_functions_further_than_claimed(spread):
    found, claim = scores("ATE", spread, 1e6), function_sensitivity(FUNCTIONS.rows) ** 2
    moved = [farthest_function(found, row) for row in range(0, TABLE.rows, 8)]
    assert max(moved) <= claim
    longest = int((FUNCTIONS.rows.steps(slice(None)) ** 2).sum(axis=1).argmax())
    if spread is SEARCHED:
        # The root is rounded up to a multiple of 2^-64.
        assert claim * (1 - Fraction(1, 2**40)) <= farthest_function(found, longest) <= claim


def test_releases_are_the_sums_at_their_bounds():
    found = scores("ATE", SEARCHED)
    both = [(TABLE.outcome, WHOLE)]
    treated = pair_sums(ROWS, TABLE.treated, both)[:P]
    for declaration, values, claim in (
        (PairSums(ROWS, (WHOLE,), False), pair_sums(ROWS, TABLE.treated, both), pair_sensitivity(ROWS)),
        (PairSums(ROWS, (WHOLE,), True), pair_sums(ROWS, TABLE.treated, both, True), pair_sensitivity(ROWS)),
        (ArmSums(ROWS, 2, WHOLE), arm_sums(ROWS, TABLE.arm, 2, TABLE.outcome, WHOLE), pair_sensitivity(ROWS)),
        (TreatedSums(ROWS), [value / moments.TREATED for value in treated], ROWS.length),
        (
            FunctionSums(FUNCTIONS.rows, found),
            function_sums(FUNCTIONS.rows, found, TABLE.treated, TABLE.outcome),
            function_sensitivity(FUNCTIONS.rows),
        ),
    ):
        gate = noting(TABLE)
        declaration.release(gate, "sums")
        assert gate.values["sums"] == values
        assert gate.sensitivity["sums"] == claim


def test_longer_squares_would_break_the_bound():
    rows, found = FUNCTIONS.rows, scores("ATE", SEARCHED)
    longest = int((rows.steps(slice(None)) ** 2).sum(axis=1).argmax())
    moved = [
        function_sums(replace(rows, length=4 * rows.length), found, t, y)
        for t, y in exchanged(TABLE, longest)
    ]
    assert largest(moved, squared) > function_sensitivity(rows) ** 2


def test_sums_are_those_of_weighted_functions():
    rows, found = FUNCTIONS.rows, scores("ATE", EVENTS)
    v = found.values(TABLE.treated, TABLE.outcome) / 2**18
    sums = np.array([float(one) for one in function_sums(rows, found, TABLE.treated, TABLE.outcome)])
    assert sums[:-1] == pytest.approx((rows.weight * v) @ rows.z[:], abs=TABLE.rows * 2.0**-16)
    assert sums[-1] == pytest.approx(float(rows.length) * float(v @ v))
    assert rows.z[:] @ np.linalg.pinv(FUNCTIONS.back) == pytest.approx(
        FUNCTIONS.basis.features(TABLE.covariates)
    )


def test_private_columns_do_not_move_functions():
    other = replace(table(seed=0), treated=~TABLE.treated, outcome=np.zeros(TABLE.rows, np.int64))
    every = slice(None)
    assert np.array_equal(Functions.of(other, FUNCTIONS.basis).rows.steps(every), FUNCTIONS.rows.steps(every))
    for budget in (Budget(1), Budget(4, "1e-6")):
        assert best_basis(other, budget, Series()) == best_basis(TABLE, budget, Series())


def people(slope, events=False, n=FUNCTION_N):
    rng = np.random.default_rng(12)
    x = rng.uniform(-1, 1, (n, 3))
    t = rng.uniform(size=n) < expit(0.9 * x[:, 0] - 0.5 * x[:, 1])
    mean = 0.4 + 0.1 * x[:, 1] + (0.1 + slope * x[:, 0]) * t
    y = rng.uniform(size=n) < mean if events else mean + 0.2 * rng.normal(size=n)
    return {"t": t.astype(int), "y": y.astype(float)} | {f"x{j}": x[:, j] for j in range(3)}


def ask(data, declared, **more):
    words = {"protects": LEVEL, "epsilon": 4, "delta": "1e-6", "noise": cv.SeededNoise(7)} | more
    return cv.cate(data, declared, **words)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("events", [False, True], ids=["numbers", "events"])
def test_a_function_is_found_around_the_truth(events, delta):
    slope = 0.3
    model = ask(people(slope, events), study(events), delta=delta, method="series")
    line = {"x0": np.linspace(-0.9, 0.9, 7), "x1": np.zeros(7), "x2": np.zeros(7)}
    truth = 0.1 + slope * line["x0"]
    low, high = model.band(line)
    assert (low < truth).all()
    assert (truth < high).all()
    assert np.sqrt(np.mean((model.effect(line) - truth) ** 2)) < 0.15
    assert model.guarantee.unit is Unit.TREATMENT_AND_OUTCOME
    assert model.assumptions is not None
    assert len(model.releases) == (2 if events else 4)
    again = type(model).from_dict(model.to_dict())
    assert np.array_equal(again.effect(line), model.effect(line))


def test_auto_answers_one_number_where_a_function_does_not_pay_or_show():
    flat = ask(people(0.0), study())
    assert not flat.heterogeneous
    small = ask(people(0.3, n=1000), study(), epsilon=1)
    assert not small.heterogeneous
    assert small.releases[-1][0] == "sums of scores and of their squares"
    assert ask(people(0.3), study()).heterogeneous


@pytest.mark.parametrize(
    ("more", "code"), [({"method": "t_learner"}, "CV-P018"), ({"settings": cv.settings.Cate()}, "CV-P019")]
)
def test_what_the_level_does_not_have_is_refused(more, code):
    with pytest.raises(cv.CounterveilError, match=code):
        ask(None, study(), **more)
    with pytest.raises(cv.CounterveilError, match="CV-P018"):
        ask(None, study(cluster="school"))


def test_a_column_that_depends_on_others_changes_none_after_it():
    columns = np.random.default_rng(5).normal(size=(500, 4))
    between = np.insert(columns, 2, columns[:, 0] + columns[:, 1], axis=1)
    (alone, _), (other, order) = (
        module._white(np.asfortranarray(one), np.arange(one.shape[1])) for one in (columns, between)
    )
    assert order.tolist() == [0, 1, 3, 4]
    assert other == pytest.approx(alone, abs=1e-9)
