"""Tests against margins agree with intervals; between a function and one number the test keeps its level."""

import json
from dataclasses import fields
from math import inf, nan

import numpy as np
import pytest
from scipy.stats import norm, ttest_ind

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.results.answering import Facts
from counterveil.results.decisions import MarginTest, margin_bounds
from counterveil.results.functions import P_VALUE, Unshrunk, fall_back_to_average

STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 2)), assignment=cv.Trial())


def trial(n=3000, seed=1, epsilon=1, **more):
    rng = np.random.default_rng(seed)
    t = np.arange(n) % 2
    data = {"t": t, "y": np.clip(rng.normal(0.5 + 0.01 * t, 0.2, n), 0, 1)}
    words = {"protects": "outcome", "epsilon": epsilon, "method": "difference_in_means"} | more
    return data, cv.ate(data, STUDY, noise=cv.SeededNoise(seed), **words)


@pytest.mark.parametrize("measure", ["difference", "ratio"])
def test_a_test_is_met_where_the_interval_lies_beyond_its_margin(measure):
    _, found = trial(measure=measure)
    low, high = found.interval()
    for step, met in ((1e-4, True), (-1e-4, False)):
        below, above = low - step, high + step
        margin = below if measure == "ratio" else -below
        assert found.test("noninferiority", margin=margin).met is met
        assert found.test("equivalence", margin=(below, above)).met is met
        assert found.test("noninferiority", margin=above, higher_is_better=False).met is met
    test = found.test("superiority")
    assert test.p_value == pytest.approx(found.p_value / 2, rel=1e-6)
    assert ("not shown" in str(test)) is not test.met
    curve = {one["effect"]: one["p_value"] for one in found.confidence_curve()}
    inside = [effect for effect, p in curve.items() if p >= 0.05]
    assert min(inside) >= low - 1e-9
    assert max(inside) <= high + 1e-9
    assert max(curve.values()) == pytest.approx(1.0, abs=1e-6)


def test_with_a_large_budget_it_is_the_test_without_privacy():
    data, found = trial(epsilon=10**5)
    one, other = (data["y"][data["t"] == arm] for arm in (1, 0))
    plain = ttest_ind(one, other - 0.01, equal_var=False, alternative="greater").pvalue
    assert found.test("noninferiority", margin=0.01).p_value == pytest.approx(plain, rel=0.02)
    lower = norm.sf((0.03 - found.estimate) / found.std_error.total)
    assert found.test("equivalence", margin=0.03, level=0.9).p_value == pytest.approx(lower, rel=0.02)


def test_a_test_prints_its_verdict():
    def test(kind, bounds, interval, estimate=0.0, p=0.5):
        found = MarginTest(kind, bounds, estimate, interval, 0.95, p)
        json.dumps(found.to_dict(), allow_nan=False)
        assert repr(found) == f"<MarginTest: {found}>"
        assert not {"inf", "-inf", "[inf", "inf]", "inf)", "inf,"} & set(str(found).split())
        return found.verdict, str(found).partition(":")[0]

    assert test("noninferiority", (-0.1, inf), (-0.05, 0.1), p=0.001) == ("met", "Non-inferior")
    assert test("noninferiority", (-0.1, inf), (-0.2, 0.1)) == ("inconclusive", "Inconclusive")
    assert test("noninferiority", (-inf, 0.1), (0.2, 0.3), p=0.999) == ("contradicted", "Inferior")
    assert test("superiority", (0.0, inf), (0.1, 0.3), p=0.001) == ("met", "Superior")
    assert test("superiority", (1.0, inf), (0.4, inf)) == ("inconclusive", "Inconclusive")
    assert test("superiority", (0.0, inf), (-0.3, -0.1), p=0.999) == ("contradicted", "Not superior")
    assert test("equivalence", (-0.1, 0.1), (-0.05, 0.05), p=0.001) == ("met", "Equivalent")
    assert test("equivalence", (-0.1, 0.1), (-inf, inf), nan) == ("inconclusive", "Inconclusive")
    assert test("equivalence", (-0.1, 0.1), (0.2, inf), inf, p=0.999) == ("contradicted", "Not equivalent")


def test_margins():
    assert margin_bounds("superiority", 0.1, True, 0.0) == (0.1, inf)
    assert margin_bounds("superiority", 0, False, 0.0) == (-inf, 0.0)
    assert margin_bounds("noninferiority", 0.8, True, 1.0) == margin_bounds("noninferiority", 1.25, True, 1.0)
    assert margin_bounds("equivalence", 1.25, True, 1.0) == (0.8, 1.25)
    for kind, margin in (("similar", 1), ("equivalence", 0), ("noninferiority", -1), ("equivalence", (1, 2))):
        with pytest.raises(CounterveilError, match="CV-P796"):
            margin_bounds(kind, margin, True, 0.0)


SIZE = 7
ORDERS = np.array([0.0, 1, 1, 1, 2, 2, 2])
DRAWS = 800


def covariance():
    root = np.random.default_rng(4).normal(size=(SIZE, SIZE))
    return root @ root.T + 0.2 * np.eye(SIZE)


def p_values(truth):
    rng, root = np.random.default_rng(5), np.linalg.cholesky(covariance())
    draws = truth + rng.normal(size=(DRAWS, SIZE)) @ root.T
    return np.array(
        [Unshrunk(one, covariance(), ORDERS, np.zeros(SIZE)).heterogeneity_p_value() for one in draws]
    )


def test_the_level_is_kept_whatever_the_average_effect():
    found = p_values(np.array([9.0, 0, 0, 0, 0, 0, 0]))
    # Two tests by Bonferroni's bound: at most 5 %, and not much less. Three standard errors are 2 %.
    assert 0.02 < np.mean(found <= 0.05) < 0.07


def test_effects_of_first_order_are_found_more_often_than_among_all_functions():
    truth = np.array([0.0, 0, 0, 4, 0, 0, 0])
    all_alike = np.array([0.0, 1, 1, 1, 1, 1, 1])
    rng, root = np.random.default_rng(5), np.linalg.cholesky(covariance())
    draws = truth + rng.normal(size=(DRAWS, SIZE)) @ root.T
    alone = [Unshrunk(one, covariance(), all_alike, np.zeros(SIZE)).heterogeneity_p_value() for one in draws]
    assert np.mean(p_values(truth) <= 0.05) > np.mean(np.array(alone) <= 0.05) > 0.1


def one_trial(effect, rows, seed=3):
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=rows), rng.integers(0, 2, rows)
    y = np.clip(0.4 + 0.1 * x + t * effect(x) + rng.normal(0, 0.1, rows), 0, 1)
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        {"x": cv.Range(0, 1)},
        assignment=cv.Trial(share=0.5),
    )
    return {"t": t, "y": y, "x": x}, study


@pytest.mark.parametrize("protects", ["record", "outcome"])
def test_auto_answers_with_a_function_where_effects_are_seen_to_differ(protects):
    asked = {"protects": protects, "epsilon": 2, "delta": "1e-6"}
    model = cv.cate(*one_trial(lambda x: 0.4 * (x - 0.5), 8000), noise=cv.SeededNoise(1), **asked)
    assert model.heterogeneous
    assert model.details[P_VALUE] < 0.05
    one = cv.cate(*one_trial(lambda x: 0.1 + 0 * x, 8000), noise=cv.SeededNoise(1), **asked)
    assert not one.heterogeneous
    assert one.details[P_VALUE] > 0.05
    (low, high) = one.table[0].interval()
    assert low <= 0.1 <= high
    assert one.effect({"x": [0.1, 0.9]}).tolist() == [one.weights[0]] * 2


def test_a_function_asked_by_name_stays_one_and_says_its_p_value():
    frame, study = one_trial(lambda x: 0.1 + 0 * x, 8000)
    asked = {"protects": "record", "epsilon": 2, "delta": "1e-6", "noise": cv.SeededNoise(1)}
    model = cv.cate(frame, study, method="t_learner", **asked)
    assert model.heterogeneous
    assert model.details[P_VALUE] > 0.05


def test_one_number_is_the_average_over_the_study_s_people():
    frame, study = one_trial(lambda x: 0.1 + 0 * x, 8000)
    asked = {
        "protects": "record",
        "epsilon": 2,
        "delta": "1e-6",
        "method": "t_learner",
        "noise": cv.SeededNoise(1),
    }
    model = cv.cate(frame, study, **asked)
    mean = model.basis.features({"x": frame["x"]}).mean(axis=0)
    size = len(mean)
    measured = Unshrunk(np.zeros(size), np.eye(size), model.basis.orders, mean)
    facts = Facts({field.name: getattr(model, field.name) for field in fields(model) if field.init})
    found = fall_back_to_average(facts, measured, level=model.level, automatic=True)
    average, low, high = model.average({"x": frame["x"]})
    assert found["weights"][0] == pytest.approx(average)
    sd = np.sqrt(found["covariance"][0, 0])
    # Functions beyond the basis are part of intervals for people, not of the average's.
    assert 1.9 * sd <= (high - low) / 2 + 1e-12
