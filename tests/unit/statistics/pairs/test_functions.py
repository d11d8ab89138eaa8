"""Effects as functions of public covariates: no exchange moves the sums further than claimed; answers of every kind."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit
from tests.unit.statistics.pairs.small_pairs import exchanged, largest, squared, table
from tests.unit.statistics.pairs.test_effect import LEVEL, study
from tests.unit.statistics.pairs.test_pair_scores import EVENTS, SEARCHED, TABLE, scores

import counterveil as cv
from counterveil.privacy import Budget, Unit
from counterveil.session import drafted_access_policy
from counterveil.settings import Series
from counterveil.statistics.linear.functions import largest_basis
from counterveil.statistics.pairs.effect import Functions, best_basis, function_sensitivity, function_sums

N = 4000
FUNCTIONS = Functions.of(TABLE, largest_basis(TABLE, Series(degree=2)))


def farthest(found, row):
    return largest([function_sums(FUNCTIONS.rows, found, t, y) for t, y in exchanged(TABLE, row)], squared)


@pytest.mark.parametrize("spread", [SEARCHED, EVENTS], ids=["searched", "events"])
def test_no_exchange_moves_sums_of_functions_further_than_claimed(spread):
    found, claim = scores("ATE", spread, 1e6), function_sensitivity(FUNCTIONS.rows) ** 2
    moved = [farthest(found, row) for row in range(0, TABLE.rows, 8)]
    assert max(moved) <= claim
    longest = int((FUNCTIONS.rows.steps**2).sum(axis=1).argmax())
    if spread is SEARCHED:
        # The root is rounded up to a multiple of 2^-64.
        assert claim * (1 - Fraction(1, 2**40)) <= farthest(found, longest) <= claim


def test_longer_squares_would_break_the_bound():
    rows, found = FUNCTIONS.rows, scores("ATE", SEARCHED)
    longest = int((rows.steps**2).sum(axis=1).argmax())
    moved = [
        function_sums(replace(rows, length=4 * rows.length), found, t, y)
        for t, y in exchanged(TABLE, longest)
    ]
    assert largest(moved, squared) > function_sensitivity(rows) ** 2


def test_sums_are_those_of_weighted_functions():
    rows, found = FUNCTIONS.rows, scores("ATE", EVENTS)
    v = found.values(TABLE.treated, TABLE.outcome) / 2**18
    sums = np.array([float(one) for one in function_sums(rows, found, TABLE.treated, TABLE.outcome)])
    assert sums[:-1] == pytest.approx(rows.weighted.T @ v, abs=TABLE.rows * 2.0**-16)
    assert sums[-1] == pytest.approx(float(rows.length) * float(v @ v))
    assert rows.z @ np.linalg.pinv(FUNCTIONS.back) == pytest.approx(
        FUNCTIONS.basis.features(TABLE.covariates)
    )


def test_private_columns_do_not_move_functions():
    other = replace(table(seed=0), treated=~TABLE.treated, outcome=np.zeros(TABLE.rows, np.int64))
    assert np.array_equal(Functions.of(other, FUNCTIONS.basis).rows.steps, FUNCTIONS.rows.steps)
    for budget in (Budget(1), Budget(4, "1e-6")):
        assert best_basis(other, budget, Series()) == best_basis(TABLE, budget, Series())


def people(slope, events=False, n=N):
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
    small = ask(people(0.3, n=1500), study(), epsilon=1)
    assert not small.heterogeneous
    assert "score" in " ".join(words for words, _ in small.releases)
    assert ask(people(0.3), study()).heterogeneous


def test_a_function_is_charged_once_and_answered_again():
    data, declared = people(0.3), study()
    with cv.open_ledger(":memory:") as ledger:
        access_policy = drafted_access_policy(declared, Unit.TREATMENT_AND_OUTCOME)
        ledger.register("people", Budget(5, "1e-5"), access_policy=access_policy)
        words = {"ledger": ledger, "request_id": "one", "noise": None, "method": "series"}
        first, again = ask(data, declared, **words), ask(data, declared, **words)
        assert np.array_equal(first.weights, again.weights)
        assert ledger.account("people").spent.epsilon == 4


@pytest.mark.parametrize(
    ("more", "code"), [({"method": "t_learner"}, "CV-P018"), ({"settings": cv.settings.Cate()}, "CV-P019")]
)
def test_what_the_level_does_not_have_is_refused(more, code):
    with pytest.raises(cv.CounterveilError, match=code):
        ask(None, study(), **more)
    with pytest.raises(cv.CounterveilError, match="CV-P018"):
        ask(None, study(cluster="school"))
